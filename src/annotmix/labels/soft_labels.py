"""The distribution of labels that a crowd gives to an item, for questions without a single truth.

The probability that a further annotator, drawn like the labels so far, gives item n the label k is

    r_nk = (v_nk + κ Σ_c q_nc θ̄[c, k]) / (v_n + κ),

with v_nk the weight of the item's labels k, v_n their sum, q the posterior, and θ̄ the confusion matrix of
the whole crowd. The second part is what one right class per item and the errors of annotators explain; the
first is what the item's own votes add. κ, in labels, says how much they add: it maximises the mean
log-likelihood of every label, given the other labels of its item and not knowing who gives it. With one right
class per item κ is infinite: who knows the class learns nothing from further votes. A finite κ means that
disagreement belongs to the items: they are ambiguous, hard, or a matter of opinion.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from annotmix.labels import display
from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import TINY, Floats
from annotmix.labels.evidence import Answer
from annotmix.labels.named import class_table
from annotmix.labels.names import Index
from annotmix.labels.shrunken import label_exponent, softmax, standard_errors

#: Values of κ to choose from.
PSEUDO_LABELS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, np.inf)
#: Votes count as evidence of several truths where they raise the likelihood by this many standard errors.
#: With one right class per item this was so in none of 40 simulated crowds (benchmarks/no_single_truth.py).
SURE = 2.0
#: Pseudo-labels of every class in θ̄, spread evenly over labels, before it is counted.
EVEN = 1.0


class SoftLabels:
    """What a crowd, or a group of annotators, would say about every item.

    Parameters
    ----------
    annotations : Annotations
    answer : Answer
        The posterior of these labels.
    group : array of int, optional
        Annotators whose labels are meant; by default all. The right class rests on all annotators.

    Attributes
    ----------
    pseudo_labels : float
        κ: how many labels the annotator model counts as, beside the votes of an item. Infinite where votes
        add nothing to one right class per item.
    rise : float
        How much better the votes of an item predict a further label than one right class per item alone, in
        standard errors of the log-likelihood; 0 where κ is infinite.
    confusion : array, shape (C, C)
        θ̄: the probability that a member of the crowd or group says k where c is true, indexed [c, k].
    """

    def __init__(self, annotations: Annotations, answer: Answer, group: Index | None = None):
        a = self.annotations = annotations
        self._answer = answer
        inside = slice(None) if group is None else np.flatnonzero(np.isin(a.annotator, group))
        weight, where = answer.confusion.labelled.evidence[inside], (a.item[inside], a.label[inside])
        self._votes = csr_array((weight, where), shape=(a.n_items, a.n_classes))
        self._votes.sum_duplicates()
        #: Σ w q of labels, indexed [k, c]
        self._counts: Floats = self._votes.T @ answer.q
        self._total: Floats = self._counts.sum(axis=0)
        self.confusion: Floats = (self._counts.T + EVEN / a.n_classes) / (self._total[:, None] + EVEN)
        self.pseudo_labels, self.rise = self._learn(np.arange(len(a))[inside])

    @property
    def several_truths(self) -> bool:
        """Whether annotators disagree about items more than one right class per item explains."""
        return self.rise > SURE

    @cached_property
    def values(self) -> Floats:
        """r, shape (N, C); `probabilities` names rows and columns."""
        explained = self._answer.q @ self.confusion
        if np.isinf(self.pseudo_labels):
            return np.asarray(explained)
        total = self._votes.sum(axis=1) + self.pseudo_labels
        return np.asarray((self._votes.toarray() + self.pseudo_labels * explained) / total[:, None])

    @cached_property
    def probabilities(self) -> pd.DataFrame:
        """Probability that a further annotator gives each label: one row per item, one column per class."""
        return class_table(self.values, self.annotations.items, self.annotations.classes)

    def of_new_items(self, p: Floats) -> Floats:
        """The distribution of labels, shape (n, C), of unlabelled items with class probabilities p."""
        return np.asarray(p @ self.confusion)

    def _learn(self, inside: Index) -> tuple[float, float]:
        """κ, and how much it raises the likelihood of a label over κ = ∞, in standard errors.

        `inside` are the places of the group's labels.
        """
        parts = list(self._left_out(inside))
        same, others, explained, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
        if not len(weight):
            return np.inf, 0.0
        scores = {}
        for kappa in PSEUDO_LABELS:
            share = explained if np.isinf(kappa) else (same + kappa * explained) / (others + kappa)
            scores[kappa] = np.log(np.maximum(share, TINY)) * weight
        best = max(scores, key=lambda kappa: scores[kappa].mean())
        return best, standard_errors(scores[best] - scores[np.inf])

    def _left_out(self, inside: Index) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
        """For labels whose item has others: the others' weight for its class, in all; Σ_c q_c θ̄; its weight.

        q is the posterior without the labels of the label's annotator (or group, where annotators err
        together), and neither the votes nor θ̄ count them.
        """
        a, answer, labelled = self.annotations, self._answer, self._answer.confusion.labelled
        C, rho, total = a.n_classes, answer.weights.correlation, self._votes.sum(axis=1)
        weight = np.zeros(len(a))
        weight[inside] = labelled.evidence[inside]
        block = labelled.block
        own = np.bincount(block, weight)[block]
        of_class = np.unique(block * C + a.label, return_inverse=True)[1]
        same = np.bincount(of_class, weight)[of_class]
        nothing = np.zeros(0)
        yield nothing, nothing, nothing, nothing
        for items, labels in labelled.pieces():
            said = answer.confusion.log_likelihood(labels)
            if answer.weights.annotators is not None:
                said *= answer.weights.annotators[a.annotator[labels], None]
            sums = labelled.item_sums(said, items, labels)
            at = inside[np.searchsorted(inside, labels.start) : np.searchsorted(inside, labels.stop)]
            at = at[total[a.item[at]] > own[at] + TINY]
            item, label, here = a.item[at], a.label[at], at - labels.start
            with_all = label_exponent(labelled.n_labels[item], rho)[:, None]
            without = label_exponent(labelled.n_others(items, labels)[here], rho)[:, None]
            joint = np.log(np.maximum(answer.q[item], TINY))
            joint += (without - with_all) * sums[item - items.start]
            joint -= without * labelled.block_sums(said, labels)[here]
            counts = self._counts[label] - same[at, None] * answer.q[item]
            others = np.maximum(self._total - own[at, None] * answer.q[item], 0) + EVEN
            theta = (np.maximum(counts, 0) + EVEN / C) / others
            explained = np.einsum("pc,pc->p", softmax(joint), theta)
            yield self._votes[item, label] - same[at], total[item] - own[at], explained, weight[at]

    def __repr__(self) -> str:
        return f"SoftLabels({self._summary})"

    def _repr_html_(self) -> str:
        return display.html("SoftLabels", self._summary, (self.probabilities, len(self.values), "items"))

    @property
    def _summary(self) -> str:
        found = "belongs to the items" if self.several_truths else "is explained by errors of annotators"
        return f"{self.annotations.n_items} items; disagreement {found}"
