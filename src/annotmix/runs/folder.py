"""The folder of a run: what is in it, who may write there, and how nothing half-written is ever left.

RUN/
  labels.csv  annotators.csv  suspicious_labels.csv  report.html
  model/            the classifier, as `annotmix.load` reads it, and preparation.json
  findings/         everything the report is made of, and the prepared features
  run.json          settings, versions, checksums of inputs; written last, so it marks a whole run
  checkpoint/       only while a run is unfinished
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import annotmix
from annotmix.estimators.preparation import Preparation

_PARTS = ("labels.csv", "annotators.csv", "suspicious_labels.csv", "report.html", "model", "findings")
_STAGE = ".unfinished-"


class RunFolder:
    """A run's folder.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path):
        self.path = path

    @property
    def checkpoint(self) -> Path:
        """Where an unfinished run keeps its state."""
        return self.path / "checkpoint"

    @property
    def complete(self) -> bool:
        """Whether a whole run is in it."""
        return (self.path / "run.json").is_file()

    def claim(self, resume: bool = False, overwrite: bool = False) -> None:
        """Make the folder ready for a run, or refuse: what is there is not touched unless the "
        "user says so."""
        path = self.path
        if path.exists() and not path.is_dir():
            raise ValueError(f"--out {str(path)!r} is a file, expected a folder.")
        unfinished = self.checkpoint.is_dir()
        if self.complete and not overwrite:
            raise ValueError(
                f"{str(path)!r} already holds a run. Choose another folder with --out, or replace "
                "it with --overwrite."
            )
        if unfinished and not self.complete and not (resume or overwrite):
            raise ValueError(
                f"{str(path)!r} holds an unfinished run. Go on with --resume, or start again with "
                "--overwrite."
            )
        if path.is_dir() and not self.complete and not unfinished and (others := self._others()):
            raise ValueError(
                f"{str(path)!r} holds other files "
                f"({', '.join(others[:3])}{', …' if len(others) > 3 else ''}) and no run; "
                "choose a new folder with --out, so that nothing of yours is overwritten."
            )
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass  # fails before the work, not after it
        if unfinished and not resume:
            shutil.rmtree(self.checkpoint)
        self.checkpoint.mkdir(exist_ok=True)

    @contextmanager
    def replace(self) -> Iterator[Path]:
        """A folder to write a whole run into; at the end it takes the place of what was there.

        Where writing fails, nothing of it is left, and what was there stays as it was.
        """
        stage = Path(tempfile.mkdtemp(dir=self.path, prefix=_STAGE))
        try:
            yield stage
            old = stage / "old"
            old.mkdir()
            for name in ("run.json", *_PARTS):
                if (self.path / name).exists():
                    (self.path / name).replace(old / name)
            for name in (*_PARTS, "run.json"):
                if (stage / name).exists():
                    (stage / name).replace(self.path / name)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        shutil.rmtree(self.checkpoint, ignore_errors=True)

    def release(self) -> None:
        """Remove the folder where nothing worth keeping came of the run."""
        for folder in (self.checkpoint, self.path):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def require(self) -> RunFolder:
        """Refuse a folder that holds no whole run."""
        if not self.complete:
            why = (
                "an unfinished run (go on with annotmix fit … --resume)"
                if self.checkpoint.is_dir()
                else "no run"
            )
            raise ValueError(
                f"{str(self.path)!r} holds "
                f"{why if self.path.is_dir() else 'no run: there is no such folder'}."
            )
        return self

    def facts(self) -> dict[str, Any]:
        """What `run.json` says."""
        return _json(self.require().path / "run.json")

    def preparation(self) -> tuple[dict[str, Any], Preparation]:
        """What instances are, and how they are prepared."""
        path = self.require().path / "model" / "preparation.json"
        saved = _json(path)
        try:
            return saved["instances"], Preparation.from_dict(saved["preparation"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{str(path)!r} is damaged or not written by annotmix ({error}).") from None

    def model(self) -> Any:
        """The classifier; it takes prepared features."""
        return annotmix.load(self.require().path / "model")

    def _others(self) -> list[str]:
        return sorted(path.name for path in self.path.iterdir() if not path.name.startswith(_STAGE))


def _json(path: Path) -> dict[str, Any]:
    try:
        saved = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error}") from None
    if not isinstance(saved, dict):
        raise ValueError(f"{str(path)!r} is damaged: expected an object.")
    return saved
