"""Confusion matrices by counting the labels of annotators, given probabilities of the true classes.

With q_nc the probability that item n is of class c, annotator m has N_m[c, k] = Σ_{n: z_nm = k} q_nc expected
labels k for class c; a label of weight w counts w times. Few labels are weak evidence, so counts are
shrunken twice:

    all annotators together:    θ̄[c, k]    ∝ Σ_m N_m[c, k] + 1/C + 2·1[c = k]
    one annotator:              θ_m[c, k]  = (N_m[c, k] + κ θ̄[c, k]) / (N_m[c, ·] + κ)
    on items of difficulty d:   θ_md[c, k] ∝ N_md[c, k] + κ_d θ_m[c, k] r_d[c, k]

where r_d[c, k] is how much more often label k meets class c at difficulty d than overall, over all
annotators, with κ_d pseudo-labels per class at the overall share.

Only pairs (annotator and difficulty, label) that occur are stored: memory grows with labels and annotators,
times C, never with annotators times C².
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from annotmix.labels.annotations import Annotations

#: Buffers whose length depends on the labels.
_OF_LABELS = ("pair", "said", "level_pair", "level_said")
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

    pair: Tensor
    said: Tensor
    total: Tensor
    level_pair: Tensor
    level_said: Tensor
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
        C = n_classes
        common = torch.full((C, C), 1 / C) + 2 * torch.eye(C)
        for name, start in {
            "pair": torch.zeros(0, dtype=torch.long),  # m·C + k of the pairs that occur, ascending, (U,)
            "said": torch.zeros(0, C),  # N_m[·, k] of these pairs, (U, C)
            "total": torch.zeros(n_annotators, C),  # N_m[·, all]
            "level_pair": torch.zeros(0, dtype=torch.long),  # (m·D + d)·C + k of those that occur, (V,)
            "level_said": torch.zeros(0, C),
            "level_total": torch.zeros(n_annotators * n_levels, C),
            "common": common / common.sum(dim=1, keepdim=True),  # θ̄, (C, C)
            "ratio": torch.ones(n_levels, C, C),  # r_d
        }.items():
            self.register_buffer(name, start)

    def count(self, labels: Labelled, q: Tensor, level: Tensor | None = None) -> None:
        """Count anew, with class probabilities q, shape (N, C), and difficulties, shape (N,), of the items.

        Without difficulties all items count for the first one.
        """
        C, D = self.n_classes, self.n_levels
        of_item = labels.weighted(q[labels.item])
        d = torch.zeros_like(labels.item) if level is None else level[labels.item]
        cell = labels.annotator * D + d
        self.pair, where = torch.unique(labels.annotator * C + labels.label, return_inverse=True)
        self.level_pair, level_where = torch.unique(cell * C + labels.label, return_inverse=True)
        self.said = _sums(of_item, where, len(self.pair))
        self.level_said = _sums(of_item, level_where, len(self.level_pair))
        self.total = _sums(of_item, labels.annotator, len(self.total))
        self.level_total = _sums(of_item, cell, len(self.level_total))
        by_level = _sums(of_item, d * C + labels.label, D * C).view(D, C, C).transpose(1, 2)  # [d, c, k]
        common = by_level.sum(dim=0) + 1 / C + 2 * torch.eye(C, device=q.device)
        self.common = common / common.sum(dim=1, keepdim=True)
        by_level = by_level + self.kappa_level * self.common
        self.ratio = by_level / by_level.sum(dim=2, keepdim=True) / self.common

    def log_likelihood(
        self, labels: Labelled, q: Tensor, level: Tensor | None = None, *, leave_out: bool = True
    ) -> Tensor:
        """w log θ_md[c, z] of every label z and class c, counted without the label's own item, shape (P, C).

        w is the weight of the label, 1 without weights. `q` and `level` must be the last ones that were
        counted. With difficulties, rows of θ sum to nearly one here: normalising them would need whole
        matrices for single labels.
        """
        C, D = self.n_classes, self.n_levels
        own = labels.weighted(q[labels.item]) if leave_out else q.new_zeros(1)
        all_own = (
            own if labels.pair is None or not leave_out else _sums(own, labels.pair, len(own))[labels.pair]
        )
        # by class, as each label needs one column of its annotator's matrix
        said = self.said[torch.searchsorted(self.pair, labels.annotator * C + labels.label)] - own
        theta = (said + self.kappa * self.common.T[labels.label]) / (
            self.total[labels.annotator] - all_own + self.kappa
        )
        if level is None or D == 1:
            return labels.weighted(theta.clamp_min(TINY).log())
        d = level[labels.item]
        cell = labels.annotator * D + d
        start = theta * self.ratio.transpose(1, 2)[d, labels.label]
        said = self.level_said[torch.searchsorted(self.level_pair, cell * C + labels.label)] - own
        result = (said + self.kappa_level * start) / (self.level_total[cell] - all_own + self.kappa_level)
        return labels.weighted(result.clamp_min(TINY).log())

    def log_confusion(self, annotator: Tensor, level: Tensor | None) -> Tensor:
        """log θ_md, shape (n, C, C), indexed [c, k], of annotators and difficulties, shapes (n,).

        Without difficulties, or where there is only one: log θ_m.
        """
        said = _rows(self.pair, self.said, annotator, self.n_classes)
        theta = (said + self.kappa * self.common) / (self.total[annotator].unsqueeze(-1) + self.kappa)
        if level is None or self.n_levels == 1:
            return theta.clamp_min(TINY).log()
        start = theta * self.ratio[level]
        cell = annotator * self.n_levels + level
        said = _rows(self.level_pair, self.level_said, cell, self.n_classes)
        result = said + self.kappa_level * start
        return (result / result.sum(dim=2, keepdim=True)).clamp_min(TINY).log()

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        for name in _OF_LABELS:
            if (saved := state_dict.get(prefix + name)) is not None:
                setattr(self, name, torch.empty_like(saved, device=self.common.device))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        if len(self.pair) != len(self.said) or len(self.level_pair) != len(self.level_said):
            raise ValueError("The counts of labels and their places differ in number.")


class Labelled:
    """The labels as tensors: item, annotator and label, shapes (P,), and their informative weights.

    A flat distribution must not count as a label of every class: it would be evidence for the class that
    annotators confuse most, that class would grow, and finally all items would belong to it.
    """

    def __init__(self, annotations: Annotations, device: torch.device):
        self.item = torch.tensor(annotations.item, device=device)
        self.annotator = torch.tensor(annotations.annotator, device=device)
        self.label = torch.tensor(annotations.label, device=device)
        self.weight = self.pair = None
        if annotations.weight is not None:
            self.weight = torch.tensor(annotations.informative_weight, dtype=torch.float32, device=device)
            self.pair = torch.tensor(annotations.pair, device=device)

    def weighted(self, values: Tensor) -> Tensor:
        """Values of the labels, shape (P, C), times their weights."""
        return values if self.weight is None else values * self.weight.to(values.dtype).unsqueeze(1)


def _sums(values: Tensor, where: Tensor, n: int) -> Tensor:
    """Sums of the rows of values, shape (P, C), with the same index, shape (n, C)."""
    return values.new_zeros(n, values.shape[1]).index_add_(0, where, values)


def _rows(pair: Tensor, said: Tensor, cell: Tensor, n_classes: int) -> Tensor:
    """Counts [c, k] of every cell, shape (n, C, C); zero for pairs that do not occur."""
    if not len(pair):
        return said.new_zeros(len(cell), n_classes, n_classes)
    wanted = cell.unsqueeze(1) * n_classes + torch.arange(n_classes, device=cell.device)
    at = torch.searchsorted(pair, wanted).clamp_max(len(pair) - 1)
    occurs = (pair[at] == wanted).unsqueeze(-1)
    return (said[at] * occurs).transpose(1, 2)
