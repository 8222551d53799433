"""The tables of a run, from the posterior of its labels; `result_columns.py` explains them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix.labels.annotations import ROUNDING, Annotations
from annotmix.labels.coefficients import annotator_agreement
from annotmix.labels.names import Index, locate
from annotmix.labels.posterior import Posterior
from annotmix.labels.set_posterior import MultiLabelPosterior
from annotmix.reading.times import iso
from annotmix.runs.confusion_matrices import ConfusionMatrices, entries, frequent_confusions
from annotmix.runs.result_columns import make_table

if TYPE_CHECKING:
    from annotmix.runs.models import Model

Floats = NDArray[np.float64]
#: Stands between classes that have equally many votes.
TIE = " = "


def classifier_proba(model: Model, X: Any) -> Floats:
    """What the classifier alone says about the training items X of a model, shape (N, C).

    Of items with labels these are predictions by networks that have not learnt them, where the approach has
    such; of others those of the final one.
    """
    p, unseen = model.predict_proba(X), model.unseen_proba_
    posterior: Any = model.posterior_
    several = isinstance(posterior, MultiLabelPosterior)
    labels: Annotations = posterior.label_sets.answers if several else posterior.annotations
    use = (labels.labels_per_item > 0) & ~np.isnan(unseen[:, 0])
    p[use] = unseen[use]
    return p


def make_tables(posterior: Posterior, classifier: Floats) -> dict[str, Any]:
    """The parts of `Findings` about items, annotators and labels.

    Parameters
    ----------
    posterior : Posterior
    classifier : array, shape (N, C)
        Class probabilities of the items by the classifier alone.
    """
    best_first = locate(posterior.annotators.index.to_numpy(), posterior.annotations.annotators)
    return {
        "items": item_table(posterior, classifier),
        "annotators": annotator_table(posterior),
        "labels": label_table(posterior),
        "confusion": ConfusionMatrices.counted(posterior.counted, best_first),
        "groups": group_table(posterior),
    }


def item_table(posterior: Posterior, classifier: Floats) -> pd.DataFrame:
    """One row per item; `classifier` as in `make_tables`."""
    a, consensus = posterior.annotations, posterior.consensus
    votes = Votes(a)
    table = consensus.reset_index().assign(
        classifier=a.classes[classifier.argmax(axis=1)],
        votes=votes.texts,
        majority=votes.majority,
        differs=(a.labels_per_item > 0) & ~votes.most(posterior.answer.q.argmax(axis=1)),
        disagreement=votes.entropy,
    )
    item, label = posterior.answer.gold
    if len(item):
        table["gold"] = ""
        table.loc[item, "gold"] = a.classes[label]
    return make_table("items", table)


class Votes:
    """Votes of every item, most votes first."""

    def __init__(self, a: Annotations):
        item, label, count = a.votes()
        order = np.lexsort((label, -count, item))
        self.item, self.label, self.count = item[order], label[order], count[order]
        self.n_items, self.classes = a.n_items, a.classes
        share = self.count / a.total(a.item, a.n_items)[self.item]
        bits = np.bincount(self.item, weights=-share * np.log2(share), minlength=a.n_items)
        self.entropy = np.where(a.labels_per_item > 0, np.abs(bits), np.nan)

    @property
    def texts(self) -> list[str]:
        """The votes of every item, such as "cat (3), dog (1)"."""
        parts: list[list[str]] = [[] for _ in range(self.n_items)]
        for item, label, count in zip(self.item.tolist(), self.label, self.count, strict=True):
            parts[item].append(f"{self.classes[label]} ({count:g})")
        return [", ".join(part) for part in parts]

    @property
    def majority(self) -> NDArray[Any]:
        """The class of every item with the most votes; several that tie, as "cat = dog", shape (n_items,)."""
        names: list[list[str]] = [[] for _ in range(self.n_items)]
        for item, label in zip(self.item[self._won].tolist(), self.label[self._won], strict=True):
            names[item].append(str(self.classes[label]))
        return np.array([TIE.join(part) for part in names], dtype=object)

    def most(self, label: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a label, shape (n_items,), is among those of its item with the most votes."""
        same = self._won & (self.label == label[self.item])
        return np.bincount(self.item[same], minlength=self.n_items) > 0

    @cached_property
    def _won(self) -> NDArray[np.bool_]:
        """Whether no other class of the same item has more votes, one entry per class of an item."""
        top = np.zeros(self.n_items)
        np.maximum.at(top, self.item, self.count)
        return np.asarray(self.count >= top[self.item] * (1 - ROUNDING))


def annotator_table(posterior: Posterior) -> pd.DataFrame:
    """One row per annotator, best first by the lower end of the interval."""
    a, table = posterior.annotations, posterior.annotators
    order = locate(table.index.to_numpy(), a.annotators)
    names, rates = _frequent_confusion(posterior, order)
    table = table.reset_index().assign(
        agreement=annotator_agreement(a)[0][order], confusion=names, confusion_rate=rates
    )
    return make_table("annotators", table)


def _frequent_confusion(posterior: Posterior, who: Index) -> tuple[list[str], Floats]:
    """The confusion of annotators with the most expected labels, at least half a label, and its rate."""
    classes = posterior.annotations.classes
    true, label, count = frequent_confusions(posterior.counted)
    true, label, enough = true[who], label[who], count[who] >= 0.5
    names = [
        f"{classes[c]} → {classes[k]}" if ok else "" for c, k, ok in zip(true, label, enough, strict=True)
    ]
    return names, np.where(enough, entries(posterior.counted, who, true, label), np.nan)


def group_table(posterior: Posterior) -> pd.DataFrame | None:
    """One row per group of annotators who err together; None where no pair could be judged."""
    together = posterior.dependence
    if together.answer.dependence is None or not len(together.answer.dependence.first):
        return None
    names = [", ".join(str(name) for name in group) for group in together.groups["annotators"]]
    table = together.groups.reset_index(drop=True)
    return make_table("groups", table.assign(annotators=np.array(names, dtype=object)))


def label_table(posterior: Posterior) -> pd.DataFrame:
    """One row per label, least likely right first; with weights, by weight × chance of an error."""
    a, best = posterior.annotations, posterior.consensus["label"].to_numpy()
    table = make_table("labels", posterior.label_quality.assign(consensus=best[a.item]))
    if "weight" not in table:
        return table.sort_values("probability", kind="stable", ignore_index=True)
    wrong = table["weight"] * (1 - table["probability"])
    return table.loc[wrong.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)


def with_times(labels: pd.DataFrame, times: pd.DataFrame) -> pd.DataFrame:
    """The table of labels with the column `time`: when each was given, in UTC; empty where it is unknown.

    `times` has the columns `item`, `annotator`, `label` and `time`, in seconds since 1970.
    """
    known = labels.merge(times, how="left", on=["item", "annotator", "label"])
    return make_table("labels", known.assign(time=iso(known["time"].to_numpy(dtype=np.float64))))
