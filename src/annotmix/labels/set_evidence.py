"""What answers with several classes say: one question per class, whose annotators are shared.

Every class is a problem with the classes False and True and the labels of all answers (`LabelSets.binary`),
and is judged by the one posterior (`annotmix.labels.evidence`). An annotator answers each class seldom, and
all classes often. So an annotator's skill, the second of the steps of `annotmix.labels.confusion`, is counted
over all classes, once for classes that an item has (found or overlooked) and once for classes that it has not
(left out or invented). With θ̄_c[t, t] how often everybody is right about class c where the truth is t,

    o_mt = (r_mt + κ_skill e_mt) / (n_mt − r_mt + κ_skill (1 − e_mt)) · (1 − e_mt) / e_mt

where annotator m is right in r_mt of n_mt answers about any class whose truth is t, and would be in a share
e_mt under θ̄. The odds of being right about class c are those of θ̄_c times o_mt; the third step then moves
towards the annotator's own counts of the class. How far each step goes is learnt by predicting held-out
answers; the models to choose from were set on simulated crowds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from annotmix._common.progress import Progress
from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import EDGE, TINY, Confusion, Floats, Labelled, Shrinkage
from annotmix.labels.evidence import Evidence
from annotmix.labels.label_sets import Bools, LabelSets
from annotmix.labels.names import Index
from annotmix.labels.shrunken import (
    CORRELATIONS,
    FEWEST,
    Gold,
    Shrunken,
    fix,
    label_exponent,
    sample,
    softmax,
    standard_errors,
)

#: Rows of items and their true sets, shapes (G,) and (G, C).
GoldSets = tuple[Index, Bools]

#: A vote; everybody alike in a class; skills over all classes, and matrices of their own in each class.
MODELS = (
    Shrinkage(),
    Shrinkage(common=10, shares=True),
    *(Shrinkage(skill, 10, own, True) for skill, own in product((3, 20), (np.inf, 30, 10, 3))),
)
#: Rounds of EM, while models are compared and for the result.
TRIED, ROUNDS = 6, 15
#: Parts of the answers, each predicted from the others.
FOLDS = 3


class Skills(NamedTuple):
    """Answers of annotators over all classes by the truth, False or True; shapes (M, 2) each.

    `right` are the expected right ones of `n`, `expected` those that everybody would have right.
    """

    right: Floats
    n: Floats
    expected: Floats

    @classmethod
    def of(cls, confusions: Sequence[Confusion]) -> Skills:
        """Those of the confusion matrices of all classes."""
        right = sum((_right(own) for own in confusions), np.zeros((1, 2)))
        n = sum((own.total for own in confusions), np.zeros((1, 2)))
        expected = sum((own.total * own.right_common for own in confusions), np.zeros((1, 2)))
        return cls(np.asarray(right), np.asarray(n), np.asarray(expected))


def _right(confusion: Confusion) -> Floats:
    """Expected right answers of annotators about one class by the truth, shape (M, 2)."""
    a, M = confusion.labelled.annotations, confusion.labelled.annotations.n_annotators
    right = confusion.q[a.item, a.label]
    return np.bincount(a.annotator * 2 + a.label, right, 2 * M).reshape(M, 2).astype(np.float64)


class SharedConfusion(Confusion):
    """Confusion matrices of one class, whose annotators have the skill that they show over all classes."""

    def __init__(self, labelled: Labelled, q: Floats, shrinkage: Shrinkage, skills: Skills | None = None):
        super().__init__(labelled, q, shrinkage)
        self.skills = Skills.of([self]) if skills is None else skills

    def _skilled(self, annotator: Index, label: Index, own: object) -> Floats:
        theta: Floats = np.take(self.common_by_label, label, axis=0)
        kappa, right = self.shrinkage.skill, self.right_common
        if not np.isfinite(kappa):
            return theta
        n_right, n, expected = (part[annotator] for part in self.skills)
        if own is not None:  # the label itself is left out
            total = np.asarray(own.total)  # type: ignore[attr-defined]
            said = np.where(label[:, None] == (0, 1), total, 0.0)
            n_right = np.maximum(n_right - said, 0)
            n, expected = np.maximum(n - total, 0), expected - total * right
        usual = np.broadcast_to(right, n.shape)
        share = np.clip(np.divide(expected, n, out=np.array(usual), where=n > EDGE), EDGE, 1 - EDGE)
        odds = (n_right + kappa * share) / (np.maximum(n - n_right, 0) + kappa * (1 - share))
        odds *= (1 - share) / share * right / (1 - right)
        correct = odds / (1 + odds)
        return np.asarray(np.where(label[:, None] == (0, 1), correct, 1 - correct))

    def diagonals(self, annotators: Index) -> Floats:
        """θ_m[c, c] of annotators, shape (n, 2)."""
        return np.asarray(np.diagonal(self.matrices(annotators), axis1=1, axis2=2))


class ClassEvidence(Evidence):
    """What answers say about one class, with annotators whose skill is known from all classes."""

    def __init__(self, annotations: Annotations, gold: Gold, alone: Shrunken, skills: Skills):
        self.skills = skills
        super().__init__(annotations, gold, alone)

    def counted(self, q: Floats, shrinkage: Shrinkage) -> Confusion:
        """Confusion matrices, counted with class probabilities q."""
        return SharedConfusion(self.labelled, q, shrinkage, self.skills)


def evidence_by_class(sets: LabelSets, gold: GoldSets) -> Iterator[ClassEvidence]:
    """What the answers say about every class, in their order."""
    problem = _Problem(sets, gold)
    model, correlation = _choose(sets, gold)
    with Progress("Dawid–Skene of all classes", ROUNDS) as progress:
        q = problem.maximise(problem.start, model, ROUNDS, correlation, progress)
    skills = Skills.of([Confusion(own, part, model) for own, part in zip(problem.labelled, q, strict=True)])
    for own, known, part in zip(problem.labelled, problem.gold, q, strict=True):
        yield ClassEvidence(own.annotations, known, Shrunken(part, model, correlation, {}), skills)


class _Problem:
    """The labels of every class, and EM over all of them."""

    def __init__(self, sets: LabelSets, gold: GoldSets):
        self.labelled = [Labelled(sets.binary(name)) for name in sets.classes.tolist()]
        self.gold: list[Gold] = [(gold[0], own.astype(np.int64)) for own in gold[1].T]
        self.start = [fix(own.votes(), known) for own, known in zip(self.labelled, self.gold, strict=True)]

    def maximise(
        self,
        q: list[Floats],
        model: Shrinkage,
        rounds: int,
        correlation: float,
        progress: Progress | None = None,
    ) -> list[Floats]:
        """Class probabilities, shape (N, 2) for every class, after rounds of counting and of Bayes' rule."""
        for _ in range(rounds):
            counted = [SharedConfusion(own, part, model) for own, part in zip(self.labelled, q, strict=True)]
            skills, q = Skills.of(counted), []
            for confusion, known in zip(counted, self.gold, strict=True):
                confusion.skills = skills
                exponent = label_exponent(confusion.labelled.n_labels, correlation)[:, None]
                q.append(fix(softmax(confusion.log_shares + exponent * confusion.item_sums()), known))
            if progress is not None:
                progress.advance()
        return q


class _Part:
    """Answers to learn from, and held-out answers about the same items to predict."""

    def __init__(self, sets: LabelSets, gold: GoldSets, held: Bools):
        self.problem = _Problem(sets.keep(~held), gold)
        known = np.bincount(sets.item[~held], minlength=sets.n_items) > 0
        known[gold[0]] = True
        rest = sets.keep(held & known[sets.item])
        self.held = [rest.binary(name) for name in sets.classes.tolist()]

    def score(self, model: Shrinkage, correlation: float = 0.0) -> Floats:
        """Log-likelihood of the held-out answers, shape (answers,), classes summed."""
        q = self.problem.maximise(self.problem.start, model, TRIED, correlation)
        counted = [
            SharedConfusion(own, part, model) for own, part in zip(self.problem.labelled, q, strict=True)
        ]
        skills, total = Skills.of(counted), np.zeros(len(self.held[0]) if self.held else 0)
        for confusion, part, held in zip(counted, q, self.held, strict=True):
            confusion.skills = skills
            theta = np.exp(confusion.columns(held.annotator, held.label))
            total += np.log(np.maximum(np.einsum("pc,pc->p", part[held.item], theta), TINY))
        return total


def _choose(sets: LabelSets, gold: GoldSets) -> tuple[Shrinkage, float]:
    """The model that predicts held-out answers best, and ρ, how far answers about an item err together."""
    if not sets.n_classes or (sets.labels_per_item > 1).sum() < FEWEST:
        return MODELS[0], 0.0
    rows = sample(sets.answers)
    if rows is not None:
        place = np.full(sets.n_items, -1)
        place[rows] = np.arange(len(rows))
        inside = place[gold[0]] >= 0
        sets, gold = sets[rows], (place[gold[0]][inside], gold[1][inside])
    fold = np.random.default_rng(0).permutation(len(sets)) % FOLDS
    alone = sets.labels_per_item == 1
    alone[gold[0]] = False
    parts = [_Part(sets, gold, (fold == k) & ~alone[sets.item]) for k in range(FOLDS)]
    with Progress("comparing models of the answers", len(MODELS) + 1) as progress:
        scores = {}
        for model in MODELS:
            scores[model] = np.hstack([part.score(model) for part in parts])
            progress.advance()
        best = max(MODELS, key=lambda model: float(scores[model].mean()))
        score, correlation = scores[best], 0.0
        for value in CORRELATIONS:  # as far as it predicts better than chance allows
            trial = np.hstack([part.score(best, value) for part in parts])
            if not standard_errors(trial - score) > 1:
                break
            score, correlation = trial, value
        progress.advance()
    return best, correlation
