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
from functools import reduce
from itertools import product

import numpy as np

from annotmix._common.progress import Progress
from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import BLOCK, TINY, Confusion, Floats, Labelled, Shrinkage
from annotmix.labels.groups import Dependence, Groups
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
ROUNDS = (3, 6, 15)
#: ρ, how far labels of one item err together, to choose from; 0 is not at all.
CORRELATIONS = (0.1, 0.3, 1.0)
#: EM ends where no probability changes by more.
CONVERGED = 1e-3
#: Parts of the labels, each predicted from the others.
FOLDS = 5
#: Models that are worse than the best by more standard errors are not tried on further parts.
HOPELESS = 2.0
BOOTSTRAPS = 200
#: Models with a smaller share are left out of the average.
LEAST_SHARE = 0.02
#: Fewer held-out labels cannot tell models apart.
FEWEST = 50
#: Models and weights are compared on a sample of the items with at most `BUDGET` labels × (C + `PER_LABEL`),
#: or with `SAMPLE` labels where this is more; of very many classes with at most `WIDE` labels × C.
#: `PER_LABEL` is the work that a label makes without classes.
BUDGET, PER_LABEL, SAMPLE, WIDE = 100_000, 8, 12_000, 3_000_000


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
    dependence : Dependence, optional
        Annotators who err together.
    """

    q: Floats
    shrinkage: Shrinkage
    correlation: float
    shares: dict[tuple[Shrinkage, int], float]
    dependence: Dependence | None = None


def shrunken_dawid_skene(annotations: Annotations, gold: Gold, groups: Groups | None = None) -> Shrunken:
    """Class probabilities of the items from labels alone.

    `gold` are rows of items and their classes, `groups` annotators who err together.
    """
    labelled = Labelled(annotations, groups)
    start = fix(labelled.votes(), gold)
    if (annotations.labels_per_item > 1).sum() < FEWEST:
        return Shrunken(start, Shrinkage(), 0.0, {})
    shares, correlation = _choose(parts(*sampled(annotations, gold, groups)))
    q = np.zeros_like(start)
    by_model: dict[Shrinkage, dict[int, float]] = {}
    for (model, rounds), share in shares.items():
        by_model.setdefault(model, {})[rounds] = share
    with Progress("Dawid–Skene", sum(max(by_rounds) for by_rounds in by_model.values())) as progress:
        for model, by_rounds in by_model.items():
            q += _average(labelled, start, model, by_rounds, correlation, gold, progress)
    best = max(shares, key=lambda key: shares[key])
    return Shrunken(q, best[0], correlation, shares)


def _average(
    labelled: Labelled,
    q: Floats,
    model: Shrinkage,
    shares: dict[int, float],
    correlation: float,
    gold: Gold,
    progress: Progress,
) -> Floats:
    """Σ share · q after the rounds that have a share, shape (N, C)."""
    result, done = np.zeros_like(q), 0
    for rounds in sorted(shares):
        q = expectation_maximisation(labelled, q, model, rounds - done, correlation, gold, progress)
        result += shares[rounds] * q
        done = rounds
    return result


def expectation_maximisation(
    labelled: Labelled,
    q: Floats,
    shrinkage: Shrinkage,
    rounds: int,
    correlation: float,
    gold: Gold,
    progress: Progress | None = None,
) -> Floats:
    """q, shape (N, C), after rounds of counting (without the item itself) and of Bayes' rule.

    The rounds end early where no probability changes by more than `CONVERGED`.
    """
    exponent = label_exponent(labelled.n_labels, correlation)[:, None]
    done, converged = 0, False
    while done < rounds and not converged:
        confusion = Confusion(labelled, q, shrinkage)
        joint = confusion.item_sums()
        joint *= exponent
        joint += confusion.log_shares
        last, q = q, fix(softmax(joint, out=joint), gold)
        done, converged = done + 1, largest_change(last, q) < CONVERGED
        if progress is not None:
            progress.advance(steps=rounds - done + 1 if converged else 1)
    return q


def largest_change(before: Floats, after: Floats) -> float:
    """max |before − after|, shapes (N, C)."""
    step = max(BLOCK // max(before.shape[1], 1), 1)
    pieces = (slice(n, n + step) for n in range(0, len(before), step))
    return max((float(np.abs(before[piece] - after[piece]).max()) for piece in pieces), default=0.0)


def label_exponent(n_labels: Index | Floats, correlation: float) -> Floats:
    """1 / (1 + (l − 1) ρ) of items with l labels, shape as `n_labels`."""
    return np.asarray(1 / (1 + np.maximum(n_labels - 1, 0) * correlation))


def fix(q: Floats, gold: Gold) -> Floats:
    """q with certainty about gold items."""
    item, label = gold
    q[item] = 0.0
    q[item, label] = 1.0
    return q


def softmax(joint: Floats, out: Floats | None = None) -> Floats:
    """exp, normalised over the last axis; written into `out`, which may be `joint`."""
    q = np.subtract(joint, row_max(joint)[..., None], out=out)
    np.exp(q, out=q)
    q /= (q @ np.ones(q.shape[-1]))[..., None]
    return np.asarray(q)


def row_max(values: Floats) -> Floats:
    """Maximum over the last axis, quick for few columns."""
    if not 1 < values.shape[-1] <= 16:
        return np.asarray(values.max(axis=-1))
    return np.asarray(reduce(np.maximum, np.moveaxis(values, -1, 0)))


# ---------------------------------------------------------------- choosing


class Part:
    """Labels to learn from, and held-out labels of the same items to predict."""

    def __init__(self, labelled: Labelled, held: np.ndarray, gold: Gold):
        annotations, groups = labelled.annotations, labelled.groups
        self.labelled, self.gold = Labelled(annotations.keep(~held), groups), gold
        self.start = fix(self.labelled.votes(), gold)
        known = self.labelled.n_labels > 0
        known[gold[0]] = True
        held = held & known[annotations.item]
        self.held = annotations.keep(held)
        self.weight = np.ones(len(self.held)) if self.held.weight is None else self.held.weight
        if groups is not None:  # a group counts once
            self.weight = self.weight * labelled.share[held]

    def scores(self, shrinkage: Shrinkage, most: int, correlation: float = 0.0) -> dict[int, Floats]:
        """Log-likelihood of the held-out labels, shape (labels,), after each of `ROUNDS` up to `most`."""
        q, done, result = self.start, 0, {}
        for rounds in ROUNDS:
            if rounds > most:
                break
            q = expectation_maximisation(self.labelled, q, shrinkage, rounds - done, correlation, self.gold)
            result[rounds], done = self.score(q, shrinkage), rounds
        return result

    def score(self, q: Floats, shrinkage: Shrinkage) -> Floats:
        """Log-likelihood of the held-out labels, shape (labels,)."""
        held = self.held
        theta = np.exp(Confusion(self.labelled, q, shrinkage).columns(held.annotator, held.label))
        likelihood: Floats = np.maximum(np.einsum("pc,pc->p", q[held.item], theta), TINY)
        return np.asarray(np.log(likelihood) * self.weight)

    def promising(self, progress: Progress) -> Scores:
        """Scores of all models that are not hopeless, after one step of progress for each model and round.

        A model that is hopeless, and was better after fewer rounds, gets no more of them.
        """
        paths, scores, done = dict.fromkeys(MODELS, self.start), Scores(), 0
        means: dict[Shrinkage, float] = {}
        for rounds in ROUNDS:
            for model, q in paths.items():
                steps = rounds - done
                paths[model] = expectation_maximisation(self.labelled, q, model, steps, 0.0, self.gold)
                scores[model, rounds] = self.score(paths[model], model)
                progress.advance()
            progress.advance(steps=len(MODELS) - len(paths))
            alive, done = scores.alive(), rounds
            rises = {m for m in paths if scores[m, rounds].mean() > means.get(m, -np.inf)}
            paths = {m: q for m, q in paths.items() if (m, rounds) in alive or m in rises}
            means = {m: float(scores[m, rounds].mean()) for m in paths}
        return scores.alive()


class Scores(dict[tuple[Shrinkage, int], Floats]):
    """Log-likelihood of held-out labels by model and rounds."""

    def alive(self) -> Scores:
        """Scores that are not worse than the best by more than `HOPELESS` standard errors."""
        best = max(self.values(), key=np.mean)
        return Scores({key: s for key, s in self.items() if standard_errors(best - s) < HOPELESS})

    def cautious(self) -> Scores:
        """Scores of models that treat all classes alike, unless others are better by a standard error.

        Where labels say next to nothing, other models may turn all items into one class.
        """
        alike = Scores({key: s for key, s in self.items() if key[0].alike})
        if not alike:
            return self
        best, best_alike = (max(scores.values(), key=np.mean) for scores in (self, alike))
        return self if standard_errors(best - best_alike) > 1 else alike

    def most(self) -> dict[Shrinkage, int]:
        """The greatest number of rounds of each model."""
        return {model: max(r for m, r in self if m == model) for model, _ in self}


def sample(annotations: Annotations) -> Index | None:
    """Rows of items, ascending: a random sample if there are very many labels, None for all items."""
    C = annotations.n_classes
    most = max(BUDGET // (C + PER_LABEL), min(SAMPLE, WIDE // max(C, 1)))
    if len(annotations) <= most:
        return None
    order = np.random.default_rng(0).permutation(annotations.n_items)
    return np.sort(order[np.cumsum(np.diff(annotations.start)[order]) <= most])


def only(annotations: Annotations, rows: Index) -> tuple[Annotations, Index]:
    """The labels of some items, whose rows ascend, and each item's new row, -1 for others."""
    place = np.full(annotations.n_items, -1)
    place[rows] = np.arange(len(rows))
    return annotations[rows], place


def sampled(
    annotations: Annotations, gold: Gold, groups: Groups | None
) -> tuple[Annotations, Gold, Groups | None]:
    """The labels, the gold classes and the groups of a sample of the items."""
    rows = sample(annotations)
    if rows is None:
        return annotations, gold, groups
    part, place = only(annotations, rows)
    present = part.labels_per_annotator > 0
    part = part.align(annotators=part.annotators[present])
    inside = place[gold[0]] >= 0
    gold = place[gold[0]][inside], gold[1][inside]
    return part, gold, None if groups is None else groups.only(present)


def parts(annotations: Annotations, gold: Gold, groups: Groups | None) -> list[Part]:
    """Five ways to hold out a fifth of the labels."""
    labelled, rng = Labelled(annotations, groups), np.random.default_rng(0)
    # soft labels, and labels of a group for an item, stay together
    fold = (rng.permutation(len(annotations)) % FOLDS)[labelled.block]
    alone = labelled.blocks_per_item == 1
    alone[gold[0]] = False
    eligible = ~alone[annotations.item]
    return [Part(labelled, (fold == k) & eligible, gold) for k in range(FOLDS)]


def _choose(parts: list[Part]) -> tuple[dict[tuple[Shrinkage, int], float], float]:
    """The share of each model in the average, and ρ."""
    with Progress("comparing models of the labels", len(ROUNDS) * len(MODELS) + FOLDS) as progress:
        scores = parts[0].promising(progress)
        for part in parts[1:]:
            new = {
                (model, rounds): score
                for model, most in scores.most().items()
                for rounds, score in part.scores(model, most).items()
            }
            scores = Scores({key: np.hstack([scores[key], new[key]]) for key in scores}).alive()
            progress.advance()
        shares, top = _bootstrap(scores.cautious())
        correlation = _correlation(parts, *top, scores[top])
        progress.advance()
    return shares, correlation


def _bootstrap(scores: Scores) -> tuple[dict[tuple[Shrinkage, int], float], tuple[Shrinkage, int]]:
    """How often each model is the best in bootstrap samples of the labels, and the one that most often is."""
    keys, table = list(scores), np.array(list(scores.values()))
    draws = np.random.default_rng(0).exponential(size=(table.shape[1], BOOTSTRAPS))
    share = np.bincount((table @ draws).argmax(axis=0), minlength=len(keys)) / BOOTSTRAPS
    kept = {keys[k]: share[k] for k in np.flatnonzero(share >= LEAST_SHARE)}
    total = sum(kept.values())
    return {key: float(value / total) for key, value in kept.items()}, keys[int(share.argmax())]


def _correlation(parts: list[Part], model: Shrinkage, rounds: int, best: Floats) -> float:
    """The smallest ρ whose successor predicts no better; only items with three labels know."""
    result = 0.0
    if not any((part.labelled.n_labels > 1).any() for part in parts):
        return result
    for correlation in CORRELATIONS:
        score = np.hstack([part.scores(model, rounds, correlation)[rounds] for part in parts])
        if not standard_errors(score - best) > 1:
            break
        result, best = correlation, score
    return result


def standard_errors(difference: Floats) -> float:
    """Mean difference in its standard errors; 0 where there is none."""
    error = difference.std() / np.sqrt(len(difference)) if len(difference) else 0.0
    return float(difference.mean() / error) if error > 0 else 0.0
