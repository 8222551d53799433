"""The decisions of all reviewers, as the queues and the progress need them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from annotmix.reading.decisions import Decision, Decisions, most_said
from annotmix.review.estimate import progress, reviews_until, sample_order
from annotmix.review.queue import STATUS, Filters, Index

#: Seconds for which an item that a reviewer looks at is shown to no other one.
HELD = 180.0


class Board:
    """What has become of every item; it follows the file, also where other processes write to it.

    Parameters
    ----------
    index : Index
    decisions : Decisions
    clock : callable, optional
        Seconds that pass.

    Attributes
    ----------
    status : array, shape (N,)
        Codes of `STATUS`.
    """

    def __init__(self, index: Index, decisions: Decisions, clock: Callable[[], float] = time.monotonic):
        self.index, self.decisions = index, decisions
        self.row = {name: row for row, name in enumerate(index.items)}
        self._place = np.argsort(sample_order(len(index.items)))
        self._clock, self._lock = clock, threading.RLock()
        self._held: dict[int, tuple[str, float]] = {}
        self._progress: tuple[Any, dict[str, Any]] | None = None
        self._reset()
        self.refresh()

    def _reset(self) -> None:
        self._state = (0, 0.0)
        self._said: dict[int, dict[str, Decision]] = {}
        self._true: dict[int, str] = {}
        self.status = np.where(self.index.gold, STATUS["known"], STATUS["open"]).astype(np.int8)

    def refresh(self) -> tuple[int, float]:
        """Read what is new; returns the state of the file."""
        with self._lock:
            state = self.decisions.state()
            if state == self._state:
                return state
            if state[1] != self._state[1]:
                self._reset()
            new = self.decisions.current(after=self._state[0])
            for decision in new:
                row = self.row.get(decision.item)
                if row is not None:
                    self._said.setdefault(row, {})[decision.reviewer] = decision
                    self._judge(row)
            self._state = state
            return state

    def _judge(self, row: int) -> None:
        status, label = verdict_of(list(self._said[row].values()))
        self.status[row] = STATUS[status]
        self._true.pop(row, None)
        if label is not None:
            self._true[row] = label

    def said(self, row: int) -> list[Decision]:
        """The decisions about an item, oldest first."""
        with self._lock:
            return sorted(self._said.get(row, {}).values(), key=lambda decision: decision.number)

    def true_labels(self) -> dict[str, str]:
        """The true class of every decided item of the run."""
        with self._lock:
            return {self.index.items[row]: label for row, label in self._true.items()}

    # ---------------------------------------------------------------- who sees what

    def following(
        self, filters: Filters, reviewer: str, row: int | None, n: int, back: bool = False
    ) -> list[int]:
        """The next items of a queue after an item, or before it, that no other reviewer looks at now.

        At its end a queue begins again, for the items that were passed.
        """
        rows = self.index.rows(filters, self.status)
        if back:
            rows = rows[::-1]
        if row is not None:
            rank = self.index.rank(filters.order)
            passed = rank[rows] >= rank[row] if back else rank[rows] <= rank[row]
            rows = np.concatenate([rows[~passed], rows[passed & (rows != row)]])
        with self._lock:
            others = self._held_by_others(reviewer)
            chosen: list[int] = []
            for one in rows.tolist():
                if len(chosen) == n:
                    break
                if one not in others:
                    chosen.append(one)
            until = self._clock() + HELD
            self._held.update((one, (reviewer, until)) for one in chosen)
        return chosen

    def hold(self, row: int, reviewer: str) -> None:
        """A reviewer looks at an item."""
        with self._lock:
            if row not in self._held_by_others(reviewer):
                self._held[row] = (reviewer, self._clock() + HELD)

    def _held_by_others(self, reviewer: str) -> set[int]:
        now = self._clock()
        self._held = {row: own for row, own in self._held.items() if own[1] > now}
        return {row for row, (who, _) in self._held.items() if who != reviewer}

    def chosen(self, row: int, filters: Filters, reviewer: str) -> Literal["sample", "queue"]:
        """Whether an item is reviewed as the next one of the random sample.

        It is not where filters leave items out, nor where the reviewer has jumped over earlier ones of the
        sample: the estimate takes the beginning of the sample as complete.
        """
        if any(decision.chosen == "sample" for decision in self.said(row)):
            return "sample"
        order = self.index.order(filters.order)
        if filters.narrow or not order.drawn[self.index.rank(filters.order)[row]]:
            return "queue"
        earlier = (self._place < self._place[row]) & (self.status == STATUS["open"])
        with self._lock:
            earlier[list(self._held_by_others(reviewer))] = False
        return "queue" if earlier.any() else "sample"

    # ---------------------------------------------------------------- how far it is

    def progress(self, target: float) -> dict[str, Any]:
        """What the review has achieved, and how many more reviews leave a share `target` of wrong labels."""
        state = self.refresh()
        with self._lock:
            if self._progress is not None and self._progress[0] == (state, target):
                return self._progress[1]
            true, items = self.true_labels(), self.index.findings.items
            own = (decision for said in self._said.values() for decision in said.values())
            sampled = {decision.item for decision in own if decision.chosen == "sample"}
            reviewed = len(self._said)
        made = progress(items, true, sampled)
        answer = {
            "reviewed": reviewed,
            "decided": made.decided,
            "agreeing": made.agreeing,
            "left": made.left._asdict(),
            "sample": None if made.sample is None else made.sample._asdict(),
            "until": reviews_until(items, true, target),
            "target": target,
        }
        self._progress = ((state, target), answer)
        return answer


def verdict_of(said: list[Decision]) -> tuple[str, str | None]:
    """The status of an item by the decisions of its reviewers, and its class where it has one."""
    counts: Counter[tuple[str, str | None]] = Counter(
        (d.verdict, d.label) for d in said if d.verdict in ("class", "invalid")
    )
    if counts:
        verdict, label = most_said(counts)
        return {"class": "decided", "invalid": "invalid", "": "disagreed"}[verdict], label
    verdicts = {decision.verdict for decision in said}
    return next((status for status in ("unsure", "skipped") if status in verdicts), "open"), None
