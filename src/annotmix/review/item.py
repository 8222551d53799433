"""What the page shows of one item."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotmix._common.files import to_json
from annotmix.estimators.preparation import Preparation
from annotmix.reading import read_texts
from annotmix.review.board import Board
from annotmix.review.pictures import Pictures
from annotmix.review.queue import STATUSES, Index
from annotmix.runs.findings import Findings
from annotmix.runs.folder import RunFolder
from annotmix.runs.request import Request

#: Features of an item that are shown.
MOST_FEATURES = 60


class Features:
    """The features of items with the names and values that they had in their file.

    They are made of the prepared features, from which a missing number cannot be told from the median, and
    a rare category not from others.

    Parameters
    ----------
    columns : Preparation
    prepared : array, shape (N, D)
    """

    def __init__(self, columns: Preparation, prepared: NDArray[np.float32]):
        self.columns, self.prepared = columns, prepared

    @classmethod
    def of(cls, run: RunFolder) -> Features:
        """Those of a run."""
        return cls(*run.read("columns", "features"))

    def of_item(self, row: int) -> list[list[Any]]:
        """Name and value of every feature of an item."""
        own, n = self.prepared[row].astype(np.float64), len(self.columns.numeric)
        numbers = own[:n] * self.columns.scale + self.columns.mean
        # what is left of them in single precision
        places = 5 - np.floor(np.log10(self.columns.scale)).astype(int)
        values: list[list[Any]] = [
            [name, round(number, place)]
            for name, number, place in zip(
                self.columns.numeric, numbers.tolist(), places.tolist(), strict=True
            )
        ]
        at = n + len(self.columns.indicated)
        for name, levels in self.columns.levels.items():
            part = own[at : at + len(levels)]
            values.append([name, levels[int(part.argmax())] if part.any() else None])
            at += len(levels)
        return values[:MOST_FEATURES]


def whole_texts(run: RunFolder, found: Findings) -> dict[str, str]:
    """The texts of a run's items, of which findings keep the beginning, where their file is as it was."""
    request: Request = run.read("request")[0]
    if request.text is None:
        return {}
    try:
        items = read_texts(request.text, request.text_column, request.item_column)
    except (OSError, ValueError):
        return {}
    if items.sources[0].sha256 not in {source["sha256"] for source in found.inputs}:
        return {}
    return dict(zip(items.ids, items.X, strict=True))


class Shown(NamedTuple):
    """The content of items: features, or pictures, or whole texts by their item."""

    features: Features | None
    pictures: Pictures
    texts: Mapping[str, str] = MappingProxyType({})


def item_view(index: Index, board: Board, row: int, shown: Shown) -> dict[str, Any]:
    """Everything about an item as JSON.

    Parameters
    ----------
    index : Index
    board : Board
    row : int
    shown : Shown
        The content of items beside the findings.
    """
    found = index.findings
    own = {column: found.items[column].iat[row] for column in found.items.columns}
    name = index.items[row]
    preview = found.previews.get(name)
    text = preview.text if preview is not None and preview.image is None else ""
    votes = _votes(index, row)
    return {
        "row": row,
        "name": name,
        "label": own["label"],
        "probability": _number(own["probability"]),
        "classifier": own["classifier"],
        "gold": (index.gold[row].item() and own["gold"]) or None,
        "why": why(own["label"], own["classifier"], votes, bool(index.gold[row]), classifier_counts(index)),
        "text": shown.texts.get(name, text),
        "cut": text.endswith("…") and name not in shown.texts,
        "picture": shown.pictures.whole(row) or (preview is not None and preview.image is not None),
        "features": [] if shown.features is None else to_json(shown.features.of_item(row)),
        "votes": votes,
        "status": list(STATUSES)[board.status[row]],
        "decisions": [
            {"reviewer": d.reviewer, "verdict": d.verdict, "label": d.label, "note": d.note}
            for d in board.said(row)
        ],
    }


def classifier_counts(index: Index) -> bool:
    """Whether the labels found rest on the classifier, too."""
    weights = index.findings.settings.get("posterior")
    return isinstance(weights, dict) and bool(weights.get("classifier"))


def _votes(index: Index, row: int) -> list[dict[str, Any]]:
    """The labels of an item, the most probable first."""
    found, c = index.findings, int(index.label[row])
    place = index.votes(row)
    own = found.labels.take(index.vote_row[place])
    weight = own["weight"].to_numpy() if "weight" in own else None
    votes = []
    for n, (annotator, label) in enumerate(
        zip(index.vote_annotator[place].tolist(), index.vote_label[place].tolist(), strict=True)
    ):
        reliability = found.confusion.diagonal[annotator, c] if c >= 0 else np.nan
        votes.append(
            {
                "annotator": index.annotators[annotator],
                "label": index.classes[label],
                "probability": _number(own["probability"].iat[n]),
                "reliability": _number(reliability),
                "accuracy": _number(found.annotators["accuracy"].iat[annotator]),
                "weight": None if weight is None else _number(weight[n]),
                "time": str(own["time"].iat[n]) if "time" in own else "",
            }
        )
    return sorted(votes, key=lambda vote: -(vote["probability"] or 0.0))


def why(label: str, classifier: str, votes: list[dict[str, Any]], gold: bool, counts: bool) -> str:
    """A sentence about why the label found of an item is what it is.

    Parameters
    ----------
    label, classifier : str
        The label found, and the opinion of the classifier.
    votes : list of dict
        `label`, `reliability` and `weight` of every label of the item.
    gold : bool
        Whether the true class was known.
    counts : bool
        Whether the opinion of the classifier counts.
    """
    if gold:
        return f"The true class of this item was known before (--gold): {label}."
    if not votes:
        return f"Nobody labelled this item; {label} is the opinion of the classifier alone."
    total: dict[str, float] = {}
    for vote in votes:
        weight = 1.0 if vote.get("weight") is None else vote["weight"]
        total[vote["label"]] = total.get(vote["label"], 0.0) + weight
    own, most = total.get(label, 0.0), max(total.values())
    agrees = (
        f"the classifier says {label} too" if classifier == label else f"the classifier says {classifier}"
    )
    n = len(votes)
    if len(total) == 1 and own:
        who = {1: "The only label says", 2: "Both labels say"}.get(n, f"All {n} labels say")
        said = f"{who} {label}"
        return f"{said}, and {agrees}." if classifier == label else f"{said}, although {agrees}."
    with_it = [vote for vote in votes if vote["label"] == label]
    rivals = [name for name, weight in total.items() if weight == most and name != label]
    if own == most and not rivals:
        said = f"{len(with_it)} of {n} labels say {label}, more than any other class"
        return f"{said}; {agrees}." if classifier == label else f"{said}, although {agrees}."
    reasons = []
    if classifier == label and counts:
        reasons.append(agrees if with_it else "the classifier does")
    mine, others = _mean(with_it), _mean([vote for vote in votes if vote["label"] in rivals])
    if mine is not None and others is not None and mine > others:
        reasons.append(
            f"annotators who said {label} give it to such items more reliably ({mine:.0%} right) than those "
            f"who said {' or '.join(rivals)} ({others:.0%})"
        )
    if own == most:
        said = f"As many labels say {label} as {' or '.join(rivals)}"
    elif with_it:
        said = f"Only {len(with_it)} of {n} labels {'says' if len(with_it) == 1 else 'say'} {label}"
    else:
        said = f"No label says {label}"
    reason = (
        ", and ".join(reasons)
        or "all labels and the known confusions of their annotators make it most probable"
    )
    return f"{said}, but {reason}."


def _mean(votes: list[dict[str, Any]]) -> float | None:
    known = [vote["reliability"] for vote in votes if vote["reliability"] is not None]
    return sum(known) / len(known) if known else None


def _number(value: Any) -> float | None:
    return None if value is None or np.isnan(value) else float(value)
