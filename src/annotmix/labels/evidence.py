"""The right class of every item, given its labels and a classifier: one posterior for everything.

With z_nm the labels of item n, θ_m the confusion matrix of annotator m, counted without item n (see
`annotmix.labels.confusion`), and p̂_n the class probabilities of a classifier that has not seen item n,

    log q_nc = τ (log p̂_nc − log mean(p̂)_c) + s log π_c + Σ_m log θ_m[c, z_nm] / (1 + (l_n − 1) ρ) + const.

τ says how far the classifier deserves trust, ρ how far the l_n labels of one item err together (Kish's design
effect), and s how far the class shares π that labels suggest are believed. All three are learnt without any
true label, by the likelihood of every label given the other labels of its item,

    ℓ = mean log Σ_c q_{n∖m}(c) θ_m[c, z_nm],   q_{n∖m} without the labels of m.

θ is counted with the classes that labels alone suggest (`annotmix.labels.shrunken`), and once more with q
where that raises ℓ. Without a classifier, and where the classifier does not raise ℓ by more than `SURE`
standard errors, the answer is the labels' alone. True classes of some items (gold) are fixed, count for
annotators, and decide the weights where there are enough of them (`annotmix.labels.gold`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from annotmix._common.progress import Progress
from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import TINY, Confusion, Floats, Labelled, Shrinkage
from annotmix.labels.dependence import answer_of_labels
from annotmix.labels.gold import learn_from_gold
from annotmix.labels.groups import Dependence
from annotmix.labels.names import Index
from annotmix.labels.shrunken import (
    MODELS,
    Gold,
    Shrunken,
    fix,
    label_exponent,
    only,
    row_max,
    sample,
    softmax,
    standard_errors,
)

#: Values of τ, ρ and s to choose from.
TRUST = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5)
CORRELATION = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
SHARES = (0.0, 0.5, 1.0)
#: The classifier counts where it raises ℓ by this many standard errors. With features of pure noise the
#: rise was at most 1.4 in 90 simulated crowds, with useful ones 2.7 or more.
SURE = 2.0
#: Times that θ is counted anew with q, at most: as long as ℓ rises.
RECOUNTS = 5
#: Probabilities of a classifier are kept this far from 0.
LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True, eq=False)
class Weights:
    """How much each part of the evidence counts.

    Attributes
    ----------
    classifier : float
        τ, the trust in the classifier; 0 where it does not help.
    correlation : float
        ρ, how far labels of one item err together; 0 is not at all, 1 makes many labels count as one.
    shares : float
        s, the belief in the class shares that labels suggest; 0 takes equal shares.
    annotators : array, shape (M,), optional
        Factors on the evidence of annotators, learnt from gold.
    classes : array, shape (C,), optional
        Added to the log-probabilities of classes, learnt from gold.
    """

    classifier: float = 0.0
    correlation: float = 0.0
    shares: float = 1.0
    annotators: Floats | None = None
    classes: Floats | None = None

    @property
    def key(self) -> tuple[float, float, float]:
        """τ, ρ and s."""
        return self.classifier, self.correlation, self.shares


@dataclass(frozen=True, eq=False)
class Answer:
    """The posterior, and what it rests on.

    Attributes
    ----------
    q : array, shape (N, C)
    weights : Weights
    confusion : Confusion
        The counts behind θ.
    log_shares, log_mean : array, shape (C,)
        log π and log mean(p̂).
    without, likelihood : float
        ℓ without the classifier and with it.
    rise : float
        Their difference, in standard errors; nan without a classifier.
    gold : arrays of int
        Rows of items and their true classes.
    dependence : Dependence, optional
        Annotators who err together, where they were looked for.
    decides : array, shape (groups,)
        Share of the labelled items that have another answer where all labels of a group count fully than
        where they count as one; in the order of `Groups.members`.
    """

    q: Floats
    weights: Weights
    confusion: Confusion
    log_shares: Floats
    log_mean: Floats
    without: float
    likelihood: float
    rise: float
    gold: Gold
    dependence: Dependence | None = None
    decides: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def helps(self) -> bool:
        """Whether the classifier counts."""
        return self.weights.classifier > 0

    def judge(self, annotations: Annotations, p: Floats | None, row: Index) -> Floats:
        """Class probabilities, shape (n, C), of items that may be others, labelled by the same annotators.

        `row` is each item's place among the items that θ was counted with, -1 for new ones: what an item's
        own labels added to the counts is taken out again.
        """
        a, labelled = (
            annotations,
            Labelled(annotations, None if self.dependence is None else self.dependence.used_groups),
        )
        own_weight = labelled.own_weight * (row >= 0)[a.item]
        own_right = labelled.own_right(self._own(row[a.item], a.label))
        q = np.empty((a.n_items, a.n_classes))
        for items, labels in labelled.pieces():
            who, counts = a.annotator[labels], (labelled.weight, own_weight, own_right)
            own = self._own(row[a.item[labels]])
            said = self.confusion.columns(who, a.label[labels], own, *(part[labels] for part in counts))
            if self.weights.annotators is not None:
                said *= self.weights.annotators[who, None]
            log_p = None if p is None else np.log(np.maximum(p[items], LEAST_PROBABILITY)) - self.log_mean
            sums = labelled.item_sums(said, items, labels)
            q[items] = softmax(joint(labelled.n_labels[items], sums, self.log_shares, log_p, self.weights))
        if p is not None and np.isnan(self.rise):  # nothing is known about the classifier: it decides alone
            q = np.where((labelled.n_labels > 0)[:, None], q, p)
        known = np.full(len(self.confusion.q), -1)
        known[self.gold[0]] = self.gold[1]
        is_gold = np.flatnonzero((row >= 0) & (known[row] >= 0))
        return fix(q, (is_gold, known[row[is_gold]]))

    def _own(self, row: Index, label: Index | slice = slice(None)) -> Floats:
        """Probabilities that θ was counted with, of all classes or of one for each row; 0 for row -1."""
        q = self.confusion.q[row, label]
        q[row < 0] = 0.0
        return q


class Evidence:
    """What labels say about the classes of items, ready to be joined with any classifier.

    Parameters
    ----------
    annotations : Annotations
    gold : arrays of int
        Rows of items and their true classes.
    alone : Shrunken, optional
        The answer without a classifier, where it is known already.

    Attributes
    ----------
    alone : Shrunken
        The answer without a classifier.
    """

    def __init__(self, annotations: Annotations, gold: Gold | None = None, alone: Shrunken | None = None):
        self.annotations = annotations
        self.gold: Gold = (np.zeros(0, np.int64), np.zeros(0, np.int64)) if gold is None else gold
        self.alone = answer_of_labels(annotations, self.gold) if alone is None else alone
        self.dependence = self.alone.dependence
        self.groups = None if self.dependence is None else self.dependence.used_groups
        self.labelled = Labelled(annotations, self.groups)
        share = self.alone.q[self.labelled.labelled].sum(axis=0) + 1
        self.log_shares: Floats = np.log(share / share.sum())
        self.log_mean: Floats = np.zeros(annotations.n_classes)
        self._sample = _Sample(self.labelled)
        self.count(self.alone.q, self.alone.shrinkage)

    def count(self, q: Floats, shrinkage: Shrinkage) -> None:
        """Count the confusion matrices with class probabilities q."""
        self.use(self.counted(q, shrinkage))

    def counted(self, q: Floats, shrinkage: Shrinkage) -> Confusion:
        """Confusion matrices, counted with class probabilities q."""
        return Confusion(self.labelled, q, shrinkage)

    def use(self, confusion: Confusion) -> None:
        """Judge labels by these confusion matrices."""
        self.confusion = confusion
        self.sums: Floats = confusion.item_sums()

    def centre(self, p: Floats) -> Floats:
        """log p̂ − log mean(p̂) over the labelled items, shape (N, C)."""
        p = np.maximum(p, LEAST_PROBABILITY)
        mean = p[self.labelled.labelled].mean(axis=0) if self.labelled.labelled.any() else 1.0
        self.log_mean = np.log(mean) + np.zeros(p.shape[1])
        return np.asarray(np.log(p) - self.log_mean)

    def joint(self, log_p: Floats | None, weights: Weights, items: Index | None = None) -> Floats:
        """log q up to a constant, shape (N, C) or of rows `items`, before gold is fixed."""
        at = slice(None) if items is None else items
        sums = self.sums if weights.annotators is None else self.confusion.item_sums(weights.annotators)
        log_p = None if log_p is None else log_p[at]
        return joint(self.labelled.n_labels[at], sums[at], self.log_shares, log_p, weights)

    def likelihood(self, log_p: Floats | None, weights: Weights) -> Floats:
        """log of the probability of every label given the others of its item, shape (P,)."""
        likelihood = np.empty(len(self.annotations))
        for items, labels in self.labelled.pieces():
            others = _Others(self.labelled, self.confusion.log_likelihood(labels), items, labels)
            own = None if log_p is None else log_p[items]
            prior = _prior(self.log_shares, own, weights, items.stop - items.start)
            likelihood[labels] = others.likelihood(prior, weights.correlation)
        return likelihood

    def learn(self, log_p: Floats | None) -> tuple[Weights, Floats]:
        """The weights with the greatest likelihood of (a sample of) the labels; that of all, shape (P,)."""
        others = self._sample.others(self.confusion)
        weights, tried = Weights(classifier=0.0 if log_p is None else 1.0), {}
        best = tried[weights.key] = self._sample.mean(others, self.log_shares, log_p, weights)
        for name, values in 2 * list(self.grids(log_p).items()):
            for value in values:
                change: dict[str, Any] = {name: value}
                trial = replace(weights, **change)
                if trial.key in tried:
                    continue
                new = tried[trial.key] = self._sample.mean(others, self.log_shares, log_p, trial)
                if new > best + TINY:
                    weights, best = trial, new
        return weights, self.likelihood(log_p, weights)

    def grids(self, log_p: Floats | None) -> dict[str, tuple[float, ...]]:
        """Values of the weights to choose from."""
        grids: dict[str, tuple[float, ...]] = {} if log_p is None else {"classifier": TRUST}
        if (self.labelled.n_labels > 2).any():  # with one other label nothing is known about ρ
            grids["correlation"] = CORRELATION
        return grids | {"shares": SHARES}

    def recount(self, log_p: Floats, weights: Weights, best: Floats) -> tuple[Weights, Floats]:
        """Count θ with q, by the model that raises the likelihood most, if any; learn the weights again."""
        start, sums = self.confusion, self.sums
        counted = self.counted(fix(softmax(self.joint(log_p, weights)), self.gold), start.shrinkage)

        def score(model: Shrinkage) -> float:
            others = self._sample.others(counted.shrunken_by(model))
            return self._sample.mean(others, self.log_shares, log_p, weights)

        self.use(counted.shrunken_by(max(MODELS, key=score)))
        learnt, likelihood = self.learn(log_p)
        if self._mean(likelihood) > self._mean(best):
            return learnt, likelihood
        self.confusion, self.sums = start, sums
        return weights, best

    def _rise(self, likelihood: Floats, without: Floats) -> float:
        """How much greater the likelihood of the labels is, in standard errors."""
        return standard_errors((likelihood - without) * self.labelled.evidence)

    def _mean(self, values: Floats) -> float:
        return weighted_mean(values, self.labelled.evidence)

    def helped_by(self, p: Floats) -> bool:
        """Whether class probabilities p̂, shape (N, C), raise ℓ beyond doubt."""
        with Progress("judging the classifier by labels", 3) as progress:
            self.count(self.alone.q, self.alone.shrinkage)
            progress.advance()
            without = self.learn(None)[1]
            progress.advance()
            likelihood = self.learn(self.centre(p))[1]
            progress.advance()
        return self._rise(likelihood, without) > SURE

    def combine(self, p: Floats | None = None) -> Answer:
        """Join the labels with p̂, shape (N, C), of a classifier that has not seen the items."""
        with Progress("joining labels and classifier", 2 + RECOUNTS) as progress:
            weights, log_p, without, likelihood, rise = self._weigh(p, progress)
        weights = learn_from_gold(self, log_p, weights)
        q = fix(softmax(self.joint(log_p, weights)), self.gold)
        return Answer(
            q,
            weights,
            self.confusion,
            self.log_shares,
            self.log_mean,
            self._mean(without),
            self._mean(likelihood),
            np.nan if p is None else rise,
            self.gold,
            self.dependence,
            deciding_groups(self, log_p, weights),
        )

    def _weigh(
        self, p: Floats | None, progress: Progress
    ) -> tuple[Weights, Floats | None, Floats, Floats, float]:
        """Weights, centred log p̂, the likelihood of labels without and with it, and how much that rises."""
        self.count(self.alone.q, self.alone.shrinkage)
        plain, without = self.learn(None)
        progress.advance()
        log_p = None if p is None else self.centre(p)
        learnt, likelihood = (plain, without) if log_p is None else self.learn(log_p)
        progress.advance()
        rise = self._rise(likelihood, without)
        if log_p is None or not rise > SURE:
            weights = Weights(0.0, self.alone.correlation, float(self.alone.shrinkage.shares))
            return weights, log_p, without, likelihood, rise
        for _ in range(RECOUNTS):
            before = likelihood
            learnt, likelihood = self.recount(log_p, learnt, likelihood)
            progress.advance()
            if likelihood is before:
                break
        return learnt, log_p, without, likelihood, rise


def joint(
    n_labels: Index | Floats, sums: Floats, log_shares: Floats, log_p: Floats | None, weights: Weights
) -> Floats:
    """log q up to a constant, shape (n, C).

    The items have `n_labels` labels, whose evidence Σ w log θ[c, z] is `sums`, shape (n, C).
    """
    exponent = label_exponent(n_labels, weights.correlation)[:, None]
    return np.asarray(_prior(log_shares, log_p, weights, len(sums)) + exponent * sums)


def deciding_groups(evidence: Evidence, log_p: Floats | None, weights: Weights) -> Floats:
    """The share of items that every group of annotators decides, see `Answer.decides`."""
    groups = None if evidence.dependence is None else evidence.dependence.groups
    if groups is None or not len(groups.first):
        return np.zeros(0)
    a, labelled, members = evidence.annotations, evidence.labelled, groups.members
    of = np.full(a.n_annotators, -1)
    for g, who in enumerate(members):
        of[who] = g
    weight = (
        labelled.weight if weights.annotators is None else labelled.weight * weights.annotators[a.annotator]
    )
    share = groups.shares(a)
    joint, changed = evidence.joint(log_p, weights), np.zeros(len(members))
    exponent = label_exponent(labelled.n_labels, weights.correlation)
    open_items = labelled.labelled.copy()
    open_items[evidence.gold[0]] = False
    for items, labels in labelled.pieces():
        rows = np.flatnonzero(of[a.annotator[labels]] >= 0) + labels.start
        said = evidence.confusion.log_likelihood(rows) * (weight * exponent[a.item])[rows, None]
        place, member_of = a.item[rows] - items.start, of[a.annotator[rows]]
        for g in range(len(members)):
            inside = member_of == g
            best = []
            for counted in (np.ones(len(a)), share):
                other = joint[items].copy()
                change = (counted - labelled.share)[rows[inside], None] * said[inside]
                np.add.at(other, place[inside], change)
                best.append(other.argmax(axis=1))
            changed[g] += ((best[0] != best[1]) & open_items[items]).sum()
    return changed / max(int(labelled.labelled.sum()), 1)


def weighted_mean(values: Floats, weight: Floats) -> float:
    """Σ w v / Σ w; 0 without values."""
    return float(values @ weight / max(weight.sum(), TINY))


class _Others:
    """What the other labels of its item say about every label, whatever the weights are.

    `items` and `labels` are a piece of `labelled`, and `said` is log θ of its labels, shape (labels, C).
    """

    def __init__(self, labelled: Labelled, said: Floats, items: slice, labels: slice):
        self.item = labelled.annotations.item[labels] - (items.start or 0)
        self.n_others = labelled.n_others(items, labels)
        self.theta = np.exp(said)
        self.sums = np.take(labelled.item_sums(said, items, labels), self.item, axis=0)
        self.sums -= labelled.block_sums(said, labels)

    def likelihood(self, prior: Floats, correlation: float) -> Floats:
        """log of the probability of every label given the others; `prior` has shape (items, C)."""
        joint = self.sums * label_exponent(self.n_others, correlation)[:, None]
        joint += np.take(prior, self.item, axis=0)
        joint -= row_max(joint)[:, None]
        q = np.exp(joint, out=joint)
        total = q @ np.ones(q.shape[1])
        return np.asarray(np.log(np.einsum("pc,pc->p", q, self.theta) / total))


class _Sample:
    """Items, all or a random sample of them, whose labels the weights are learnt by."""

    def __init__(self, labelled: Labelled):
        a, self.items = labelled.annotations, sample(labelled.annotations)
        self.labelled, self.labels = labelled, np.arange(len(a))
        if self.items is not None:
            part, place = only(a, self.items)
            self.labelled, self.labels = Labelled(part, labelled.groups), np.flatnonzero(place[a.item] >= 0)

    def others(self, confusion: Confusion) -> _Others:
        """What the other labels of their items say about the sampled labels."""
        said = confusion.log_likelihood(self.labels)
        return _Others(self.labelled, said, slice(None), slice(None))

    def mean(self, others: _Others, log_shares: Floats, log_p: Floats | None, weights: Weights) -> float:
        """Mean log-likelihood of the sampled labels."""
        log_p = log_p if log_p is None or self.items is None else log_p[self.items]
        prior = _prior(log_shares, log_p, weights, self.labelled.annotations.n_items)
        return weighted_mean(others.likelihood(prior, weights.correlation), self.labelled.evidence)


def _prior(log_shares: Floats, log_p: Floats | None, weights: Weights, n_items: int) -> Floats:
    """What is known of the classes before the labels, shape (N, C)."""
    prior = weights.shares * log_shares
    if weights.classes is not None:
        prior = prior + weights.classes
    if log_p is None or not weights.classifier:
        return np.broadcast_to(prior, (n_items, len(prior)))
    return np.asarray(prior + weights.classifier * log_p)
