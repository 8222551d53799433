"""The posterior of items with several classes: one question per class, "does it belong to the item?".

Classes share their annotators (`annotmix.labels.set_evidence`). Given the answers, they are judged
independently: the probability of a whole set is the product over its classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from annotmix._common.progress import Progress
from annotmix._common.words import show, some
from annotmix.labels import display
from annotmix.labels.coefficients import percent_agreement
from annotmix.labels.confusion import Confusion, Floats, Labelled
from annotmix.labels.label_sets import Bools, LabelSets, as_tuples
from annotmix.labels.named import class_table, index_of
from annotmix.labels.names import Index, locate
from annotmix.labels.posterior import Posterior, accuracy_interval, n_probably_wrong
from annotmix.labels.set_evidence import GoldSets, SharedConfusion, evidence_by_class


class ClassPosterior(Posterior):
    """The posterior of one class, with the classes False and True."""

    @cached_property
    def counted(self) -> Confusion:
        """The confusion matrices of the annotators, counted with the probabilities of the items' classes."""
        counted = self.answer.confusion
        assert isinstance(counted, SharedConfusion)
        return SharedConfusion(Labelled(self.annotations), self.answer.q, counted.shrinkage, counted.skills)


@dataclass(frozen=True, eq=False)
class MultiLabelPosterior:
    """What sets of classes and a classifier say together; the result of `posterior` for `LabelSets`.

    Attributes
    ----------
    label_sets : LabelSets
        The answers.
    by_class : tuple of ClassPosterior
        For every class in the order of `label_sets.classes`: whether it belongs to the items.
    """

    label_sets: LabelSets
    by_class: tuple[ClassPosterior, ...]

    def of(self, name: Any) -> ClassPosterior:
        """The posterior of one class, with the classes False and True."""
        at = int(locate(np.array([name, None], dtype=object)[:1], self.label_sets.classes)[0])
        if at < 0:
            raise ValueError(f"{show(name)} is no class; the classes are {some(self.label_sets.classes)}.")
        return self.by_class[at]

    def judge(self, sets: LabelSets, p: Floats | None, row: Index) -> MultiLabelPosterior:
        """The posterior of items that may be others, answered by the same annotators.

        `p` are probabilities of the classes, shape (n, n_classes), and `row` is each item's place among the
        items of this posterior, -1 for new ones; see `Answer.judge`.
        """
        made = []
        for column, (own, name) in enumerate(
            zip(self.by_class, self.label_sets.classes.tolist(), strict=True)
        ):
            labels = sets.binary(name)
            q = own.answer.judge(labels, None if p is None else two_sided(p[:, column]), row)
            made.append(ClassPosterior(labels, replace(own.answer, q=q)))
        return MultiLabelPosterior(sets, tuple(made))

    @cached_property
    def q(self) -> Floats:
        """Probability that a class belongs to an item, shape (n_items, n_classes)."""
        return np.stack([own.answer.q[:, 1] for own in self.by_class], axis=1)

    @property
    def helps(self) -> bool:
        """Whether the classifier was found to help with any class."""
        return any(own.helps for own in self.by_class)

    @property
    def likelihood(self) -> pd.DataFrame:
        """Mean log-likelihood of an answer about a class given the others: one row per class."""
        rows = [own.likelihood for own in self.by_class]
        return pd.DataFrame(rows, index=index_of(self.label_sets.classes, "class"))

    @property
    def probabilities(self) -> pd.DataFrame:
        """Probability of every class, one row per item; the classes of an item do not exclude each other."""
        return class_table(self.q, self.label_sets.items, self.label_sets.classes)

    @property
    def members(self) -> Bools:
        """The consensus: classes with a probability of one half or more, shape (n_items, n_classes)."""
        return np.asarray(self.q >= 0.5)

    @cached_property
    def consensus(self) -> pd.DataFrame:
        """One row per item: `labels`, its `probability`, `n_labels`, `agreement`.

        `labels` are the classes with a probability of one half or more, `probability` the chance that exactly
        these are right, `n_labels` the number of answers, and `agreement` the share of the answers that are
        this set (`nan` without answers).
        """
        sets, members = self.label_sets, self.members
        same = (sets.chosen == members[sets.item]).all(axis=1)
        with np.errstate(invalid="ignore"):
            agreement = np.bincount(sets.item, same, sets.n_items) / sets.labels_per_item
        return pd.DataFrame(
            {
                "labels": as_tuples(members, sets.classes),
                "probability": chance_of_set(self.q, members),
                "n_labels": sets.labels_per_item,
                "agreement": agreement,
            },
            index=index_of(sets.items, "item"),
        )

    @cached_property
    def right(self) -> Floats:
        """Probability that an answer is right about a class, shape (n_answers, n_classes)."""
        return chance_right(self.label_sets, self.q)

    @cached_property
    def label_quality(self) -> pd.DataFrame:
        """One row per answer: `item`, `annotator`, `labels`, `probability`, and a column per class.

        `probability` is the chance that the whole set is right, the columns ("right", class) the chance that
        the answer is right about this class.
        """
        table = self.label_sets.to_long().assign(probability=self.right.prod(axis=1))
        for column, name in enumerate(self.label_sets.classes):
            table["right", name] = self.right[:, column]
        return table

    @property
    def n_wrong(self) -> int:
        """Number of answers about one class that are probably wrong."""
        return n_probably_wrong(self.right)

    @cached_property
    def annotators(self) -> pd.DataFrame:
        """One row per annotator: `accuracy`, `low`, `high`, `n_labels`, `sensitivity`, `specificity`.

        `accuracy` is the share of right yes-or-no answers over all classes, with its 95 % interval; an answer
        counts once, whatever the number of classes. `sensitivity` is the share of the right classes that the
        annotator chose, `specificity` the share of the wrong classes that the annotator left out.
        """
        return set_annotators(self.label_sets, self.q)

    @cached_property
    def annotators_by_class(self) -> pd.DataFrame:
        """One row per annotator and class: `accuracy`, `sensitivity`, `specificity`, `n_true`, `n_chosen`.

        `n_true` is the expected number of the annotator's items that have the class, `n_chosen` how often
        the annotator chose it. Without an item that has the class, its sensitivity is `nan`.
        """
        sets = self.label_sets
        names = [index_of(sets.annotators, "annotator"), index_of(sets.classes, "class")]
        chosen, true, left_out, false = self.rates
        return pd.DataFrame(
            {
                "accuracy": _share(chosen + left_out, true + false).ravel(),
                "sensitivity": _share(chosen, true).ravel(),
                "specificity": _share(left_out, false).ravel(),
                "n_true": true.ravel(),
                "n_chosen": _by_annotator(sets, sets.chosen).ravel(),
            },
            index=pd.MultiIndex.from_product(names),
        )

    @cached_property
    def classes(self) -> pd.DataFrame:
        """One row per class: `share`, `share_chosen`, `sensitivity`, `specificity`, `agreement`, `n_wrong`.

        `share` is the share of the answered items that have the class, `share_chosen` the share of the
        answers that name it, `agreement` the chance that two answers about an item agree about it, `n_wrong`
        the number of answers that are probably wrong about it.
        """
        sets, answered = self.label_sets, self.label_sets.labels_per_item > 0
        chosen, true, left_out, false = self.rates
        nothing = np.full(sets.n_classes, np.nan)
        return pd.DataFrame(
            {
                "share": self.q[answered].mean(axis=0) if answered.any() else nothing,
                "share_chosen": sets.chosen.mean(axis=0) if len(sets) else nothing,
                "sensitivity": _share(chosen.sum(axis=0), true.sum(axis=0)),
                "specificity": _share(left_out.sum(axis=0), false.sum(axis=0)),
                "agreement": [percent_agreement(own.annotations) for own in self.by_class],
                "n_wrong": (self.right < 0.5).sum(axis=0),
            },
            index=index_of(sets.classes, "class"),
        )

    def confusion(self, name: Any, annotators: Iterable[Any] | None = None) -> pd.DataFrame:
        """P(chosen | belongs to the item) of one class, of all or the named annotators; see `Posterior`."""
        return self.of(name).confusion(annotators)

    @cached_property
    def rates(self) -> Rates:
        """Expected numbers of right and wrong answers, by annotator and class."""
        return Rates.of(self.label_sets, self.q)

    def __repr__(self) -> str:
        return f"MultiLabelPosterior({self._summary})"

    def _repr_html_(self) -> str:
        sets = self.label_sets
        tables = (
            (self.consensus, sets.n_items, "items"),
            (self.annotators, sets.n_annotators, "annotators"),
            (self.classes, sets.n_classes, "classes"),
        )
        return display.html("MultiLabelPosterior", self._summary, *tables)

    @property
    def _summary(self) -> str:
        source = "labels and classifier" if self.helps else "labels alone"
        return (
            f"{self.label_sets._counts}; {self.n_wrong} of {self.right.size} answers about a class are "
            f"probably wrong; from {source}"
        )


def set_posterior(
    sets: LabelSets, pred_probs: Any = None, gold: pd.Series | Mapping[Any, Any] | None = None
) -> MultiLabelPosterior:
    """The posterior of label sets; parameters as in `annotmix.posterior`."""
    p = None if pred_probs is None else marginals(pred_probs, sets)
    return join_sets(sets, p, sets.gold_sets(gold))


def join_sets(sets: LabelSets, p: Floats | None, known: GoldSets) -> MultiLabelPosterior:
    """Label sets joined with p̂, shape (n_items, n_classes), of a classifier that has not seen the items."""
    by_class = []
    with Progress("posterior by class", sets.n_classes) as progress:
        for column, evidence in enumerate(evidence_by_class(sets, known)):
            own = None if p is None else two_sided(p[:, column])
            by_class.append(ClassPosterior(evidence.annotations, evidence.combine(own)))
            progress.advance()
    return MultiLabelPosterior(sets, tuple(by_class))


class Rates(NamedTuple):
    """Expected numbers of answers about a class, by annotator and class; shapes (M, C).

    `chosen` of the `true` classes of the answered items were chosen, `left_out` of the `false` ones were not.
    """

    chosen: Floats
    true: Floats
    left_out: Floats
    false: Floats

    @classmethod
    def of(cls, sets: LabelSets, q: Floats) -> Rates:
        """Those of answers, given the probability that a class belongs to an item, shape (N, C)."""
        p, chosen = q[sets.item], sets.chosen
        values = (p * chosen, p, (1 - p) * ~chosen, 1 - p)
        return cls(*(_by_annotator(sets, own) for own in values))


def _by_annotator(sets: LabelSets, values: Any) -> Floats:
    """Sums of values of the answers, shape (n_answers, C), by annotator."""
    sums = [np.bincount(sets.annotator, column, sets.n_annotators) for column in values.T]
    return np.stack(sums, axis=1) if sums else np.zeros((sets.n_annotators, 0))


def chance_right(sets: LabelSets, q: Floats) -> Floats:
    """Probability that an answer is right about a class, shape (n_answers, C), of q, shape (n_items, C)."""
    p = q[sets.item]
    return np.where(sets.chosen, p, 1 - p)


def set_annotators(sets: LabelSets, q: Floats) -> pd.DataFrame:
    """`MultiLabelPosterior.annotators` for any probabilities q, shape (n_items, n_classes)."""
    M, right = sets.n_annotators, chance_right(sets, q)
    mean, low, high = accuracy_interval(
        sets.labels_per_annotator,
        np.bincount(sets.annotator, right.mean(axis=1), M),
        np.bincount(sets.annotator, (right * (1 - right)).mean(axis=1), M),
    )
    chosen, true, left_out, false = (part.sum(axis=1) for part in Rates.of(sets, q))
    table = pd.DataFrame(
        {
            "accuracy": mean,
            "low": low,
            "high": high,
            "n_labels": sets.labels_per_annotator,
            "sensitivity": _share(chosen, true),
            "specificity": _share(left_out, false),
        },
        index=index_of(sets.annotators, "annotator"),
    )
    return table.sort_values("low", ascending=False, kind="stable")


def two_sided(p: Floats) -> Floats:
    """Probabilities of False and True, shape (n, 2), of those of True, shape (n,)."""
    return np.stack([1 - p, p], axis=1)


def chance_of_set(q: Floats, members: Bools) -> Floats:
    """Chance that a set is exactly right, shape (n,), of shapes (n, n_classes), classes independent."""
    return np.asarray(np.where(members, q, 1 - q).prod(axis=1))


def vote_by_class(sets: LabelSets) -> Bools:
    """Classes that more than half of the answers about an item name, shape (n_items, n_classes)."""
    votes = np.stack([np.bincount(sets.item, own, sets.n_items) for own in sets.chosen.T], axis=1)
    return np.asarray(votes > sets.labels_per_item[:, None] / 2)


def marginals(pred_probs: Any, sets: LabelSets) -> Floats:
    """Checked probabilities of the classes, shape (n_items, n_classes); a DataFrame is matched by name."""
    if isinstance(pred_probs, pd.DataFrame):
        pred_probs = _by_name(pred_probs, sets)
    p = np.asarray(pred_probs, dtype=np.float64)
    shape = (sets.n_items, sets.n_classes)
    if p.shape != shape:
        raise ValueError(
            f"pred_probs must have one row per item and one column per class, shape {shape}, found {p.shape}."
        )
    if (bad := ~(np.isfinite(p) & (p >= 0) & (p <= 1)).all(axis=1)).any():
        row = int(bad.argmax())
        raise ValueError(
            "pred_probs must hold the probability of each class on its own, from 0 to 1; row "
            f"{row} is {p[row]}."
        )
    return p


def _by_name(table: pd.DataFrame, sets: LabelSets) -> pd.DataFrame:
    places: list[Index] = []
    for what, names, wanted in (
        ("row for items", table.index, sets.items),
        ("column for classes", table.columns, sets.classes),
    ):
        place = locate(wanted, np.asarray(names, dtype=object))
        if (place < 0).any():
            raise ValueError(f"pred_probs has no {what} {some(wanted[place < 0])}.")
        places.append(place)
    return table.iloc[places[0], places[1]]


def _share(part: Floats, whole: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(whole > 1e-9, part / whole, np.nan))
