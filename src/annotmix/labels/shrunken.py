"""The classes of items from labels alone: Dawid–Skene, shrunken as far as held-out labels advise.

How much the matrices of annotators differ, whether some classes are rarer, and after how many rounds EM
begins to fit noise are properties of a crowd. They are learnt: for every model in `MODELS`, each of five
parts of the labels is predicted from the other four,

    ℓ = mean log Σ_c q_n(c) θ_m[c, z_nm],   q and θ from the other labels,

and models that ℓ cannot tell apart are averaged, each with the share of bootstrap samples of the labels in
which it is best (pseudo-BMA+, Yao et al., Bayesian Analysis 13, 2018). The grid was chosen on simulated
crowds; no true label was looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import TINY, Confusion, Floats, Labelled, Shrinkage
from annotmix.labels.names import Index

#: Rows of items whose true classes are known, and these classes.
Gold = tuple[Index, Index]

#: Everybody alike; everybody with a skill of their own; matrices by class, common and of their own.
MODELS = (
    Shrinkage(),
    *(Shrinkage(skill=skill, shares=shares) for skill, shares in product((3, 20), (False, True))),
    *(Shrinkage(skill, 10, own, True) for skill, own in product((np.inf, 3, 20), (np.inf, 50, 10, 3, 1))),
    *(Shrinkage(skill, 10, own) for skill, own in product((np.inf, 20), (10, 3))),
)
#: Rounds of EM to choose from.
ROUNDS = (2, 5, 15)
#: ρ, how far labels of one item err together, to choose from; 0 is not at all.
CORRELATIONS = (0.1, 0.3, 1.0)
#: Parts of the labels, each predicted from the others.
FOLDS = 5
#: Models that are worse than the best by more standard errors are not tried on further parts.
HOPELESS = 2.5
BOOTSTRAPS = 200
#: Models with a smaller share are left out of the average.
LEAST_SHARE = 0.02
#: Fewer held-out labels cannot tell models apart.
FEWEST = 50
#: With more labels × classes, models are compared on a sample of the items, of at least `SAMPLE` labels.
BUDGET, SAMPLE = 400_000, 4_000


@dataclass(frozen=True, eq=False)
class Shrunken:
    """Class probabilities from labels alone, and the model they come from.

    Attributes
    ----------
    q : array, shape (N, C)
    shrinkage : Shrinkage
        The best single model.
    correlation : float
        ρ: each of l labels of an item counts 1 / (1 + (l − 1) ρ), as in Kish's design effect.
    shares : dict of (Shrinkage, rounds) to float
        The models that were averaged; empty where too few labels could be held out to choose.
    """

    q: Floats
    shrinkage: Shrinkage
    correlation: float
    shares: dict[tuple[Shrinkage, int], float]


def shrunken_dawid_skene(annotations: Annotations, gold: Gold) -> Shrunken:
    """Class probabilities of the items from labels alone; `gold` are rows of items and their classes."""
    labelled = Labelled(annotations)
    start = fix(labelled.votes(), gold)
    if (annotations.labels_per_item > 1).sum() < FEWEST:
        return Shrunken(start, Shrinkage(), 0.0, {})
    parts = _parts(*_sample(annotations, gold))
    shares, correlation = _choose(parts)
    q = sum(
        share * expectation_maximisation(labelled, start, model, rounds, correlation, gold)
        for (model, rounds), share in shares.items()
    )
    best = max(shares, key=lambda key: shares[key])
    return Shrunken(np.asarray(q), best[0], correlation, shares)


def expectation_maximisation(
    labelled: Labelled,
    q: Floats,
    shrinkage: Shrinkage,
    rounds: int,
    correlation: float,
    gold: Gold,
) -> Floats:
    """q, shape (N, C), after rounds of counting (without the item itself) and of Bayes' rule."""
    exponent = label_exponent(labelled.n_labels, correlation)[:, None]
    for _ in range(rounds):
        confusion = Confusion(labelled, q, shrinkage)
        joint = confusion.log_shares + exponent * (labelled.by_item @ confusion.log_likelihood())
        q = fix(softmax(joint), gold)
    return q


def label_exponent(n_labels: Index, correlation: float) -> Floats:
    """1 / (1 + (l − 1) ρ) of items with l labels, shape as `n_labels`."""
    return np.asarray(1 / (1 + np.maximum(n_labels - 1, 0) * correlation))


def fix(q: Floats, gold: Gold) -> Floats:
    """q with certainty about gold items."""
    item, label = gold
    q[item] = 0.0
    q[item, label] = 1.0
    return q


def softmax(joint: Floats) -> Floats:
    """exp, normalised over the last axis."""
    q = np.exp(joint - joint.max(axis=-1, keepdims=True))
    return np.asarray(q / q.sum(axis=-1, keepdims=True))


# ---------------------------------------------------------------- choosing


class _Part:
    """Labels to learn from, and held-out labels of the same items to predict."""

    def __init__(self, annotations: Annotations, held: np.ndarray, gold: Gold):
        self.labelled, self.gold = Labelled(annotations.keep(~held)), gold
        self.start = fix(self.labelled.votes(), gold)
        known = self.labelled.n_labels > 0
        known[gold[0]] = True
        self.held = annotations.keep(held & known[annotations.item])
        self.weight = np.ones(len(self.held)) if self.held.weight is None else self.held.weight

    def scores(self, shrinkage: Shrinkage, correlation: float = 0.0) -> Floats:
        """Log-likelihood of the held-out labels after each of `ROUNDS`, shape (rounds, labels)."""
        q, held, done, result = self.start, self.held, 0, []
        for rounds in ROUNDS:
            q = expectation_maximisation(self.labelled, q, shrinkage, rounds - done, correlation, self.gold)
            theta = Confusion(self.labelled, q, shrinkage).columns(held.annotator, held.label)
            result.append(np.log(np.maximum((q[held.item] * np.exp(theta)).sum(axis=1), TINY)))
            done = rounds
        return np.array(result) * self.weight


def _sample(annotations: Annotations, gold: Gold) -> tuple[Annotations, Gold]:
    """The labels and the gold classes of a random sample of the items, if there are very many."""
    most = max(BUDGET // annotations.n_classes, SAMPLE)
    if len(annotations) <= most:
        return annotations, gold
    order = np.random.default_rng(0).permutation(annotations.n_items)
    rows = np.sort(order[np.cumsum(annotations.labels_per_item[order]) <= most])
    place = np.full(annotations.n_items, -1)
    place[rows] = np.arange(len(rows))
    sampled = place[gold[0]] >= 0
    part = annotations.keep(place[annotations.item] >= 0).align(items=annotations.items[rows])
    return part, (place[gold[0]][sampled], gold[1][sampled])


def _parts(annotations: Annotations, gold: Gold) -> list[_Part]:
    """Five ways to hold out a fifth of the labels."""
    rng = np.random.default_rng(0)
    fold = (rng.permutation(len(annotations)) % FOLDS)[annotations.pair]  # soft labels stay whole
    alone = annotations.labels_per_item == 1
    alone[gold[0]] = False
    eligible = ~alone[annotations.item]
    return [_Part(annotations, (fold == k) & eligible, gold) for k in range(FOLDS)]


def _choose(parts: list[_Part]) -> tuple[dict[tuple[Shrinkage, int], float], float]:
    """The share of each model in the average, and ρ."""
    scores: dict[Shrinkage, Floats] = {}
    alive = list(MODELS)
    for part in parts:
        for model in alive:
            new = part.scores(model)
            scores[model] = np.hstack([scores[model], new]) if model in scores else new
        best = max((scores[m][r] for m in alive for r in range(len(ROUNDS))), key=np.mean)
        alive = [m for m in alive if min(standard_errors(best - s) for s in scores[m]) < HOPELESS]
    keys = [(model, r) for model in alive for r in range(len(ROUNDS))]
    table = np.array([scores[model][r] for model, r in keys])
    draws = np.random.default_rng(0).exponential(size=(table.shape[1], BOOTSTRAPS))
    share = np.bincount((table @ draws).argmax(axis=0), minlength=len(keys)) / BOOTSTRAPS
    top = int(share.argmax())
    kept = {(keys[k][0], ROUNDS[keys[k][1]]): share[k] for k in np.flatnonzero(share >= LEAST_SHARE)}
    total = sum(kept.values())
    correlation = _correlation(parts, *keys[top], table[top])
    return {key: float(value / total) for key, value in kept.items()}, correlation


def _correlation(parts: list[_Part], model: Shrinkage, rounds: int, best: Floats) -> float:
    """The smallest ρ whose successor predicts no better; only items with three labels know."""
    result = 0.0
    if not any((part.labelled.n_labels > 1).any() for part in parts):
        return result
    for correlation in CORRELATIONS:
        score = np.hstack([part.scores(model, correlation)[rounds] for part in parts])
        if not standard_errors(score - best) > 1:
            break
        result, best = correlation, score
    return result


def standard_errors(difference: Floats) -> float:
    """Mean difference in its standard errors; 0 where there is none."""
    error = difference.std() / np.sqrt(len(difference))
    return float(difference.mean() / error) if error > 0 else 0.0
