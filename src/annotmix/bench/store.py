"""The result store: one SQLite file, written by one driver at a time, readable at any time.

A run is a row of `run`; its scores are in `score`, its epochs in `history`. A run and all that belongs to it
is written in one transaction, so a kill at any moment leaves it in the file as a whole or not at all.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from annotmix._common.locks import LockedError, hold

if TYPE_CHECKING:
    from annotmix.bench.study import Run

FORMAT = 1
_APPLICATION = 0x616E6D78  # "anmx", marks the file as ours
_ENVIRONMENT = ("version", "commit", "dirty", "python", "torch", "numpy", "platform", "cpus")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS run (
    id INTEGER PRIMARY KEY,           -- the newest of a key counts
    key TEXT NOT NULL,                -- SHA-256 of the configuration, first half
    configuration TEXT NOT NULL,      -- JSON: dataset, approach, parameters, seed
    dataset TEXT NOT NULL,
    approach TEXT NOT NULL,
    seed INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'done', 'failed')),
    started REAL NOT NULL,            -- seconds since 1970
    finished REAL,
    error TEXT,                       -- traceback of a failed run
    every_epoch INTEGER NOT NULL,     -- whether history has test and training scores
    best_epoch INTEGER,
    fit_seconds REAL,                 -- with the validation score of every epoch
    evaluate_seconds REAL,
    peak_mb REAL,                     -- high-water mark of the worker's process, earlier runs included
    version TEXT, "commit" TEXT, dirty INTEGER,
    python TEXT, torch TEXT, numpy TEXT, platform TEXT, cpus INTEGER
);
CREATE INDEX IF NOT EXISTS run_key ON run (key);
CREATE TABLE IF NOT EXISTS score (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    epoch TEXT NOT NULL,              -- 'last' or 'best'
    score TEXT NOT NULL,              -- such as 'test/clf-acc'
    value REAL,                       -- a share, or null where it is not defined
    PRIMARY KEY (run, epoch, score)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS history (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    epoch INTEGER NOT NULL,           -- from 1
    score TEXT NOT NULL,              -- such as 'loss', 'seconds', 'valid/clf-acc'
    value REAL,
    PRIMARY KEY (run, epoch, score)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dataset (
    source TEXT PRIMARY KEY,          -- JSON: name, encoder, published
    facts TEXT NOT NULL               -- JSON: sizes, annotators, percent_false
);
CREATE TABLE IF NOT EXISTS plan (     -- what the last driver of a study set out to do
    study TEXT PRIMARY KEY,
    started REAL NOT NULL,
    runs TEXT NOT NULL,               -- JSON: [dataset, approach, seed, key] of all runs, by names in tables
    skipped TEXT NOT NULL             -- JSON: datasets that were not available
);
"""


class StoreError(OSError):
    """A store that cannot be used."""


class Plan(NamedTuple):
    """The plan of a driver: runs as (dataset, approach, seed, key), and datasets it has skipped."""

    study: str
    runs: list[tuple[str, str, int, str]]
    skipped: list[str]


class Store:
    """A result store.

    Parameters
    ----------
    path : path
    write : bool, default=False
        Make the file where there is none; only for the holder of `driving`.
    """

    def __init__(self, path: Path, write: bool = False):
        self.path = path
        if not write and not path.is_file():
            raise StoreError(f"There is no result store {str(path)!r}; `annotmix bench run` makes one.")
        try:
            self._db = sqlite3.connect(path, timeout=30, isolation_level=None)
            self._check(write)
        except sqlite3.Error as error:
            raise StoreError(f"{str(path)!r} cannot be used as a result store: {error}.") from error

    def _check(self, write: bool) -> None:
        pragma = {name: self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in _PRAGMAS}
        empty = not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if empty and write:
            self._db.execute("PRAGMA journal_mode = WAL")
        elif pragma["application_id"] != _APPLICATION:
            raise StoreError(f"{str(self.path)!r} is no result store of annotmix.")
        elif pragma["user_version"] != FORMAT:
            raise StoreError(
                f"{str(self.path)!r} has format {pragma['user_version']}; this version reads {FORMAT}."
            )
        self._db.execute("PRAGMA foreign_keys = ON")
        if write:
            marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT};"
            self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} {marks} COMMIT;")
        else:
            self._db.execute("PRAGMA query_only = ON")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    # ---------------------------------------------------------------- writing

    def begin(self, run: Run, every_epoch: bool) -> int:
        """Note that a run has started; returns its number."""
        facts = {
            "key": run.key,
            "configuration": json.dumps(run.configuration, sort_keys=True, ensure_ascii=False),
            "dataset": run.dataset.name,
            "approach": run.approach.name,
            "seed": run.seed,
            "status": "running",
            "started": time.time(),
            "every_epoch": every_epoch,
        }
        columns, marks = ", ".join(facts), ", ".join("?" * len(facts))
        cursor = self._db.execute(f"INSERT INTO run ({columns}) VALUES ({marks})", tuple(facts.values()))
        return int(cursor.lastrowid or 0)

    def finish(self, number: int, result: Mapping[str, Any]) -> None:
        """Write the result of a run, see `execute`."""
        environment = {name: result.get("environment", {}).get(name) for name in _ENVIRONMENT}
        own = ("error", "best_epoch", "fit_seconds", "evaluate_seconds", "peak_mb")
        facts = {**environment, **{name: result.get(name) for name in own}, "finished": time.time()}
        facts["status"] = "failed" if result.get("error") else "done"
        scores = [
            (number, epoch, score, value)
            for epoch, values in result.get("scores", {}).items()
            for score, value in values.items()
        ]
        history = [
            (number, row["epoch"], score, value)
            for row in result.get("history", [])
            for score, value in row.items()
            if score != "epoch"
        ]
        with self._transaction():
            changes = ", ".join(f'"{name}" = ?' for name in facts)
            self._db.execute(f"UPDATE run SET {changes} WHERE id = ?", (*facts.values(), number))
            self._db.executemany("INSERT INTO score VALUES (?, ?, ?, ?)", scores)
            self._db.executemany("INSERT INTO history VALUES (?, ?, ?, ?)", history)

    def forget_running(self) -> int:
        """Remove runs that never finished; returns how many there were. Only the one driver may call it."""
        return self._db.execute("DELETE FROM run WHERE status = 'running'").rowcount

    def note_dataset(self, source: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Keep the facts about a dataset for tables and figures."""
        row = (json.dumps(source, sort_keys=True), json.dumps(facts))
        self._db.execute("INSERT OR REPLACE INTO dataset VALUES (?, ?)", row)

    def note_plan(self, study: str, runs: Iterable[Run], skipped: Iterable[str] = ()) -> None:
        """Keep the plan of a driver, for `status`."""
        listed = [[run.dataset.label, run.approach.label, run.seed, run.key] for run in runs]
        row = (study, time.time(), json.dumps(listed), json.dumps(list(skipped)))
        self._db.execute("INSERT OR REPLACE INTO plan VALUES (?, ?, ?, ?)", row)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # ---------------------------------------------------------------- reading

    def runs(self) -> pd.DataFrame:
        """All runs, oldest first."""
        return self._read("SELECT * FROM run ORDER BY id")

    def scores(self, runs: Iterable[int]) -> pd.DataFrame:
        """`run`, `epoch`, `score`, `value` of runs by their numbers."""
        return self._read(f"SELECT * FROM score WHERE run IN ({_numbers(runs)})")

    def history(self, runs: Iterable[int], scores: Iterable[str]) -> pd.DataFrame:
        """`run`, `epoch`, `score`, `value` after every epoch, of runs by their numbers."""
        names = list(scores)
        marks = ", ".join("?" * len(names))
        return self._read(
            f"SELECT * FROM history WHERE run IN ({_numbers(runs)}) AND score IN ({marks})", names
        )

    def datasets(self) -> dict[str, dict[str, Any]]:
        """Facts about datasets by `source`, a JSON text with sorted keys."""
        return {source: json.loads(facts) for source, facts in self._db.execute("SELECT * FROM dataset")}

    def plan(self, study: str | None = None) -> Plan | None:
        """The plan of the last driver, or of the last driver of a study."""
        if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'plan'").fetchone():
            return None
        where, values = ("WHERE study = ?", (study,)) if study else ("", ())
        query = f"SELECT study, runs, skipped FROM plan {where} ORDER BY started DESC LIMIT 1"
        row = self._db.execute(query, values).fetchone()
        return None if row is None else Plan(row[0], json.loads(row[1]), json.loads(row[2]))

    def _read(self, query: str, values: Iterable[Any] = ()) -> pd.DataFrame:
        try:
            return pd.read_sql_query(query, self._db, params=list(values))
        except (sqlite3.Error, pd.errors.DatabaseError) as error:
            raise StoreError(f"{str(self.path)!r} cannot be read: {error}.") from error


_PRAGMAS = ("application_id", "user_version")


def _numbers(values: Iterable[int]) -> str:
    return ", ".join(str(int(value)) for value in values)


@contextmanager
def driving(path: Path) -> Iterator[None]:
    """Be the one driver that writes a store; the lock goes with the process, however that ends."""
    lock = _lock(path)
    busy = f"Another `annotmix bench run` is writing {str(path)!r}"
    with ExitStack() as stack:
        try:
            stack.enter_context(hold(lock, 1, busy, "Wait for it, or choose another --store."))
        except LockedError as error:
            raise StoreError(str(error)) from None
        except OSError as error:
            raise StoreError(f"{str(lock)!r} cannot be locked: {error.strerror or error}.") from error
        yield


def has_driver(path: Path) -> bool:
    """Whether a driver is writing the store now."""
    lock = _lock(path)
    if not lock.exists():
        return False
    try:
        with hold(lock, 0, "", ""):
            return False
    except LockedError:
        return True


def _lock(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")
