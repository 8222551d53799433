"""May a model replace people? The alternative annotator test.

Calderon, Reichart and Dror, "The Alternative Annotator Test for LLM-as-a-Judge: How to Statistically Justify
Replacing Human Annotators with LLMs", ACL 2025. Each person j is left out in turn. On every item n that j,
the model f and at least one other person labelled, the share of the other people's labels that are the
candidate's, S(j, n) or S(f, n), says who represents the other people better; a tie counts for both:

    W_f = 1 if S(f, n) ≥ S(j, n),   W_j = 1 if S(j, n) ≥ S(f, n),   ρ_f = mean W_f,   ρ_j = mean W_j.

The model may replace j where H0: ρ_f ≤ ρ_j − ε is rejected, by a one-sided paired t-test with 30 items or
more, and Wilcoxon's signed-rank test with fewer. ε stands for what labels of people cost more than labels of
the model. The false discovery rate over the people is controlled by Benjamini and Yekutieli's method. The
winning rate ω is the share of people for whom H0 is rejected; the model passes with 1/2 or more. The mean of
ρ_f is its advantage.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import show, some
from annotmix.labels import display
from annotmix.labels.annotations import Annotations
from annotmix.labels.forms import labels_alone
from annotmix.labels.named import index_of
from annotmix.labels.names import Index, locate

Floats = NDArray[np.float64]

#: ε for experts, the default of `alternative_test`. The authors advise 0.2 for experts, 0.15 for skilled
#: annotators and 0.1 for crowd workers.
EPSILON = 0.2
#: Level of the false discovery rate, and the winning rate that passes.
LEVEL, PASSES = 0.05, 0.5
#: Items from which on the t-test is used, and the fewest people whose comparison the authors advise.
MANY_ITEMS, ENOUGH_PEOPLE = 30, 3


@dataclass(frozen=True, eq=False)
class AlternativeTest:
    """The result of `alternative_test`.

    Attributes
    ----------
    model : str
        The annotator that was compared with people.
    epsilon : float
        ε, how much worse than a person the model may be, as its labels cost less.
    people : DataFrame, one row per person
        `n_items`; `model_wins`, ρ_f, and `person_wins`, ρ_j; `p_value` of H0: ρ_f ≤ ρ_j − ε, by the `test`
        named; and whether the model may `replace` this person. A person without items to compare has nan.
    """

    model: Any
    epsilon: float
    people: pd.DataFrame

    @property
    def n_people(self) -> int:
        """Number of people with items to compare."""
        return int((self.people["n_items"] > 0).sum())

    @property
    def winning_rate(self) -> float:
        """ω, the share of people whom the model may replace."""
        return float(self.people["replace"].sum() / self.n_people)

    @property
    def advantage(self) -> float:
        """The mean of ρ_f: how often the model represents the others at least as well as a person does."""
        return float(self.people["model_wins"].mean())

    @property
    def passes(self) -> bool:
        """Whether the winning rate is 1/2 or more."""
        return self.winning_rate >= PASSES

    def __repr__(self) -> str:
        return f"AlternativeTest({self._summary})"

    def _repr_html_(self) -> str:
        return display.html(
            "May a model replace people?", self._summary, (self.people, len(self.people), "people")
        )

    @property
    def _summary(self) -> str:
        verdict = "passes" if self.passes else "does not pass"
        return (
            f"{self.model} {verdict}: winning rate {self.winning_rate:.2f} over {self.n_people} people, "
            f"advantage {self.advantage:.2f}, epsilon {self.epsilon:g}"
        )


def alternative_test(
    labels: Any, model: Any, people: Iterable[Any] | None = None, epsilon: float = EPSILON
) -> AlternativeTest:
    """Whether a model may replace people, by the alternative annotator test of Calderon et al. (ACL 2025).

    Parameters
    ----------
    labels : Annotations, long table, label matrix or soft labels
        Of a soft label the class with the most weight counts, of several the first.
    model : annotator
        The name of the annotator that is to replace people.
    people : iterable of annotators, optional
        By default all other annotators. Two are needed, and three advised.
    epsilon : float, default=0.2
        ε, how much worse than a person the model may be, as its labels cost less. The authors advise 0.2
        where people are experts, 0.15 where they are skilled, and 0.1 for crowd workers.

    Returns
    -------
    AlternativeTest
        With `winning_rate`, `passes`, `advantage`, and `people`, one row per person.

    Examples
    --------
    >>> labels = [["a", "a", "a", "a"], ["b", "b", "a", "b"]] * 20
    >>> alternative_test(labels, model=3)
    AlternativeTest(3 passes: winning rate 1.00 over 3 people, advantage 1.00, epsilon 0.2)
    """
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon must be a number from 0 to below 1, found {epsilon!r}.")
    annotations = labels_alone(labels)
    who, at = _chosen(annotations, model, people)
    compared = _Compared(annotations, who, at)
    rows = []
    for m in range(len(who)):
        ahead, behind = compared.model_wins[compared.person == m], compared.person_wins[compared.person == m]
        rows.append((len(ahead), _mean(ahead), _mean(behind), *_p_value(behind - ahead, epsilon)))
    if not any(row[0] for row in rows):
        raise ValueError(
            f"There is no item that {show(model)} and two people have labelled; the people are "
            f"{some(annotations.annotators[who])}."
        )
    table = pd.DataFrame(
        rows,
        columns=["n_items", "model_wins", "person_wins", "p_value", "test"],
        index=index_of(annotations.annotators[who], "annotator"),
    )
    table["replace"] = benjamini_yekutieli(table["p_value"].to_numpy(dtype=np.float64), LEVEL)
    return AlternativeTest(annotations.annotators[at], float(epsilon), table)


def benjamini_yekutieli(p_values: Floats, level: float) -> NDArray[np.bool_]:
    """The hypotheses that are rejected, shape (n,), with a false discovery rate of `level`; nan is none."""
    known = np.flatnonzero(~np.isnan(p_values))
    n, order = len(known), known[np.argsort(p_values[known], kind="stable")]
    rank = np.arange(1, n + 1)
    small = np.flatnonzero(p_values[order] <= level * rank / (n * (1 / rank).sum()))
    rejected = np.zeros(len(p_values), dtype=bool)
    rejected[order[: small[-1] + 1 if len(small) else 0]] = True
    return rejected


def _chosen(a: Annotations, model: Any, people: Iterable[Any] | None) -> tuple[Index, int]:
    """Positions of the people and of the model."""
    at = int(locate(np.array([model, None], dtype=object)[:1], a.annotators)[0])
    if at < 0:
        raise ValueError(f"model {show(model)} is no annotator; the annotators are {some(a.annotators)}.")
    if people is None:
        who = np.delete(np.arange(a.n_annotators), at)
    else:
        names = np.array([*people, None], dtype=object)[:-1]
        who = locate(names, a.annotators)
        if (who < 0).any():
            raise ValueError(
                f"people: unknown annotators {some(names[who < 0])}; known: {some(a.annotators)}."
            )
        who = np.unique(who)
    if at in who:
        raise ValueError(f"people names the model itself, {show(model)}; leave it out.")
    if len(who) < 2:
        raise ValueError(f"The test needs two people or more, found {len(who)}: {some(a.annotators[who])}.")
    return who, at


class _Compared:
    """One comparison of the model with each person on each item that both, and another person, labelled.

    Attributes
    ----------
    person : array of int, shape (n,)
        Position among the people.
    model_wins, person_wins : array of float, shape (n,)
        W_f and W_j.
    """

    def __init__(self, a: Annotations, who: Index, at: int):
        hard = heaviest(a)
        place = np.full(a.n_annotators, -1)
        place[who] = np.arange(len(who))
        model = np.full(a.n_items, -1)
        own = a.annotator[hard] == at
        model[a.item[hard][own]] = a.label[hard][own]
        people = hard[place[a.annotator[hard]] >= 0]
        item, label, person = a.item[people], a.label[people], place[a.annotator[people]]
        several = np.bincount(item, minlength=a.n_items) > 1
        cells, votes = np.unique(item * a.n_classes + label, return_counts=True)
        use = several[item] & (model[item] >= 0)
        item, label, self.person = item[use], label[use], person[use]
        # other people's labels that are the candidate's; their number is the same for both candidates
        for_person = _count(cells, votes, item * a.n_classes + label) - 1
        for_model = _count(cells, votes, item * a.n_classes + model[item]) - (model[item] == label)
        self.model_wins: Floats = (for_model >= for_person).astype(np.float64)
        self.person_wins: Floats = (for_person >= for_model).astype(np.float64)


def heaviest(a: Annotations) -> Index:
    """The label of every pair (item, annotator) with the most weight, by its place; of several the first."""
    if a.weight is None:
        return np.arange(len(a))
    order = np.lexsort((a.label, -a.weight, a.pair))
    return np.asarray(order[np.diff(a.pair[order], prepend=-1) != 0])


def _count(cells: Index, votes: Index, wanted: Index) -> Index:
    """The votes of cells, 0 for cells without any."""
    at = np.minimum(np.searchsorted(cells, wanted), max(len(cells) - 1, 0))
    return np.where(cells[at] == wanted, votes[at], 0)


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _p_value(difference: Floats, epsilon: float) -> tuple[float, str]:
    """p of H0: mean W_j − W_f ≥ ε against less, and the name of the test."""
    n = len(difference)
    if not n:
        return float("nan"), ""
    test = "t" if n >= MANY_ITEMS else "Wilcoxon"
    if np.ptp(difference) == 0 and test == "t":  # no variance, no t
        return float(difference[0] >= epsilon), test
    from scipy.stats import ttest_1samp, wilcoxon  # a second to import

    if test == "t":
        return float(ttest_1samp(difference, epsilon, alternative="less").pvalue), test
    rest = difference - epsilon
    return (float(wilcoxon(rest, alternative="less").pvalue) if rest.any() else 1.0), test
