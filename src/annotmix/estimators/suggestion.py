"""The items to label next, and the annotators to label them.

For an item whose classes have the probabilities q in the posterior (`annotmix.posterior`) and an annotator
with the confusion matrix θ there, a further label z has the expected information

    I(class; z) = H(q θ) − Σ_c q_c H(θ_c)   bits.

It is large where the item is uncertain and the annotator distinguishes its likely classes well; a spammer's
label is worth nothing anywhere. Little is known about annotators with few labels, so they get credit: with n
labels, suggested ones included, they count as the best annotator of the item with the weight κ / (κ + n), and
as themselves with the rest. The pairs with the most information for their cost are chosen one by one; among
equals, the annotator whose accuracy has the higher lower end of its interval.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import some
from annotmix.labels.names import as_names, locate
from annotmix.labels.posterior import Posterior

if TYPE_CHECKING:
    from annotmix.estimators.crowd import CrowdClassifier
    from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

#: Pairs (item, annotator) that are scored; with more, the most uncertain items and the best annotators.
MOST_PAIRS = 500_000
MOST_ANNOTATORS = 500
#: More suggestions for one annotator than there are pairs.
NO_LIMIT = 2**31 - 1
#: Entries of the confusion matrices of all annotators that are scored; with more, fewer annotators are.
MOST_MATRICES = 5 * 10**7
#: Entries of the confusion matrices that are in memory at once.
MOST_ENTRIES = 2**22
#: Annotators of a kind who tell how good a newcomer of this kind is.
MOST_OF_KIND = 200
#: κ, labels after which an annotator is half known.
CREDIT = 5.0


def suggest(
    model: MultiAnnotatorClassifier | CrowdClassifier,
    X: Any = None,
    annotations: Any = None,
    budget: float = 200,
    *,
    items: Iterable[Any] | None = None,
    annotators: Iterable[Any] | None = None,
    newcomers: Iterable[Any] = (),
    per_item: int = 1,
    per_annotator: int | Mapping[Any, int] | None = None,
    cost: Mapping[Any, float] | None = None,
    credit: float = CREDIT,
) -> pd.DataFrame:
    """Pairs (item, annotator) whose labels have the most expected information.

    Parameters
    ----------
    model : MultiAnnotatorClassifier or CrowdClassifier
        Fitted.
    X : array-like, shape (n, ...), optional
        Items, labelled or not; by default the training items with their labels.
    annotations : label matrix, long table or Annotations, optional
        The labels so far; no pair with a label is suggested.
    budget : float, default=200
        A number of labels, or, with `cost`, an amount of money.
    items : iterable, optional
        Names of the rows of X.
    annotators : iterable, optional
        Available annotators; by default all that the model knows.
    newcomers : iterable, optional
        Further available annotators, unknown to the model.
    per_item : int, default=1
        Most suggestions for one item.
    per_annotator : int or mapping of annotator to int, optional
        Most suggestions for one annotator; 0 for one who has no time. The default, also for
        annotators that a mapping leaves out, is what twice an equal share of the budget buys.
    cost : mapping of annotator to float, optional
        Cost of one label of each available annotator; by default 1.
    credit : float, default=5
        κ, the number of labels after which an annotator is half known; 0 for no credit.

    Returns
    -------
    DataFrame, best first
        `item`, `annotator`, `gain` (in bits) and `performance` (the chance that this annotator is right on
        this item), both without credit, and `cost` if costs were passed. Annotators without labels have
        the confusion matrix of all labels together. The limits can leave a part of the budget.
    """
    return suggest_from(
        model.judge(X, annotations, items=items),
        budget,
        annotators=annotators,
        newcomers=newcomers,
        per_item=per_item,
        per_annotator=per_annotator,
        cost=cost,
        credit=credit,
    )


def suggest_from(
    posterior: Posterior,
    budget: float,
    *,
    annotators: Iterable[Any] | None = None,
    newcomers: Iterable[Any] = (),
    per_item: int = 1,
    per_annotator: int | Mapping[Any, int] | None = None,
    cost: Mapping[Any, float] | None = None,
    credit: float = CREDIT,
    exclude: Iterable[Any] = (),
    kinds: Mapping[Any, str] | None = None,
) -> pd.DataFrame:
    """`suggest`, from the posterior of the items; items in `exclude` are not suggested.

    With `kinds`, an annotator without labels has the mean confusion matrix of the annotators of their kind.
    """
    _require_number("budget", budget, whole=False)
    _require_number("per_item", per_item, whole=True)
    _require_number("credit", credit, whole=False, zero=True)
    who, names = _annotators(posterior, annotators, list(newcomers))
    price = _prices(cost, names)
    limit = _limits(per_annotator, names, budget, price)
    with np.errstate(over="ignore"):
        most_labels = min(float(budget / price.min()), NO_LIMIT)
    rows = _items(posterior, most_labels, per_item, len(who), list(exclude))
    gain, performance = _expected(posterior, rows, who)
    for own, theta in _matrices_of_kinds(posterior, who, names, kinds or {}):
        bits, right = _about_label(posterior.answer.q[rows], theta)
        gain[:, own], performance[:, own] = np.maximum(bits, 0)[:, None], right[:, None]
    labels = np.where(who < 0, 0, posterior.annotations.labels_per_annotator[who])
    free = _without_label(posterior, rows, who)
    chosen = _greedy(gain, free, labels, budget, per_item, limit, price, credit)
    item, column = (np.array([pair[axis] for pair in chosen], dtype=np.int64) for axis in (0, 1))
    table = pd.DataFrame(
        {
            "item": posterior.annotations.items[rows[item]],
            "annotator": names[column],
            "gain": gain[item, column],
            "performance": performance[item, column],
        }
    )
    return table if cost is None else table.assign(cost=price[column])


def _require_number(name: str, value: Any, *, whole: bool, zero: bool = False) -> None:
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    if isinstance(value, kinds) and math.isfinite(value) and (value > 0 or (zero and value == 0)):
        return
    expected = f"{'0 or ' if zero else ''}a positive {'integer' if whole else 'number'}"
    raise ValueError(f"{name} must be {expected}, found {value!r}.")


def _annotators(
    posterior: Posterior, wanted: Iterable[Any] | None, newcomers: list[Any]
) -> tuple[Index, NDArray[Any]]:
    """Positions and names of the available annotators; -1 for newcomers, who come last.

    Best first by the lower end of the interval of their accuracy. Where nobody is named and the model knows
    very many annotators, these are the first ones.
    """
    known = posterior.annotations.annotators
    if wanted is not None:
        names = np.array(list(wanted), dtype=object)
        who = locate(names, known)
        if (who < 0).any():
            raise ValueError(
                f"Unknown annotators {some(names[who < 0])}; the model knows {some(known)}. Name new "
                "annotators as newcomers."
            )
    else:
        who = np.arange(len(known))
    if not len(who) + len(newcomers):
        raise ValueError("annotators must name at least one annotator.")
    new = np.array(newcomers, dtype=object)
    if (old := locate(new, known) >= 0).any():
        raise ValueError(
            f"newcomers names {some(new[old])}, but the model knows them; name them in annotators."
        )
    best_first = locate(posterior.annotators.index.to_numpy(), known)
    who = best_first[np.isin(best_first, who)]
    if wanted is None:
        who = who[: min(MOST_ANNOTATORS, max(MOST_MATRICES // posterior.answer.q.shape[1] ** 2, 1))]
    names = as_names([*known[who].tolist(), *newcomers], None, "annotators")
    return np.concatenate([who, np.full(len(newcomers), -1)]), names


def _prices(cost: Mapping[Any, float] | None, names: NDArray[Any]) -> Floats:
    """Cost of one label of each annotator, shape (M,)."""
    if cost is None:
        return np.ones(len(names))
    if missing := [name for name in names.tolist() if name not in cost]:
        raise ValueError(f"cost must name every available annotator; missing: {some(missing)}.")
    for name in names.tolist():
        _require_number(f"The cost of {name!r}", cost[name], whole=False)
    return np.array([cost[name] for name in names.tolist()], dtype=np.float64)


def _limits(
    per_annotator: int | Mapping[Any, int] | None, names: NDArray[Any], budget: float, price: Floats
) -> Index:
    """Most suggestions for each annotator, shape (M,)."""
    with np.errstate(over="ignore"):  # a very large budget, or a price of nearly nothing
        share = np.clip(np.ceil(2 * budget / (len(names) * price)), 1, NO_LIMIT).astype(np.int64)
    if per_annotator is None:
        return share
    if not isinstance(per_annotator, Mapping):
        _require_number("per_annotator", per_annotator, whole=True)
        return np.full(len(names), min(per_annotator, NO_LIMIT))
    for m, name in enumerate(names.tolist()):
        if name in per_annotator:
            _require_number(f"per_annotator of {name!r}", per_annotator[name], whole=True, zero=True)
            share[m] = min(per_annotator[name], NO_LIMIT)
    return share


def _items(
    posterior: Posterior, most_labels: float, per_item: int, n_annotators: int, exclude: list[Any]
) -> Index:
    """Rows of the most uncertain items: no label has more information than the item's entropy."""
    n = min(math.ceil(most_labels), len(posterior.answer.q) * n_annotators)
    most = max(math.ceil(n / per_item), min(4 * n + 100, MOST_PAIRS // n_annotators))
    rows = np.argsort(-_entropy(posterior.answer.q), kind="stable")
    if exclude:
        barred = locate(np.array(exclude, dtype=object), posterior.annotations.items)
        rows = rows[~np.isin(rows, barred)]
    return rows[:most]


def _expected(posterior: Posterior, rows: Index, who: Index) -> tuple[Floats, Floats]:
    """Expected bits, and chance of a right label, of every pair; shapes (len(rows), len(who)).

    An annotator without labels has the matrix of all labels together.
    """
    q, counted = posterior.answer.q[rows], posterior.counted
    gain, performance = np.empty((2, len(rows), len(who)))
    seen = (who >= 0) & (posterior.annotations.labels_per_annotator[who] > 0)
    known, new = np.flatnonzero(seen), np.flatnonzero(~seen)
    step = max(1, MOST_ENTRIES // q.shape[1] ** 2)
    for first in range(0, len(known), step):
        columns = known[first : first + step]
        for m, theta in zip(columns, counted.matrices(who[columns]), strict=True):
            gain[:, m], performance[:, m] = _about_label(q, theta)
    if len(new):
        gain[:, new], performance[:, new] = (part[:, None] for part in _about_label(q, counted.common))
    return np.maximum(gain, 0), performance


def _matrices_of_kinds(
    posterior: Posterior, who: Index, names: NDArray[Any], kinds: Mapping[Any, str]
) -> Iterator[tuple[Index, Floats]]:
    """Columns of annotators without labels, and the confusion matrix of their kind, shape (C, C).

    It is the mean over the kind's annotators with labels, at most `MOST_OF_KIND` with most labels, weighted
    by their labels.
    """
    a = posterior.annotations
    new = np.flatnonzero((who < 0) | (a.labels_per_annotator[who] == 0))
    kind_of_new = np.array([kinds.get(names[m], "") for m in new], dtype=object)
    if not len(new):
        return
    kind = np.array([kinds.get(name, "") for name in a.annotators], dtype=object)
    for one in sorted({*kind_of_new} - {""}):
        same = np.flatnonzero((kind == one) & (a.labels_per_annotator > 0))
        if len(same):
            same = same[np.argsort(-a.labels_per_annotator[same], kind="stable")[:MOST_OF_KIND]]
            mean = np.zeros(posterior.counted.common.shape)
            for m in same:
                mean += a.labels_per_annotator[m] * posterior.counted.matrices(np.array([m]))[0]
            yield new[kind_of_new == one], mean / a.labels_per_annotator[same].sum()


def _about_label(q: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """I(class; label) in bits and P(label is right), shapes (n,), from q, (n, C), and θ, (C, C)."""
    return _entropy(q @ theta) - q @ _entropy(theta), q @ np.diag(theta)


def _without_label(posterior: Posterior, rows: Index, who: Index) -> NDArray[np.bool_]:
    """Pairs that have no label yet, shape (len(rows), len(who))."""
    a = posterior.annotations
    row_of, column_of = np.full(a.n_items, -1), np.full(a.n_annotators, -1)
    row_of[rows], column_of[who[who >= 0]] = np.arange(len(rows)), np.flatnonzero(who >= 0)
    row, column = row_of[a.item], column_of[a.annotator]
    here = (row >= 0) & (column >= 0)
    free = np.ones((len(rows), len(who)), dtype=bool)
    free[row[here], column[here]] = False
    return free


def _greedy(
    gain: Floats,
    free: NDArray[np.bool_],
    labels: Index,
    budget: float,
    per_item: int,
    limit: Index,
    price: Floats,
    credit: float,
) -> list[tuple[int, int]]:
    """The pairs with the highest value for their price, chosen greedily within the limits; best first.

    A heap holds every item with the value of its best label. Values only fall, as credit is used up and
    annotators reach their limits: an item at the top whose value has fallen is put back with its new value.
    """
    barred, count = np.where(free, 0.0, -np.inf), np.zeros(len(gain), dtype=np.int64)
    n_suggested, best = np.zeros(len(limit), dtype=np.int64), gain.max(axis=1, keepdims=True)
    chosen: list[tuple[int, int]] = []
    left = budget

    def worth(rows: slice) -> Floats:
        return np.asarray(own * gain[rows] + lent * best[rows] + (barred[rows] + shut))

    while True:
        # weights of an annotator's own gain and of the best one's; they change with every choice
        weight = credit / np.maximum(credit + labels + n_suggested, np.finfo(float).tiny)
        own, lent = (1 - weight) / price, weight / price
        shut = np.where((n_suggested >= limit) | (price > left), -np.inf, 0.0)
        if not chosen:
            heap = [(-value, n) for n, value in enumerate(worth(slice(None)).max(axis=1).tolist())]
            heapq.heapify(heap)
        while heap:
            negative, n = heap[0]
            values = worth(slice(n, n + 1))[0]
            m = int(values.argmax())
            if values[m] == -negative:
                break
            heapq.heapreplace(heap, (-float(values[m]), n))
        if not heap or heap[0][0] == np.inf:
            return chosen  # no pair is left
        chosen.append((n, m))
        left -= price[m]
        n_suggested[m] += 1
        count[n] += 1
        barred[n, m] = -np.inf
        if count[n] == per_item:
            heapq.heappop(heap)


def _entropy(probabilities: Floats) -> Floats:
    """Entropy in bits over the last axis."""
    safe = np.maximum(probabilities, 1e-300)
    return np.asarray(-(probabilities * np.log2(safe)).sum(axis=-1))
