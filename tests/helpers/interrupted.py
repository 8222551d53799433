"""Work that is stopped at a chosen change of files, by a kill, Ctrl-C or an error; work of other users."""

from __future__ import annotations

import os
import signal
import tempfile
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

from annotmix.runs.exchange import PARTS
from annotmix.runs.folder import RunFolder

#: Functions of `os` that change what is in a folder.
CHANGES = ("replace", "mkdir", "rmdir", "unlink")
NOBODY = 65534


@contextmanager
def acting(act, number=0, names=("replace",), after=False):
    """Call `act(function, *arguments)` at the number-th call of functions of `os`; 0 for never.

    Yields the list of calls. With `after`, the function does its work first.
    """
    seen, originals = [], {name: getattr(os, name) for name in names}

    def make(name):
        def function(*arguments, **more):
            seen.append((name, *arguments))
            turn = len(seen) == number
            if turn and not after:
                act(name, *arguments)
            result = originals[name](*arguments, **more)
            if turn:
                act(name, *arguments)
            return result

        return function

    for name in names:
        setattr(os, name, make(name))
    try:
        yield seen
    finally:
        for name, original in originals.items():
            setattr(os, name, original)


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt(*_):
    raise KeyboardInterrupt


def fail(*_):
    raise OSError(13, "Permission denied")


def fork(work, *arguments):
    """Do `work` in a new process, whose number is returned; its exit code is 0 where nothing was raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, which are idle here
        child = os.fork()
    if child:
        return child
    code = 1
    try:
        work(*arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def exit_code(child):
    """Wait for a process; minus the signal that has ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def public_folder():
    """A folder that every user may enter; those of pytest are for one user."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def as_nobody(folder, work):
    """Do `work` in a `public_folder` as a user who is not root; whether nothing was raised."""

    def child():
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        work()

    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    return exit_code(fork(child)) == 0


# ---------------------------------------------------------------- runs of small files


def write_parts(folder: Path, mark: str) -> None:
    """Something like the parts of a run."""
    for name in PARTS:
        inside = {"model": ["model.json", "preparation.json"], "findings": ["findings.json"]}.get(name)
        for path in [folder / name] if inside is None else [folder / name / own for own in inside]:
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(f"{mark} {name}")


def make_run(folder: Path, old: bool = True) -> None:
    """A folder with an old run, or without one, and the state of an unfinished run."""
    if old:
        write_parts(folder, "old")
    state = folder / "checkpoint" / ("0" * 16)
    state.mkdir(parents=True)
    (state / "checkpoint.safetensors").write_text("state")


def overwrite(path: Path, mark: str = "new", before=lambda: None) -> None:
    """What `annotmix fit --overwrite --resume` does to a folder; `before` is called before the exchange."""
    folder = RunFolder(path)
    with folder.claim(resume=True, overwrite=True), folder.replace() as stage:
        write_parts(stage, mark)
        before()


def content(folder: Path) -> dict[str, str]:
    """The files of a run by their names; its checkpoint under one name, whoever continues it."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            parts = path.relative_to(folder).parts
            found["checkpoint" if parts[0] == "checkpoint" else "/".join(parts)] = path.read_text()
    return found


def which(folder: Path) -> str:
    """The run in a folder: "old" with the state of the unfinished one, "new" without, or what is wrong."""
    found = content(folder)
    marks = {text.split()[0] for name, text in found.items() if name != "checkpoint"}
    expected = {part for part in PARTS if part not in ("model", "findings")}
    expected |= {"model/model.json", "model/preparation.json", "findings/findings.json"}
    if marks == {"new"} and found.keys() == expected:
        return "new"
    if found == {"checkpoint": "state"}:
        return "none"
    if marks == {"old"} and found.keys() == {*expected, "checkpoint"} and found["checkpoint"] == "state":
        return "old"
    return str(sorted(found.items()))


def killed_at(path: Path, number: int, names=CHANGES, after=False) -> bool:
    """Whether a process that replaces the run in `path` could be killed at its number-th change of files."""

    def work():
        with acting(die, number, names, after):
            overwrite(path)

    return exit_code(fork(work)) == -signal.SIGKILL
