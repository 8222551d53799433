"""The answers that the page of a review gets; every method takes and returns JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from annotmix._common.words import shorten
from annotmix.reading.decisions import Decision, Verdict
from annotmix.review.board import Board
from annotmix.review.item import Features, Shown, item_view, whole_texts
from annotmix.review.orders import ORDERS
from annotmix.review.pictures import Pictures
from annotmix.review.queue import PAGE, STATUSES, Filters, Index
from annotmix.review.training import Training, open_decisions
from annotmix.runs.folder import RunFolder
from annotmix.runs.report.run import run_page

Reply = dict[str, Any]

#: Annotators whose names the page proposes; longest name of a reviewer; longest note; items sent ahead.
PROPOSED, LONGEST_NAME, LONGEST_NOTE, AHEAD = 2000, 100, 2000, 5
#: The share of wrong labels that a review aims at, unless the page says another one.
TARGET = 0.05


class Session:
    """The review of one run.

    Parameters
    ----------
    run : RunFolder
    images : Path, optional
        A folder with the whole pictures of the items.
    reviewer : str
        The name that the page proposes.
    """

    def __init__(self, run: RunFolder, images: Path | None = None, reviewer: str = ""):
        self.run, self.reviewer = run, reviewer
        findings = run.findings()
        self.index = Index(findings)
        features = None if findings.previews else Features.of(run)
        self.shown = Shown(features, Pictures(self.index, images), whole_texts(run, findings))
        self.decisions = open_decisions(run)
        self.board = Board(self.index, self.decisions)
        self.training = Training(run, findings, self.decisions)

    def close(self) -> None:
        """End what runs beside the server."""
        self.training.stop()
        self.decisions.close()

    # ---------------------------------------------------------------- what is there

    def about(self, _: Mapping[str, str]) -> Reply:
        """The run."""
        found = self.index.findings
        most = found.annotators["n_labels"].to_numpy().argsort(kind="stable")[::-1][:PROPOSED]
        return {
            "title": shorten(found.title, 200),
            "folder": self.run.path.name,
            "classes": self.index.classes,
            "annotators": [self.index.annotators[row] for row in most.tolist()],
            "items": len(self.index.items),
            "orders": ORDERS,
            "statuses": STATUSES,
            "reviewer": self.reviewer,
            "target": TARGET,
            "command": f"annotmix fit … --gold {self.decisions.path}",
        }

    def queue(self, query: Mapping[str, str]) -> Reply:
        """A page of a queue."""
        filters = Filters.read(query)
        self.board.refresh()
        rows = self.index.rows(filters, self.board.status)
        pages = max(-(-len(rows) // PAGE), 1)
        number = min(max(_integer(query, "page", 1), 1), pages)
        listed = rows[(number - 1) * PAGE : number * PAGE]
        return {
            "total": len(rows),
            "page": number,
            "pages": pages,
            "rows": [self._line(row) for row in listed.tolist()],
        }

    def _line(self, row: int) -> Reply:
        found = self.index.findings
        preview = found.previews.get(self.index.items[row])
        return {
            "row": row,
            "name": shorten(self.index.items[row], 80),
            "text": shorten(preview.text, 90) if preview is not None and preview.image is None else "",
            "label": found.items["label"].iat[row],
            "probability": float(np.nan_to_num(found.items["probability"].iat[row])),
            "status": list(STATUSES)[self.board.status[row]],
        }

    def following(self, query: Mapping[str, str]) -> Reply:
        """The next items of a queue after an item, or before it with `back`, complete."""
        filters = Filters.read(query)
        self.board.refresh()
        row = self._row(query["item"]) if query.get("item") else None
        n = min(max(_integer(query, "n", 1), 1), AHEAD)
        rows = self.board.following(filters, _reviewer(query), row, n, bool(query.get("back")))
        return {"items": [self._view(one) for one in rows]}

    def item(self, query: Mapping[str, str]) -> Reply:
        """Everything about one item."""
        self.board.refresh()
        row = self._row(query.get("item", ""))
        self.board.hold(row, _reviewer(query))
        return self._view(row)

    def _view(self, row: int) -> Reply:
        return item_view(self.index, self.board, row, self.shown)

    def picture(self, row: int) -> tuple[bytes, str] | None:
        """The picture of an item and its media type."""
        return self.shown.pictures.of_item(row) if 0 <= row < len(self.index.items) else None

    def progress(self, query: Mapping[str, str]) -> Reply:
        """How far the review is."""
        try:
            target = float(query.get("target") or TARGET)
        except ValueError:
            raise ValueError("The share of wrong labels to reach is a number from 0 to 1.") from None
        if not 0 <= target <= 1:
            raise ValueError(f"The share of wrong labels to reach is a number from 0 to 1, found {target:g}.")
        return self.board.progress(target)

    def report(self, which: str) -> str | None:
        """The report of the run, or of the one that learnt from the review.

        It is made of the findings: the file in the folder of somebody else's run may hold any code.
        """
        if which == "run":
            return run_page(self.index.findings)
        answer = self.training.answer()
        if which != "new" or answer["state"] != "done":
            return None
        return run_page(RunFolder(Path(answer["out"])).findings())

    # ---------------------------------------------------------------- what a reviewer does

    def decide(self, told: Mapping[str, Any]) -> Reply:
        """Keep a decision; it is on the disk when the answer comes."""
        row, who, verdict = self._row(told.get("item")), _reviewer(told), told.get("verdict")
        if verdict not in get_args(Verdict):
            raise ValueError(f"A verdict is one of {', '.join(get_args(Verdict))}, found {verdict!r:.60}.")
        label = told.get("label") if verdict == "class" else None
        if verdict == "class" and label not in self.index.classes:
            raise ValueError(f"The run has no class {label!r:.60}.")
        note, filters = told.get("note", ""), told.get("filters", {})
        if not isinstance(note, str) or len(note) > LONGEST_NOTE:
            raise ValueError(f"A note is a text of at most {LONGEST_NOTE} characters.")
        if not isinstance(filters, dict) or not all(isinstance(own, str) for own in filters.values()):
            raise ValueError("The filters are texts by their names.")
        self.board.refresh()
        queue = Filters.read(filters)
        found = self.index.findings.items
        shown = {
            "consensus": found["label"].iat[row],
            "probability": float(np.nan_to_num(found["probability"].iat[row])),
            "classifier": found["classifier"].iat[row],
            "votes": found["votes"].iat[row][:500],
            "filters": {name: value for name, value in filters.items() if value},
        }
        chosen = self.board.chosen(row, queue, who)
        decision = Decision(self.index.items[row], who, cast(Verdict, verdict), label, note, chosen, shown)
        try:
            number = self.decisions.add(decision)
        except UnicodeEncodeError:
            raise ValueError("A name or the note holds half a character, which cannot be kept.") from None
        self.board.refresh()
        return {"number": number, "status": list(STATUSES)[self.board.status[row]]}

    def undo(self, told: Mapping[str, Any]) -> Reply:
        """Take back the newest decision of a reviewer; the item, or null where there is none."""
        taken = self.decisions.undo(_reviewer(told))
        self.board.refresh()
        row = None if taken is None else self.board.row.get(taken.item)
        return {"item": None if row is None else self._view(row)}

    def train(self) -> Reply:
        """Learn again with the decisions."""
        self.training.start()
        return self.training.answer()

    def _row(self, value: Any) -> int:
        try:
            row = int(value)
        except (TypeError, ValueError):
            row = -1
        if not 0 <= row < len(self.index.items):
            raise ValueError(f"There is no item {value!r:.60}.")
        return row


def _reviewer(told: Mapping[str, Any]) -> str:
    name = told.get("reviewer", "")
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME:
        raise ValueError(f"A reviewer has a name of at most {LONGEST_NAME} characters.")
    return name.strip()


def _integer(query: Mapping[str, str], name: str, default: int) -> int:
    try:
        return int(query.get(name) or default)
    except ValueError:
        raise ValueError(f"{name} is a number, found {query[name]!r:.60}.") from None
