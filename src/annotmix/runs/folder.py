"""The folder of a run: its files, which are written completely or not at all.

RUN/
  items.csv  labels.csv  annotators.csv  report.html
  model/            the classifier, as `annotmix.load` reads it, and preparation.json
  findings/         everything the report is made of, and the prepared features
  run.json          settings, versions, checksums of inputs; it marks a whole run
  checkpoint/X/     only while a run is unfinished; another process that continues it renames X
  .fit.lock         only while `annotmix fit` works here
  .exchange.lock    only while a command replaces files of the run, see `annotmix.runs.exchange`

Commands that only read need no lock: where the files were replaced meanwhile, they read again.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from annotmix._common.files import load_array
from annotmix._common.locks import Lock, LockedError, hold
from annotmix._common.schema import Strict, read_json
from annotmix.estimators.loading import holds_network, load, load_posterior
from annotmix.estimators.preparation import Preparation, SavedPreparation
from annotmix.runs import exchange
from annotmix.runs.exchange import CHECKPOINT, ExchangeError
from annotmix.runs.findings import Findings
from annotmix.runs.request import request_of
from annotmix.runs.storage import FEATURES, load_findings

if TYPE_CHECKING:
    from annotmix.runs.prepare import ItemPreparation

_FIT_LOCK, _EXCHANGE_LOCK = ".fit.lock", ".exchange.lock"
_NAME = re.compile("[0-9a-f]{16}")
#: Seconds that `annotmix fit` waits for a process which has the lock only to clean up.
_MOMENT = 0.5
#: Seconds that a command waits for others that replace files.
_EXCHANGING = 300.0
#: How often files are read again because others have replaced them.
_ATTEMPTS = 100


class RunFolder:
    """A run's folder.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path):
        self.path = path
        self._name = "none"
        self._claim: Lock | None = None
        self._exchanging = False

    @property
    def checkpoint(self) -> Path:
        """Where the run that has claimed the folder keeps its state. No other process uses this name."""
        return self.path / CHECKPOINT / self._name

    @property
    def complete(self) -> bool:
        """Whether a whole run is in it."""
        return (self.path / "run.json").is_file()

    @property
    def unfinished(self) -> bool:
        """Whether the state of a run that did not end is in it, and not another folder of that name."""
        try:
            return all(_NAME.fullmatch(name) for name in os.listdir(self.path / CHECKPOINT))
        except (FileNotFoundError, NotADirectoryError):
            return False

    # ---------------------------------------------------------------- writing

    @contextmanager
    def claim(self, resume: bool = False, overwrite: bool = False) -> Iterator[None]:
        """Have the folder for one run, or refuse where it holds files that the user may want.

        At the end the folder is removed where the run left nothing worth keeping.
        """
        path = self.path
        if not (path / _FIT_LOCK).exists():
            self._refuse_strange_files()  # before anything is made there
        busy = f"Another annotmix fit is working in {str(path)!r}"
        remedy = "Wait for it, or choose another folder with --out."
        try:
            with hold(path / _FIT_LOCK, _MOMENT, busy, remedy) as self._claim:
                try:
                    self.recover()
                    self._tidy_checkpoint()
                    self._refuse_strange_files()
                    self._refuse_runs(resume, overwrite)
                    self._try_to_write()
                    self._take_checkpoint(resume)
                    yield
                finally:
                    if not self._claim.lost:
                        self._tidy_checkpoint()
        finally:
            self._claim = None
            with suppress(OSError):  # raised where it holds anything
                path.rmdir()

    @contextmanager
    def replace(self) -> Iterator[Path]:
        """A folder to write parts of a run into; at the end they take the place of the old ones.

        Where writing fails, it is removed, and the old parts stay. Nobody else replaces parts meanwhile.
        """
        self._refuse_if_lost()
        with self._lock_exchange():
            exchange.recover(self.path)
            stage = exchange.new_stage(self.path)
            self._exchanging = True
            try:
                yield stage
                self._refuse_if_lost()
                exchange.exchange(stage)
            finally:
                self._exchanging = False
                shutil.rmtree(stage, ignore_errors=True)

    def recover(self) -> None:
        """Finish or undo what killed processes have begun to exchange, and remove what they left behind."""
        if self._exchanging:
            return
        if self._claim is None and (self.path / _FIT_LOCK).exists():
            with suppress(OSError), hold(self.path / _FIT_LOCK, 0, "", ""):
                self._tidy_checkpoint()  # nobody works here
        if not (exchange.leftovers(self.path) or (self.path / _EXCHANGE_LOCK).exists()):
            return
        wait = bool(exchange.pending(self.path))
        try:
            with self._lock_exchange(wait):
                exchange.recover(self.path)
        except ExchangeError:
            raise
        except OSError as error:  # a process is writing new parts, or this one may not write here
            if isinstance(error, LockedError) and not wait:
                return
            if exchange.pending(self.path):
                raise OSError(
                    f"{str(self.path)!r} holds a run whose files are being replaced, or were when a process "
                    f"was killed. Try again later, as a user who may write there ({error})."
                ) from error

    def _lock_exchange(self, wait: bool = True) -> AbstractContextManager[Lock]:
        busy = f"Another process is replacing the files of {str(self.path)!r}"
        return hold(self.path / _EXCHANGE_LOCK, _EXCHANGING if wait else 0, busy, "Try again later.")

    def _refuse_strange_files(self) -> None:
        path = self.path
        if path.exists() and not path.is_dir():
            raise ValueError(f"--out {str(path)!r} is a file, expected a folder.")
        others = self._others()  # first: a process that begins or ends meanwhile leaves one of these true
        if others and not (self.unfinished or exchange.pending(path) or self.complete):
            raise ValueError(
                f"{str(path)!r} holds other files "
                f"({', '.join(others[:3])}{', …' if len(others) > 3 else ''}) and no run; "
                "choose a new folder with --out, so that nothing of yours is overwritten."
            )

    def _refuse_runs(self, resume: bool, overwrite: bool) -> None:
        if self.complete and not overwrite:
            raise ValueError(
                f"{str(self.path)!r} already holds a run. Choose another folder with --out, or replace "
                "it with --overwrite."
            )
        if self.unfinished and not self.complete and not (resume or overwrite):
            raise ValueError(
                f"{str(self.path)!r} holds an unfinished run. Continue it with --resume, or start again with "
                "--overwrite."
            )

    def _try_to_write(self) -> None:
        """Fail before the work, not after it."""
        with tempfile.TemporaryFile(dir=self.path):
            pass
        for name in exchange.PARTS:  # a folder that may not be written cannot be moved
            if (part := self.path / name).is_dir() and not os.access(part, os.W_OK):
                raise PermissionError(f"{str(part)!r} cannot be replaced: no permission to write there.")

    def _refuse_if_lost(self) -> None:
        if self._claim is not None and self._claim.lost:
            raise OSError(
                f"{str(self.path)!r} was removed or taken by another process while this one was training; "
                "it writes nothing there."
            )

    def _take_checkpoint(self, resume: bool) -> None:
        """Make the state of an unfinished run that of this one, under a name that no other process knows."""
        folder, self._name = self.path / CHECKPOINT, secrets.token_hex(8)
        if not resume and folder.is_dir():
            removed = exchange.new_stage(self.path)
            os.replace(folder, removed / CHECKPOINT)
            shutil.rmtree(removed, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        states = sorted((path for path in folder.iterdir() if path.is_dir()), key=os.path.getmtime)
        if states:
            os.replace(states[-1], self.checkpoint)
        else:
            self.checkpoint.mkdir()

    def _tidy_checkpoint(self) -> None:
        """Remove half-written files and empty folders; for the holder of the folder."""
        folder = self.path / CHECKPOINT
        for half in folder.glob("*/.*"):
            with suppress(OSError):
                half.unlink()
        for empty in (*folder.glob("*"), folder):
            with suppress(OSError):
                empty.rmdir()

    def _others(self) -> list[str]:
        try:
            names = set(os.listdir(self.path))
        except FileNotFoundError:
            return []
        own = {_FIT_LOCK, _EXCHANGE_LOCK, *(path.name for path in exchange.leftovers(self.path))}
        return sorted(names - own)

    # ---------------------------------------------------------------- reading

    def require(self) -> RunFolder:
        """Refuse a folder that holds no whole run."""
        self.read()
        return self

    def read(self, *parts: str) -> tuple[Any, ...]:
        """Parts of one and the same run, also beside a process that replaces it.

        Parameters
        ----------
        *parts : a key of `_READERS` each
            Results (`Findings`), the options of `annotmix fit` (`Request`), prepared features of the items
            (shape (N, D)), how columns became features (`Preparation`), how the items became features
            (`ItemPreparation`), the classifier, which takes prepared features, whether it is a network, and
            what it and the labels say about the items (`Posterior`), for which no network is read.
        """
        for _ in range(_ATTEMPTS):
            self.recover()
            before = exchange.state(self.path)
            if exchange.pending(self.path) and not self._exchanging:
                continue
            try:
                self._refuse_no_run()
                values = tuple(_READERS[part](self.path) for part in parts)
            except Exception:
                if exchange.state(self.path) == before:
                    raise
            else:
                if exchange.state(self.path) == before:
                    return values
        raise OSError(f"{str(self.path)!r} is replaced all the time. Try again later.")

    def _refuse_no_run(self) -> None:
        if not self.complete:
            why = (
                "an unfinished run (continue it with annotmix fit … --resume)"
                if self.unfinished
                else "no run"
            )
            raise ValueError(
                f"{str(self.path)!r} holds "
                f"{why if self.path.is_dir() else 'no run: there is no such folder'}."
            )

    def findings(self) -> Findings:
        """The results of the run."""
        return cast(Findings, self.read("findings")[0])

    def model(self) -> Any:
        """The classifier; it takes prepared features."""
        return self.read("model")[0]


def _load_preparation(run: Path) -> ItemPreparation:
    from annotmix.runs.prepare import ItemPreparation, PreparationFile

    return ItemPreparation.from_file(read_json(run / "model" / "preparation.json", PreparationFile))


class _Columns(Strict):
    """The content of `preparation.json`, of which the encoder is left unread."""

    items: Any
    preparation: SavedPreparation


def _load_columns(run: Path) -> Preparation:
    return Preparation.from_file(read_json(run / "model" / "preparation.json", _Columns).preparation)


_READERS: dict[str, Callable[[Path], Any]] = {
    "findings": lambda run: load_findings(run / "findings"),
    "request": lambda run: request_of(run / "run.json"),
    "features": lambda run: load_array(run / FEATURES),
    "columns": _load_columns,
    "preparation": _load_preparation,
    "model": lambda run: load(run / "model"),
    "is network": lambda run: holds_network(run / "model"),
    "posterior": lambda run: load_posterior(run / "model"),
}
