"""Confusion matrices by counting the labels of annotators, given probabilities of the true classes.

With q_nc the probability that item n is of class c, annotator m has N_m[c, k] = Σ_{n: z_nm = k} q_nc expected
labels k for class c; a label of weight w counts w times. Few labels are weak evidence, so counts are
shrunken twice:

    all annotators together:    θ̄[c, k]    ∝ Σ_m N_m[c, k] + 1/C + 2·1[c = k]
    one annotator:              θ_m[c, k]  = (N_m[c, k] + κ θ̄[c, k]) / (N_m[c, ·] + κ)
    on items of difficulty d:   θ_md[c, k] ∝ N_md[c, k] + κ_d θ_m[c, k] r_d[c, k]

where r_d[c, k] is how much more often label k meets class c at difficulty d than overall, over all
annotators, with κ_d pseudo-labels per class at the overall share.

What is kept are the class probabilities of the items and the labels; counts are summed where they are needed.
Memory grows with items, annotators and labels, times C at most, never with annotators times C².
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from annotmix.labels.annotations import Annotations
from annotmix.labels.groups import Groups

#: Buffers whose length depends on the labels.
_OF_LABELS = ("q", "level", "item", "annotator", "label", "weight")
#: Labels × classes that exist at once, where all labels are worked on.
PIECE = 2**20
#: The smallest probability that is distinguished from 0.
TINY = 1e-12


class CountedConfusion(nn.Module):
    """Counts of every annotator and difficulty, and the confusion matrices that follow from them.

    Parameters
    ----------
    n_annotators, n_classes, n_levels : int
        M, C and the number of difficulties.
    kappa : float
        κ, pseudo-labels from the common matrix in every row of an annotator's matrix.
    kappa_level : float
        κ_d, pseudo-labels from the annotator's matrix in every row of the matrix for one difficulty.
    """

    q: Tensor
    level: Tensor
    item: Tensor
    annotator: Tensor
    label: Tensor
    weight: Tensor
    total: Tensor
    level_total: Tensor
    common: Tensor
    ratio: Tensor

    def __init__(
        self,
        n_annotators: int,
        n_classes: int,
        n_levels: int = 3,
        kappa: float = 3.0,
        kappa_level: float = 30.0,
    ):
        super().__init__()
        self.n_classes, self.n_levels = n_classes, n_levels
        self.kappa, self.kappa_level = kappa, kappa_level
        self._several = True  # whether an annotator may have several labels for an item
        self._share: Tensor | None = None  # of labels of copies; needed in training alone
        C = n_classes
        # as with nothing counted; sums and `torch.eye` would import torch's compiler on the meta device
        common = torch.full((C, C), 1 / (3 * C))
        common.diagonal().add_(2 / 3)
        none = torch.zeros(0, dtype=torch.long)
        for name, start in {
            "q": torch.zeros(0, C),  # class probabilities of the items, (N, C)
            "level": none,  # difficulties of the items, (N,)
            "item": none,  # of every label, by annotator and label, (P,)
            "annotator": none,
            "label": none,
            "weight": torch.zeros(0),
            "total": torch.zeros(n_annotators, C),  # N_m[·, all]
            "level_total": torch.zeros(n_annotators * n_levels, C),
            "common": common,  # θ̄, (C, C)
            "ratio": torch.ones(n_levels, C, C),  # r_d
        }.items():
            self.register_buffer(name, start)

    def count(self, labels: Labelled, q: Tensor, level: Tensor | None = None) -> None:
        """Count anew, with class probabilities q, shape (N, C), and difficulties, shape (N,), of the items.

        Without difficulties all items count for the first one.
        """
        C, D = self.n_classes, self.n_levels
        self.q, self.level = q, q.new_zeros(len(q), dtype=torch.long) if level is None else level
        self.item, self.annotator, self.label = labels.item, labels.annotator, labels.label
        self.weight = q.new_ones(len(self.item)) if labels.weight is None else labels.weight.to(q.dtype)
        self._several = labels.several
        self._share = None if labels.share is None else labels.share.to(q.dtype)
        self.level_total = torch.zeros_like(self.level_total)
        by_level = q.new_zeros(D * C, C)
        for rows in self._pieces():
            d, counts = self.level[self.item[rows]], self._weighted(rows)
            self.level_total.index_add_(0, self.annotator[rows] * D + d, counts)
            by_level.index_add_(0, d * C + self.label[rows], counts)
        self.total = self.level_total.view(-1, D, C).sum(dim=1)
        by_level = by_level.view(D, C, C).transpose(1, 2)  # [d, c, k]
        common = by_level.sum(dim=0) + 1 / C + 2 * torch.eye(C, device=q.device)
        self.common = common / common.sum(dim=1, keepdim=True)
        by_level = by_level + self.kappa_level * self.common
        self.ratio = by_level / by_level.sum(dim=2, keepdim=True) / self.common

    def item_sums(self, start: Tensor, factor: Tensor) -> Tensor:
        """`start`, shape (N, C), plus factor · Σ w log θ_md[c, z] over the labels z of every item.

        θ is counted without the item; w is the weight of a label, 1 without weights, times its share where
        annotators copy each other; `factor` has shape (N,).
        With difficulties, rows of θ sum to nearly one here: normalising them would need whole matrices for
        single labels.
        """
        sums = start.clone()
        for rows in self._pieces():
            item = self.item[rows]
            share = factor[item] if self._share is None else factor[item] * self._share[rows]
            sums.index_add_(0, item, self.log_likelihood(rows) * share.unsqueeze(1))
        return sums

    def log_likelihood(self, rows: slice) -> Tensor:
        """w log θ_md[c, z] of labels by annotator and label, shape (n, C); `rows` are a piece."""
        D, kappa = self.n_levels, self.kappa
        item, annotator, label = self.item[rows], self.annotator[rows], self.label[rows]
        d, own = self.level[item], self._weighted(rows)
        all_own = own
        if self._several:  # all labels that the same annotator gave the same item are left out of the totals
            both, pair = torch.unique(annotator * len(self.q) + item, return_inverse=True)
            all_own = _sums(own, pair, len(both))[pair]
        cells, cell = torch.unique_consecutive(annotator * self.n_classes + label, return_inverse=True)
        # by class, as each label needs one column of its annotator's matrix
        said = _sums(own, cell, len(cells))[cell] - own
        theta = said.add_(self.common.T[label], alpha=kappa)
        theta /= self.total[annotator].sub_(all_own).add_(kappa)
        if D > 1:
            place = cell * D + d
            said = _sums(own, place, len(cells) * D)[place] - own
            theta *= self.ratio.transpose(1, 2)[d, label]
            theta = said.add_(theta, alpha=self.kappa_level)
            theta /= self.level_total[annotator * D + d].sub_(all_own).add_(self.kappa_level)
        return theta.clamp_min_(TINY).log_().mul_(self.weight[rows].unsqueeze(1))

    def log_confusion(self, annotator: Tensor, level: Tensor | None) -> Tensor:
        """log θ_md, shape (n, C, C), indexed [c, k], of annotators and difficulties, shapes (n,).

        Without difficulties, or where there is only one: log θ_m.
        """
        theta = self._counts(annotator) + self.kappa * self.common
        theta = theta / (self.total[annotator].unsqueeze(-1) + self.kappa)
        if level is None or self.n_levels == 1:
            return theta.clamp_min(TINY).log()
        result = self._counts(annotator, level) + self.kappa_level * theta * self.ratio[level]
        return (result / result.sum(dim=2, keepdim=True)).clamp_min(TINY).log()

    def _pieces(self) -> Iterator[slice]:
        """Consecutive labels of whole annotators, with at most `PIECE` numbers or of one annotator."""
        most, first = max(PIECE // self.n_classes, 1), 0
        ends = torch.nonzero(torch.diff(self.annotator, append=self.annotator.new_full((1,), -1)))
        ends = (ends.flatten() + 1).cpu()
        while first < len(self.annotator):
            at = int(torch.searchsorted(ends, first + most, right=True)) - 1
            end = int(ends[at]) if at >= 0 else 0
            if end <= first:  # one annotator alone has more
                end = int(ends[at + 1])
            yield slice(first, end)
            first = end

    def _weighted(self, rows: slice | Tensor) -> Tensor:
        """Class probabilities of the items of labels, times the weights of the labels; shape (n, C)."""
        return self.q[self.item[rows]] * self.weight[rows].unsqueeze(1)

    def _counts(self, annotator: Tensor, level: Tensor | None = None) -> Tensor:
        """Counts [c, k] of annotators, at difficulties where these are named; shape (n, C, C)."""
        C, D = self.n_classes, 1 if level is None else self.n_levels
        cells, where = torch.unique(
            annotator if level is None else annotator * D + level, return_inverse=True
        )
        who = cells // D
        first = torch.searchsorted(self.annotator, who)
        size = torch.searchsorted(self.annotator, who, right=True) - first
        cell = torch.repeat_interleave(torch.arange(len(cells), device=cells.device), size)
        rows = torch.arange(len(cell), device=cell.device) + (first - size.cumsum(0) + size)[cell]
        if level is not None:
            here = self.level[self.item[rows]] == (cells % D)[cell]
            rows, cell = rows[here], cell[here]
        counts = self.common.new_zeros(len(cells) * C, C)
        step = max(PIECE // C, 1)
        for n in range(0, len(rows), step):
            part = rows[n : n + step]
            counts.index_add_(0, cell[n : n + step] * C + self.label[part], self._weighted(part))
        return counts.view(-1, C, C)[where].transpose(1, 2)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        for name in _OF_LABELS:
            if (saved := state_dict.get(prefix + name)) is not None:
                setattr(self, name, torch.empty_like(saved, device=self.common.device))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        if len({len(self.get_buffer(name)) for name in ("item", "annotator", "label", "weight")}) > 1:
            raise ValueError("The counted labels differ in number from their items, annotators or weights.")
        if len(self.get_buffer("q")) != len(self.get_buffer("level")):
            raise ValueError("The counted items and their difficulties differ in number.")


class Labelled:
    """The labels as tensors: item, annotator, label, their informative weights, and their shares.

    They stand by annotator and label, and have shape (P,). `several` says whether an annotator has more than
    one label for an item. A share is how much a label counts for the class of its item where annotators copy
    each other (`groups`).

    A flat distribution must not count as a label of every class: it would be evidence for the class that
    annotators confuse most, that class would grow, and finally all items would belong to it.
    """

    def __init__(self, annotations: Annotations, device: torch.device, groups: Groups | None = None):
        order = np.lexsort((annotations.label, annotations.annotator))
        self.item = torch.tensor(annotations.item[order], device=device)
        self.annotator = torch.tensor(annotations.annotator[order], device=device)
        self.label = torch.tensor(annotations.label[order], device=device)
        both = annotations.annotator * annotations.n_items + annotations.item
        self.several = len(np.unique(both)) < len(both)
        self.share: Tensor | None = None
        if groups is not None:
            self.share = torch.tensor(groups.shares(annotations)[order], dtype=torch.float32, device=device)
        self.weight: Tensor | None = None
        weight = annotations.informative_weight
        if weight is not None:
            self.weight = torch.tensor(weight[order], dtype=torch.float32, device=device)


def _sums(values: Tensor, where: Tensor, n: int) -> Tensor:
    """Sums of the rows of values, shape (P, C), with the same index, shape (n, C)."""
    return values.new_zeros(n, values.shape[1]).index_add_(0, where, values)
