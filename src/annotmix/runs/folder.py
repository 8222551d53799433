"""The folder of a run: its files, which are written completely or not at all.

RUN/
  items.csv  labels.csv  annotators.csv  report.html
  model/            the classifier, as `annotmix.load` reads it, and preparation.json
  findings/         everything the report is made of, and the prepared features
  run.json          settings, versions, checksums of inputs; written last, so it marks a whole run
  checkpoint/       only while a run is unfinished
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from annotmix._common.files import load_array
from annotmix._common.schema import read_json
from annotmix.estimators import load
from annotmix.runs.findings import Findings
from annotmix.runs.prepare import ItemPreparation, PreparationFile
from annotmix.runs.storage import FILES, load_findings

_PARTS = (*FILES, "report.html", "model", "findings")
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
        """Make the folder ready for a run, or refuse where it holds files that the user may want."""
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
                f"{str(path)!r} holds an unfinished run. Continue it with --resume, or start again with "
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
        """A folder to write a whole run into; at the end it replaces the old files.

        Where writing fails, it is removed, and the old files stay.
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
        """Remove the folder where the run left nothing worth keeping."""
        for folder in (self.checkpoint, self.path):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def require(self) -> RunFolder:
        """Refuse a folder that holds no whole run."""
        if not self.complete:
            why = (
                "an unfinished run (continue it with annotmix fit … --resume)"
                if self.checkpoint.is_dir()
                else "no run"
            )
            raise ValueError(
                f"{str(self.path)!r} holds "
                f"{why if self.path.is_dir() else 'no run: there is no such folder'}."
            )
        return self

    def findings(self) -> Findings:
        """The results of the run."""
        return load_findings(self.require().path / "findings")

    def features(self) -> NDArray[Any]:
        """Prepared features of the run's items, shape (N, D)."""
        return load_array(self.require().path / "findings" / "features.npy")

    def preparation(self) -> ItemPreparation:
        """How the items of the run became features."""
        path = self.require().path / "model" / "preparation.json"
        return ItemPreparation.from_file(read_json(path, PreparationFile))

    def model(self) -> Any:
        """The classifier; it takes prepared features."""
        return load(self.require().path / "model")

    def _others(self) -> list[str]:
        return sorted(path.name for path in self.path.iterdir() if not path.name.startswith(_STAGE))
