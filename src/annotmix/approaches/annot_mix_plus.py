"""annot-mix-plus: refined labels from classifiers that have not seen them.

The items are split into K folds. K classifiers learn at the same time, each from all folds but one, together
with the final classifier, which learns from all; their targets are class probabilities q, mixed in a fold:

    x̃ = λ x_i + (1−λ) x_î,   q̃ = λ q_i + (1−λ) q_î,   loss = −mean Σ_c q̃_c log p_c(x̃),   λ ~ Beta(α, α)

q starts as the answer of labels alone (`annotmix.labels.shrunken`). From the first fifth of the epochs on it
is refined after every epoch, with p̂_n the prediction of the classifier that has not seen item n, θ counted
without item n (`annotmix.networks.counting`), and each of the l_n labels of the item weighing
β_n = max(β, 1/l_n):

    q_nc ∝ p̂_nc · π_c^s / mean(p̂)_c · Π_m θ_m[c, z_nm]^β_n

Refinement begins only once p̂ predicts labels better than the other labels of their item alone do, which is
tried after every fifth of the epochs: otherwise the classifiers would hear the echo of their own errors, as
their predictions come back to them through the targets of other folds.

A classifier that has seen a label confirms it; one that has not can correct it. Labels of one item are wrong
together more often than if they were independent, hence β < 1; a single label has no such company. π are the
class shares that labels alone suggest; these are off by some 25 %, so log π is shrunken towards equal shares,
s = max(0, 1 − 0.06 / Var(log π)). Annotators are described by θ, for three levels of difficulty of the items
(entropy of p̂): there is no annotator network. Labels of annotators who copy each other count less
(`annotmix.labels.dependence`).

Ours. It combines Dawid & Skene (Applied Statistics 28, 1979), mixup (Zhang et al., ICLR 2018) and
cross-fitting (Chernozhukov et al., The Econometrics Journal 21, 2018); docs/results/annot-mix-plus.md has
figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor

from annotmix.approaches.base import Approach, Batch, PerfDefinition
from annotmix.labels.annotations import Annotations
from annotmix.labels.evidence import Evidence
from annotmix.networks import Classifier, mixup
from annotmix.networks.counting import TINY, CountedConfusion, Labelled
from annotmix.networks.stack import Committee

if TYPE_CHECKING:
    from annotmix.networks.features import Features

#: Share of the epochs before the first refinement, and between tries to begin it.
WARM_UP = 0.2
#: Variance of the error of log class shares that are taken from labels alone.
SHARE_NOISE = 0.06
#: Items whose difficulties set the borders of the levels (torch.quantile takes no more than 16 million).
QUANTILE_LIMIT = 1_000_000

#: Networks beside the final one that train at the same time.
MOST_FOLDS = 100


class AnnotMixPlus(Approach):
    """Cross-fitted classifiers and counted confusion matrices refine the labels they learn from.

    Parameters
    ----------
    alpha : float, default=0.4
        λ ~ Beta(alpha, alpha) is the share of the first item in a mix; 0 switches mixing off.
    beta : float, default=0.5
        Weight of each of several labels of an item; a single label always has the weight 1.
    folds : int, default=5
        Number of classifiers, each trained without one part of the items; 0 switches cross-fitting off.
    kappa : float, default=3.0
        Pseudo-labels from the common confusion matrix in every row of an annotator's matrix.
    levels : int, default=3
        Levels of difficulty with a confusion matrix of their own.
    prior : {"shrunken", "labels", "equal", "none"}, default="shrunken"
        The class shares that predictions are corrected towards: the shares of the labels, shrunken towards
        equal shares; the shares of the labels; equal shares; or no correction.
    ensemble : bool, default=False
        Average the class probabilities of all classifiers instead of keeping the final one alone.
    """

    name = "annot-mix-plus"
    perf: ClassVar[PerfDefinition | None] = "diagonal"
    _committee: ClassVar[type[Committee]] = Committee
    classifier: Committee
    q: Tensor | None
    fold: Tensor | None
    tries: Tensor
    refining: Tensor
    cuts: Tensor

    def __init__(
        self,
        classifier: Classifier,
        n_annotators: int,
        *,
        alpha: float = 0.4,
        beta: float = 0.5,
        folds: int = 5,
        kappa: float = 3.0,
        levels: int = 3,
        prior: str = "shrunken",
        ensemble: bool = False,
    ):
        _check(alpha, beta, folds, kappa, levels, prior)
        super().__init__(self._committee(classifier, folds, ensemble), n_annotators)
        self.alpha, self.beta, self.folds, self.prior = alpha, beta, folds, prior
        self.confusion = CountedConfusion(n_annotators, classifier.n_classes, levels, kappa)
        self.register_buffer("q", None)
        self.register_buffer("fold", None)
        self.register_buffer("tries", torch.zeros((), dtype=torch.long))
        self.register_buffer("refining", torch.tensor(folds == 0))
        # borders between the levels; at first no entropy is above them
        self.register_buffer("cuts", torch.full((levels - 1,), math.log(classifier.n_classes) + 1))

    # ---------------------------------------------------------------- training

    def begin(self, annotations: Annotations, rng: np.random.Generator) -> None:
        """Split the items into folds and take the first q from the labels alone."""
        device = self.cuts.device
        self.evidence = Evidence(annotations, self.gold)
        self.labels = Labelled(annotations, device, self.evidence.groups)
        n_labels = torch.tensor(self.evidence.labelled.n_labels, device=device)
        self.weight, self.labelled = self._label_weight(n_labels), n_labels > 0
        dealt = rng.permutation(annotations.n_items) % max(self.folds, 1)
        self.fold = torch.from_numpy(dealt).to(device)
        self.q = torch.tensor(self.evidence.alone.q, dtype=torch.float32, device=device)
        self.share = self.q[self.labelled].mean(dim=0)

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Cross-entropy of the final classifier, with the gradient of all classifiers."""
        x, q, fold = self._mixed(batch, rng)
        if self.classifier.stack is None:
            return -(q * self.classifier.log_proba(self.classifier.features(x))).sum() / len(q)
        log_p: Tensor = self.classifier.stack(x)  # (B, 1 + K, C), the final classifier first
        share = self._shares(fold)
        each = -(share.unsqueeze(2) * q.unsqueeze(1) * log_p).sum(dim=(0, 2))  # (1 + K,)
        total: Tensor = each.sum()
        return total - (total - each[0]).detach()  # the value is the loss of the final classifier

    def _mixed(self, batch: Batch, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Items and targets, mixed within their folds, and the folds."""
        assert self.q is not None
        assert self.fold is not None
        assert batch.rows is not None
        x, q, fold = batch.x, self.q[batch.rows], self.fold[batch.rows]
        if self.alpha > 0:
            partner = torch.from_numpy(mixup.pair_within(fold.cpu().numpy(), rng)).to(fold.device)
            lam = mixup.coefficients(len(fold), self.alpha, rng).to(fold.device)
            x, q = mixup.mix(x, partner, lam), mixup.mix(q, partner, lam)
        return x, q, fold

    def _shares(self, fold: Tensor) -> Tensor:
        """Weights of the items in the loss of every classifier, shape (B, 1 + K).

        Each has the mean over the items that it may see; the final one sees all.
        """
        seen = fold.unsqueeze(1) != torch.arange(-1, self.folds, device=fold.device)
        return seen / seen.sum(dim=0).clamp_min(1)

    @torch.no_grad()
    def after_epoch(self, X: Features, done: float) -> None:
        """Refine q by the predictions of classifiers for items that they have not seen."""
        if done < WARM_UP:
            return
        assert self.q is not None
        log_p = self._unseen_log_proba(X)
        entropy = _entropy(log_p)
        at = torch.linspace(0, 1, len(self.cuts) + 2, device=log_p.device)[1:-1]
        self.cuts = torch.quantile(entropy[self.labelled][:QUANTILE_LIMIT], at) if len(at) else self.cuts
        level = torch.bucketize(entropy, self.cuts)
        self._try_refining(log_p, done)
        if self.refining:
            self.confusion.count(self.labels, self.q, level)
            prior = log_p + self._correction(log_p.exp()[self.labelled].mean(dim=0), self.share)
            self.q = torch.softmax(self.confusion.item_sums(prior, self.weight), dim=1)
            self._fix_gold()
        self.confusion.count(self.labels, self.q, level)

    def _try_refining(self, log_p: Tensor, done: float) -> None:
        """Begin to refine if a fifth of the epochs has passed and the classifiers help."""
        now = int(done / WARM_UP + 1e-9)
        if not self.refining and now > self.tries:
            self.refining.fill_(self.evidence.helped_by(log_p.exp().double().cpu().numpy()))
        self.tries.fill_(now)

    def _fix_gold(self) -> None:
        assert self.q is not None
        if self.gold is not None:
            item, label = (torch.from_numpy(part).to(self.q.device) for part in self.gold)
            self.q[item] = torch.nn.functional.one_hot(label, self.q.shape[1]).to(self.q)

    @torch.no_grad()
    def unseen_log_proba(self, X: Features) -> Tensor | None:
        """log p̂, shape (N, C): of every item by the classifier that has not seen it."""
        return self._unseen_log_proba(X) if self.folds else None

    def _unseen_log_proba(self, X: Features) -> Tensor:
        """log p̂, shape (N, C): of every item by the classifier that has not seen it."""
        return self._unseen(X, lambda network, x: network.log_proba(network.features(x)))

    def _unseen(self, X: Features, say: Callable[[Classifier, Tensor], Tensor]) -> Tensor:
        """What the classifier that has not seen an item says about it, shape (N, C)."""
        assert self.fold is not None
        fold, stack = self.fold, self.classifier.stack
        networks = [self.classifier.first] if stack is None else []
        networks += [] if stack is None else [stack.member(1 + k) for k in range(self.folds)]
        for network in networks:
            network.eval()

        def unseen(rows: slice, x: Tensor) -> Tensor:
            said = x.new_empty(len(x), self.classifier.n_classes, dtype=torch.float32)
            for k, network in enumerate(networks):
                here = torch.nonzero(fold[rows] == k).flatten()
                part = say(network, x.index_select(0, here))
                said.index_copy_(0, here, part)
            return said

        self.eval()
        said = X.map(unseen)
        self.train()
        return said

    def _correction(self, mean: Tensor, share: Tensor) -> Tensor:
        """log π_c^s / mean(p̂)_c, shape (C,), of class shares π."""
        if self.prior == "none":
            return torch.zeros_like(mean)
        log_share = share.clamp_min(TINY).log()
        s = {"labels": 1.0, "equal": 0.0}.get(self.prior)
        if s is None:
            s = max(0.0, 1 - SHARE_NOISE / max(float(log_share.var(correction=0)), TINY))
        return s * log_share - mean.clamp_min(TINY).log()

    def finish(self) -> None:
        """Keep the final classifier and the counts, and the others only where they are averaged."""
        self.classifier.drop_folds()
        self.q = self.fold = None
        self.__dict__.pop("evidence", None)

    # ---------------------------------------------------------------- annotators

    def log_confusion(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log θ of the annotators at the difficulty of the items, shape (n, C, C)."""
        level = torch.bucketize(_entropy(self.classifier.log_proba(h)), self.cuts)
        return self.confusion.log_confusion(annotator, level)

    def _label_weight(self, n_labels: Tensor) -> Tensor:
        """β_n = max(β, 1/n), shape as `n_labels`."""
        return (1 / n_labels.clamp_min(1).float()).clamp_min(self.beta)


def _entropy(log_p: Tensor) -> Tensor:
    """Entropy of class probabilities, shape (n,), of log p, shape (n, C)."""
    return -(log_p.exp() * log_p).sum(dim=-1)


def _check(alpha: float, beta: float, folds: int, kappa: float, levels: int, prior: str) -> None:
    if not alpha >= 0:
        raise ValueError(f"alpha must be 0 (no mixing) or positive, found {alpha}.")
    if not 0 <= beta <= 1:
        raise ValueError(f"beta, the weight of a label among several, must lie in [0, 1], found {beta}.")
    if folds != 0 and not 2 <= folds <= MOST_FOLDS:
        raise ValueError(f"folds must be 0 (no cross-fitting) or from 2 to {MOST_FOLDS}, found {folds}.")
    if not kappa > 0:
        raise ValueError(f"kappa must be positive, found {kappa}.")
    if not levels >= 1:
        raise ValueError(f"levels must be at least 1, found {levels}.")
    if prior not in ("shrunken", "labels", "equal", "none"):
        raise ValueError(f'prior must be "shrunken", "labels", "equal" or "none", found {prior!r}.')
