"""The decisions of reviewers about items: one SQLite file, which several reviewers write at once.

A decision is on the disk before `add` returns. The newest decision of a reviewer about an item counts,
unless it was taken back; nothing is ever overwritten. The true class of an item is the one that most of its
reviewers chose; with a tie there is none.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

NAME = "review.db"
FORMAT = 1
Verdict = Literal["class", "unsure", "invalid", "skipped"]
_APPLICATION = 0x616E7276  # "anrv", marks the file as ours
_MAGIC = b"SQLite format 3\x00"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS decision (
    id INTEGER PRIMARY KEY,
    item TEXT NOT NULL,
    reviewer TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('class', 'unsure', 'invalid', 'skipped')),
    class TEXT,                -- of the verdict 'class'
    note TEXT NOT NULL,
    chosen TEXT NOT NULL CHECK (chosen IN ('sample', 'queue')),  -- at random, or by a queue
    shown TEXT NOT NULL,       -- JSON: what the reviewer saw
    time REAL NOT NULL,        -- seconds since 1970
    undone REAL,               -- when it was taken back
    CHECK ((verdict = 'class') = (class IS NOT NULL))
);
CREATE INDEX IF NOT EXISTS decision_item ON decision (item, reviewer);
"""


class DecisionsError(OSError, ValueError):
    """A file of decisions that cannot be used."""


@dataclass(frozen=True)
class Decision:
    """What a reviewer said about an item.

    Parameters
    ----------
    item, reviewer : str
    verdict : {"class", "unsure", "invalid", "skipped"}
    label : str or None
        The class, with the verdict "class".
    note : str
    chosen : {"sample", "queue"}
        Whether the item was drawn at random, or stood first in a queue.
    shown : mapping
        The consensus that the reviewer saw, and its probability.
    time : float
        Seconds since 1970; 0 stands for now, when it is added.
    number : int
        Its number in the file; 0 before it is added.
    """

    item: str
    reviewer: str
    verdict: Verdict
    label: str | None = None
    note: str = ""
    chosen: Literal["sample", "queue"] = "queue"
    shown: Mapping[str, Any] | None = None
    time: float = 0.0
    number: int = 0


class Decisions:
    """The decisions in a file.

    Parameters
    ----------
    path : Path
    write : bool, default=False
        Make the file where there is none, and allow new decisions.
    """

    def __init__(self, path: Path, write: bool = False):
        self.path = path
        if not write and not path.is_file():
            raise DecisionsError(f"There are no decisions {str(path)!r}; annotmix review makes them.")
        self._lock = threading.Lock()
        try:
            address = f"{path.resolve().as_uri()}?mode={'rwc' if write else 'ro'}"
            self._db = sqlite3.connect(
                address, uri=True, timeout=30, isolation_level=None, check_same_thread=False
            )
            self._check(write)
        except sqlite3.Error as error:
            raise DecisionsError(f"{str(path)!r} cannot be used as a file of decisions: {error}.") from error

    def _check(self, write: bool) -> None:
        empty = not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        kind, form = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if not empty and (kind, form) != (_APPLICATION, FORMAT):
            raise DecisionsError(f"{str(self.path)!r} holds no decisions of this version of annotmix.")
        if empty and not write:
            raise DecisionsError(f"{str(self.path)!r} holds no decisions.")
        if write:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")  # a decision outlasts a loss of power
            marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT};"
            self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} {marks} COMMIT;")

    def __enter__(self) -> Decisions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # ---------------------------------------------------------------- writing

    def add(self, decision: Decision) -> int:
        """Keep a decision; returns its number. It is on the disk then."""
        return self.add_all([decision])

    def add_all(self, decisions: Iterable[Decision]) -> int:
        """Keep decisions, all or none of them; returns the number of the last one."""
        rows = [
            (
                d.item, d.reviewer, d.verdict, d.label, d.note, d.chosen,
                json.dumps(dict(d.shown or {}), ensure_ascii=False), d.time or time.time(),
            )
            for d in decisions
        ]  # fmt: skip
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for row in rows:
                    cursor = self._db.execute(_INSERT, row)
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
        return int(cursor.lastrowid or 0) if rows else 0

    def copy_to(self, path: Path) -> None:
        """Write all decisions, also those that were taken back, into a new file."""
        with self._lock, closing(sqlite3.connect(path)) as target:
            self._db.backup(target)

    def undo(self, reviewer: str) -> Decision | None:
        """Take back the newest decision of a reviewer; returns it, None where there is none."""
        with self._lock:
            row = self._db.execute(
                "UPDATE decision SET undone = ? WHERE id = (SELECT max(id) FROM decision "
                f"WHERE reviewer = ? AND undone IS NULL) RETURNING {_COLUMNS}",
                (time.time(), reviewer),
            ).fetchone()
        return None if row is None else _decision(row)

    # ---------------------------------------------------------------- reading

    def current(self, after: int = 0) -> list[Decision]:
        """The newest decision of every reviewer about every item that was not taken back, oldest first.

        `after` leaves out decisions with this number or a smaller one.
        """
        with self._lock:
            rows = self._db.execute(
                f"SELECT {_COLUMNS} FROM decision WHERE id > ? AND id IN (SELECT max(id) FROM decision "
                "WHERE undone IS NULL GROUP BY item, reviewer) ORDER BY id",
                (after,),
            ).fetchall()
        return [_decision(row) for row in rows]

    def state(self) -> tuple[int, float]:
        """Something that is another after every change."""
        with self._lock:
            row = self._db.execute("SELECT max(id), max(undone) FROM decision").fetchone()
        return int(row[0] or 0), float(row[1] or 0.0)

    def true_labels(self) -> dict[str, str]:
        """The true class of every item that reviewers decided, by most of them."""
        return true_labels(self.current())

    def invalid(self) -> list[str]:
        """Items that most reviewers found to be no valid items."""
        return [
            item for item, said in _by_item(self.current()).items() if most_said(said) == ("invalid", None)
        ]

    def table(self) -> pd.DataFrame:
        """All current decisions, one row each."""
        rows = [
            {
                "item": d.item,
                "reviewer": d.reviewer,
                "verdict": d.verdict,
                "label": d.label or "",
                "note": d.note,
                "chosen": d.chosen,
                "consensus": (d.shown or {}).get("consensus", ""),
                "probability": (d.shown or {}).get("probability"),
                "time": pd.Timestamp(d.time, unit="s", tz="UTC").isoformat(timespec="seconds"),
            }
            for d in self.current()
        ]
        return pd.DataFrame(rows, columns=TABLE)


#: Columns of `Decisions.table`.
TABLE = ["item", "reviewer", "verdict", "label", "note", "chosen", "consensus", "probability", "time"]
_INSERT = (
    "INSERT INTO decision (item, reviewer, verdict, class, note, chosen, shown, time) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_COLUMNS = "id, item, reviewer, verdict, class, note, chosen, shown, time"


def _decision(row: tuple[Any, ...]) -> Decision:
    number, item, reviewer, verdict, label, note, chosen, shown, when = row
    return Decision(item, reviewer, verdict, label, note, chosen, json.loads(shown), when, number)


def true_labels(decisions: list[Decision]) -> dict[str, str]:
    """The class that most reviewers of an item chose; items without one are left out."""
    labels = {item: most_said(said)[1] for item, said in _by_item(decisions).items()}
    return {item: label for item, label in labels.items() if label is not None}


def _by_item(decisions: list[Decision]) -> dict[str, Counter[tuple[str, str | None]]]:
    by_item: dict[str, Counter[tuple[str, str | None]]] = {}
    for d in decisions:
        if d.verdict in ("class", "invalid"):
            by_item.setdefault(d.item, Counter())[d.verdict, d.label] += 1
    return by_item


def most_said(said: Counter[tuple[str, str | None]]) -> tuple[str, str | None]:
    """What most reviewers said, ("", None) with a tie."""
    (first, n), *others = said.most_common(2)
    return first if not others or others[0][1] < n else ("", None)


def is_decisions(path: Path) -> bool:
    """Whether a file is an SQLite file."""
    try:
        with closing(path.open("rb")) as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False
