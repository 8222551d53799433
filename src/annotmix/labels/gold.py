"""Weights of the evidence, learnt from true classes of some items (gold).

Gold says what no likelihood of labels can: how far annotators err together. τ, ρ and s are those with the
best log q of the gold classes, each predicted as if it were not gold. Then every annotator m gets a factor
1 + δ_m on their evidence, and every class c an offset b_c:

    log q_nc = prior_nc + b_c + Σ_m (1 + δ_m) log θ_m[c, z_nm] / (1 + (l_n − 1) ρ) + const,

with the least −Σ log q_n(gold) + λ/2 (Σ δ² + Σ b²). λ is chosen by cross-validation over the gold items, and
is infinite (no factors) unless they are predicted better.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from annotmix.labels.confusion import Floats
from annotmix.labels.names import Index
from annotmix.labels.shrunken import label_exponent

if TYPE_CHECKING:
    from annotmix.labels.evidence import Evidence, Weights

#: Gold items that decide the weights: ten for each of the three, a usual rule of thumb.
ENOUGH = 30
#: λ to choose from.
PENALTIES = (100.0, 30.0, 10.0, 3.0, 1.0)
FOLDS = 5


def learn_from_gold(evidence: Evidence, log_p: Floats | None, weights: Weights) -> Weights:
    """Weights that predict the gold classes best; `weights` as they are with too few gold items."""
    item, label = evidence.gold
    if len(item) < ENOUGH:
        return weights
    grids = evidence.grids(log_p)
    values: list[dict[str, Any]] = [dict(zip(grids, v, strict=True)) for v in product(*grids.values())]
    trials = [replace(weights, **v) for v in values]
    weights = max(trials, key=lambda trial: _log_q(evidence.joint(log_p, trial, item), label).sum())
    problem = _Factors(evidence, log_p, weights)
    fold = np.random.default_rng(0).permutation(len(item)) % FOLDS
    best, chosen = problem.log_q(np.zeros(problem.n), np.arange(len(item))), None
    for penalty in PENALTIES:
        score = np.empty(len(item))
        for k in range(FOLDS):
            found = problem.solve(penalty, np.flatnonzero(fold != k))
            score[fold == k] = problem.log_q(found, np.flatnonzero(fold == k))
        if score.mean() > best.mean():
            best, chosen = score, penalty
    if chosen is None:
        return weights
    factors, offsets = problem.split(problem.solve(chosen, np.arange(len(item))))
    return replace(weights, annotators=1 + factors, classes=offsets)


class _Factors:
    """δ and b, one vector of `n` numbers, and the gold classes that they predict."""

    def __init__(self, evidence: Evidence, log_p: Floats | None, weights: Weights):
        item, self.label = evidence.gold
        a = evidence.annotations
        place = np.full(a.n_items, -1)
        place[item] = np.arange(len(item))
        rows = np.flatnonzero(place[a.item] >= 0)
        exponent = label_exponent(evidence.labelled.n_labels, weights.correlation)
        scale = exponent[a.item[rows]] * evidence.labelled.evidence[rows]
        self.said = evidence.confusion.log_likelihood(rows) * scale[:, None]
        self.gold, self.annotator = place[a.item[rows]], a.annotator[rows]
        self.joint = evidence.joint(log_p, weights)[item]
        self.n_annotators, self.n = a.n_annotators, a.n_annotators + a.n_classes

    def split(self, values: Floats) -> tuple[Floats, Floats]:
        """δ and b."""
        return values[: self.n_annotators], values[self.n_annotators :]

    def log_q(self, values: Floats, which: Index) -> Floats:
        """log q of the gold classes of some gold items, shape (len(which),)."""
        return _log_q(self._joint(values)[which], self.label[which])

    def solve(self, penalty: float, which: Index) -> Floats:
        """δ and b with the least penalised loss on some gold items."""
        used = np.zeros(len(self.label), dtype=bool)
        used[which] = True

        def loss(values: Floats) -> tuple[float, Floats]:
            joint = self._joint(values)
            q = np.exp(joint - joint.max(axis=1, keepdims=True))
            q /= q.sum(axis=1, keepdims=True)
            slope = q
            value = -_log_q(joint[used], self.label[used]).sum()
            slope[np.arange(len(q)), self.label] -= 1
            slope[~used] = 0
            by_label = (slope[self.gold] * self.said).sum(axis=1)
            gradient = np.concatenate(
                [np.bincount(self.annotator, by_label, self.n_annotators), slope.sum(axis=0)]
            )
            return value + penalty / 2 * values @ values, gradient + penalty * values

        from scipy.optimize import minimize  # slow to import

        return np.asarray(minimize(loss, np.zeros(self.n), jac=True, method="L-BFGS-B").x)

    def _joint(self, values: Floats) -> Floats:
        factors, offsets = self.split(values)
        joint = self.joint + offsets
        np.add.at(joint, self.gold, self.said * factors[self.annotator, None])
        return joint


def _log_q(joint: Floats, label: Index) -> Floats:
    """log q of the classes `label`, shape (n,), from log q up to a constant, shape (n, C)."""
    top = joint.max(axis=1)
    total = top + np.log(np.exp(joint - top[:, None]).sum(axis=1))
    return np.asarray(joint[np.arange(len(label)), label] - total)
