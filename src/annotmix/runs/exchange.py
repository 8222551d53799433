"""Parts of a run are replaced all together or not at all, however the process ends.

A journal in the run's folder makes it so, of which a kill at any moment leaves enough to continue:

.unfinished-X/   new parts while they are written; removed unless its name becomes the next one
.finished-X/     the same folder with all its files on disk: from that one rename on, the new parts count
.replaced-X/     the old parts, until every new part is in place

All functions are for the holder of the lock of exchanges (see `RunFolder`), except those that only look.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from annotmix._common.files import FINISHED, sync_folder, write_json
from annotmix.runs.storage import FILES

#: Where an unfinished run keeps its state.
CHECKPOINT = "checkpoint"
#: The files and folders of a run. The last one marks a whole run: its old file leaves first.
PARTS = (*FILES, "report.html", "model", "findings", "run.json")
_UNFINISHED, _REPLACED = ".unfinished-", ".replaced-"
_NAMES = "parts.json"


class ExchangeError(OSError):
    """New parts that could not be put in place; the old ones are."""


def new_stage(folder: Path) -> Path:
    """A folder to write new parts into."""
    return Path(tempfile.mkdtemp(dir=folder, prefix=_UNFINISHED))


def exchange(stage: Path) -> None:
    """Put the parts in `stage` in the place of the old ones.

    After an OSError in between the old parts are back in their places. Ctrl-C in between is raised when all
    new parts are in place.
    """
    names = [name for name in PARTS if os.path.lexists(stage / name)]
    write_json(stage / _NAMES, names)
    for folder in (*(path for path in stage.iterdir() if path.is_dir()), stage):
        sync_folder(folder)
    journal = stage.with_name(stage.name.replace(_UNFINISHED, FINISHED, 1))
    try:
        try:
            os.replace(stage, journal)
        except OSError:
            if not journal.is_dir():  # a network may say so of what it has done
                raise
        _settle(journal)
    except OSError:
        raise
    except BaseException:
        if journal.is_dir():
            _settle(journal)
        raise


def recover(folder: Path) -> None:
    """Finish exchanges that a killed process has begun, and remove what such processes have left behind."""
    for journal in pending(folder):
        _settle(journal)
    for path in leftovers(folder):
        _remove(path)


def pending(folder: Path) -> list[Path]:
    """Journals of exchanges that are not finished."""
    return [
        path
        for path in leftovers(folder)
        if path.name.startswith(FINISHED) and path.is_dir() and not path.is_symlink()
    ]


def leftovers(folder: Path) -> list[Path]:
    """Everything in a run's folder that belongs to an exchange: under way, or of a killed process."""
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / name for name in names if name.startswith((_UNFINISHED, FINISHED, _REPLACED))]


def state(folder: Path) -> list[object]:
    """Something that is another after every exchange and during one."""
    return [*(_identity(folder / name) for name in PARTS), *pending(folder)]


def _settle(journal: Path) -> None:
    """Put the new parts in place; where that cannot be done, the old ones."""
    folder, old = journal.parent, journal.with_name(journal.name.replace(FINISHED, _REPLACED, 1))
    if old.is_symlink():
        old.unlink()
    names = _names(journal)
    try:
        _forward(folder, journal, old, names)
    except OSError as error:
        _back(folder, journal, old, names)
        raise ExchangeError(
            f"The new files could not be put in place in {str(folder)!r} ({error}); the old ones are all "
            "there. Mend the cause, then run the command again."
        ) from error
    if "run.json" in names:  # the run is finished
        with suppress(OSError):
            os.replace(folder / CHECKPOINT, old / CHECKPOINT)  # in one step, for a process that still uses it
        _remove(folder / CHECKPOINT)
    _remove(old)
    _remove(journal)


def _forward(folder: Path, journal: Path, old: Path, names: list[str]) -> None:
    old.mkdir(exist_ok=True)
    sync_folder(folder)
    for name in reversed(names):
        if os.path.lexists(journal / name) and os.path.lexists(folder / name):
            os.replace(folder / name, old / name)
    for name in names:
        if os.path.lexists(journal / name):
            os.replace(journal / name, folder / name)
    for changed in (folder, journal, old):
        sync_folder(changed)


def _back(folder: Path, journal: Path, old: Path, names: list[str]) -> None:
    for name in reversed(names):
        if os.path.lexists(folder / name) and not os.path.lexists(journal / name):
            os.replace(folder / name, journal / name)
    for name in names:
        if os.path.lexists(old / name):
            os.replace(old / name, folder / name)
    for changed in (folder, journal, old):
        sync_folder(changed)
    stage = journal.with_name(journal.name.replace(FINISHED, _UNFINISHED, 1))
    os.replace(journal, stage)  # nothing counts any more
    _remove(stage)
    _remove(old)


def _names(journal: Path) -> list[str]:
    """The parts of an exchange, also those that are no longer in the journal."""
    try:
        names = json.loads((journal / _NAMES).read_text("utf-8"))
    except (FileNotFoundError, ValueError, RecursionError):  # in the last step the list goes first
        names = [path.name for path in journal.iterdir()]
    return [name for name in PARTS if isinstance(names, list) and name in names]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
