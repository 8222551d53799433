"""Locks between processes: a file that one process holds, at most for as long as it lives."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout

#: How often the folder of a lock may vanish while the lock is being taken.
_ATTEMPTS = 100


class LockedError(OSError):
    """A lock that another process holds."""


class Lock:
    """A lock file that this process holds.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path):
        self.path = path
        self._identity = _identity(path)

    @property
    def lost(self) -> bool:
        """Whether the file at the path is no longer the locked one: somebody has removed it by hand."""
        return self._identity is None or _identity(self.path) != self._identity


@contextmanager
def hold(path: Path, wait: float, busy: str, remedy: str) -> Iterator[Lock]:
    """Hold a lock; its file exists only meanwhile, or after a kill until the next holder is done.

    Parameters
    ----------
    path : Path
        The lock file. Its folder is made where it does not exist.
    wait : float
        Seconds to wait for another process.
    busy, remedy : str
        The message where another process holds the lock: two sentences, the first one without its full stop,
        because the number and the machine of that process follow it.

    Raises
    ------
    LockedError
        Where another process, or another thread, still holds the lock after `wait` seconds.
    """
    lock = FileLock(path, is_singleton=False)
    try:
        _acquire(lock, wait)
    except Timeout:
        raise LockedError(f"{busy}{_holder(path)}. {remedy}") from None
    held = Lock(path)  # while the file is open, no other file can get its number
    try:
        if not isinstance(lock, SoftFileLock):  # whose file has a content of its own
            with suppress(OSError):
                path.write_text(json.dumps({"process": os.getpid(), "host": socket.gethostname()}), "utf-8")
        yield held
    finally:
        if not held.lost:
            with suppress(OSError):
                path.unlink()  # before the release: who waits for this file sees that it has no name any more
        lock.release()


def _acquire(lock: FileLock, wait: float) -> None:
    for _ in range(_ATTEMPTS):
        # the process that held the lock may have removed the empty folder
        with suppress(FileNotFoundError):
            lock.acquire(timeout=wait)
            return
    lock.acquire(timeout=wait)


def _holder(path: Path) -> str:
    """The process that holds the lock, in brackets; empty where the file does not say it."""
    try:
        holder = json.loads(path.read_text("utf-8"))
        return f" (process {int(holder['process'])} on {str(holder['host'])!r})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
