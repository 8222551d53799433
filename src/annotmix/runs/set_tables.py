"""The tables of a run whose items have several classes, from the posterior of its label sets.

Answers, consensus and votes are sets of classes. A set that occurs is treated as a class elsewhere: its name,
such as "live|rock", stands in the tables of items and labels. `SetFindings` is about the single classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix.labels.annotations import Annotations
from annotmix.labels.coefficients import annotator_agreement
from annotmix.labels.label_checks import frozen
from annotmix.labels.label_sets import as_tuples
from annotmix.labels.names import Index, locate
from annotmix.labels.set_posterior import MultiLabelPosterior
from annotmix.labels.set_texts import write_set
from annotmix.runs.confusion_matrices import LARGEST, MOST, ConfusionMatrices
from annotmix.runs.result_columns import make_table
from annotmix.runs.result_tables import Votes
from annotmix.runs.set_findings import SetFindings

Floats = NDArray[np.float64]


def make_set_tables(posterior: MultiLabelPosterior, classifier: Floats, gold: Index) -> dict[str, Any]:
    """The parts of `Findings` about items, annotators, labels and classes, and the names of the sets.

    Parameters
    ----------
    posterior : MultiLabelPosterior
    classifier : array, shape (N, C)
        Probabilities of the classes by the classifier alone.
    gold : array of int
        Rows of the items whose true set was learnt.
    """
    sets = posterior.label_sets
    named, found, by_classifier = _named(posterior, classifier)
    best_first = locate(posterior.annotators.index.to_numpy(), sets.annotators)
    items = _items(posterior, named, found, by_classifier)
    if len(gold):
        items["gold"] = ""
        items.loc[gold, "gold"] = named.classes[found[gold]]
    quality = posterior.label_quality[["item", "annotator", "probability"]]
    labels = quality.assign(label=named.classes[named.label], consensus=named.classes[found[named.item]])
    return {
        "classes": named.classes,
        "items": make_table("items", items),
        "annotators": _annotators(posterior, named, best_first),
        "labels": make_table("labels", labels).sort_values("probability", kind="stable", ignore_index=True),
        "confusion": _confusion(named, found, best_first),
        "several": SetFindings(
            make_table("classes", posterior.classes.reset_index()),
            make_table("annotator_classes", posterior.annotators_by_class.reset_index()),
            posterior.q,
        ),
    }


def _named(posterior: MultiLabelPosterior, classifier: Floats) -> tuple[Annotations, Index, Index]:
    """Answers as labels whose classes are names of sets, and the sets of consensus and classifier."""
    sets = posterior.label_sets
    parts = [sets.members, posterior.members, classifier >= 0.5]
    distinct, number = np.unique(np.concatenate(parts), axis=0, return_inverse=True)
    own, found, by_classifier = np.split(number.ravel(), np.cumsum([len(part) for part in parts])[:-1])
    names = np.empty(len(distinct), dtype=object)
    names[:] = [write_set(one) for one in as_tuples(distinct, sets.classes)]
    answers = sets.answers._derive(label=own[sets.answers.label], classes=frozen(names))
    return answers, found, by_classifier


def _items(
    posterior: MultiLabelPosterior, named: Annotations, found: Index, classifier: Index
) -> pd.DataFrame:
    votes, consensus = Votes(named), posterior.consensus.reset_index()
    return consensus.drop(columns="labels").assign(
        label=named.classes[found],
        classifier=named.classes[classifier],
        votes=votes.texts,
        majority=votes.majority,
        differs=(named.labels_per_item > 0) & ~votes.most(found),
        disagreement=votes.entropy,
    )


def _annotators(posterior: MultiLabelPosterior, named: Annotations, order: Index) -> pd.DataFrame:
    chosen, true, left_out, false = posterior.rates
    errors = np.stack([true - chosen, false - left_out], axis=2)[order]  # overlooked, wrongly chosen
    flat = errors.reshape(len(errors), -1)
    column, kind = np.divmod(flat.argmax(axis=1), 2)
    count = flat.max(axis=1)
    whole = np.stack([true, false], axis=2)[order, column, kind]
    names = posterior.label_sets.classes[column]
    words = ("overlooks {}", "adds {}")
    enough = count >= 0.5
    texts = [words[k].format(name) if ok else "" for name, k, ok in zip(names, kind, enough, strict=True)]
    rate = np.where(enough, count / np.maximum(whole, 1e-9), np.nan)
    table = posterior.annotators.reset_index().assign(
        agreement=annotator_agreement(named)[0][order], confusion=texts, confusion_rate=rate
    )
    return make_table("annotators", table)


def _confusion(named: Annotations, found: Index, order: Index) -> ConfusionMatrices:
    """Shares of the sets that annotators gave, by the set found for the item."""
    M, S = named.n_annotators, named.n_classes
    cell = (named.annotator * S + found[named.item]) * S + named.label
    cells, count = np.unique(cell, return_counts=True)
    rows = np.bincount(cells // S, count, M * S)
    share = count / rows[cells // S]
    if M * S * S <= MOST:
        whole = np.full(M * S * S, np.nan)
        whole.reshape(M * S, S)[rows > 0] = 0.0
        whole[cells] = share
        return ConfusionMatrices.of(whole.reshape(M, S, S)[order])
    annotator, entry = np.divmod(cells, S * S)
    true, label = np.divmod(entry, S)
    diagonal = np.full((M, S), np.nan)
    diagonal.reshape(-1)[rows > 0] = 0.0
    same = true == label
    diagonal[annotator[same], true[same]] = share[same]
    best = np.lexsort((-share, annotator))
    best = best[~same[best]]
    rank = np.arange(len(best)) - np.searchsorted(annotator[best], annotator[best])
    kept, rank = best[rank < LARGEST], rank[rank < LARGEST]
    places, shares = np.zeros((M, LARGEST), np.int64), np.zeros((M, LARGEST))
    places[annotator[kept], rank], shares[annotator[kept], rank] = entry[kept], share[kept]
    return ConfusionMatrices(None, diagonal[order], places[order], shares[order])
