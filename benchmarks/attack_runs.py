"""Campaigns against the folders of runs and models: stops at every rename, races, resumed runs."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from attack_tools import (
    CONTEXT,
    Child,
    Trials,
    command,
    contents,
    differences,
    fit_words,
    fitted,
    write_problem,
)

#: Steps at which a process is stopped: every rename, link and removal of a file or folder.
STEPS = ("os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir")
STOPS = ("SIGKILL", "SIGINT", "OSError")


# ---------------------------------------------------------------- fit --overwrite, stopped at every rename


def overwrite(trials: Trials) -> None:
    """Stop `fit --overwrite` at every rename; the old or the new run must be whole."""
    write_problem(trials.folder)
    old = fitted(trials.folder / "old", "--seed", 1)
    shutil.copytree(old.parent, trials.folder / "new")
    counting = Child(trials.folder / "new", _stopped, None, 0, fit_words("--seed", 2, "--overwrite"))
    if failure := counting.unclear(0):
        raise RuntimeError(failure)
    steps = [line.split(" ", 1)[1] for line in counting.output.splitlines() if line.startswith("STEP ")]
    renames = [n for n, step in enumerate(steps) if step.split(" ")[0] == "os.rename"]
    others = [n for n in range(len(steps)) if n not in renames]
    # the switch is at the end of a run, so the last steps come first
    plan = [(stop, n) for group in (renames, others) for n in reversed(group) for stop in STOPS]
    wholes = {"old": contents(old), "new": contents(trials.folder / "new" / "run")}
    trials.count = min(trials.count, len(plan))
    trials.note = f"{len(renames)} renames and {len(others)} removals × {', '.join(STOPS)}"
    for folder in trials:
        stop, n = plan[trials.tried]
        shutil.copytree(old, folder / "run", symlinks=True)
        Child(folder, _stopped, stop, n, fit_words("--seed", 2, "--overwrite")).wait()
        trials.record(_one_of(folder, wholes, f"{stop} at step {n}, {steps[n]:.60}"))


def _one_of(folder: Path, wholes: dict[str, dict[str, str]], when: str) -> str:
    """A failure to tell unless one of the runs is whole for readers, and the next fit leaves no rest."""
    reading = Child(folder, command, "report", "run", "--out", "page.html", "--quiet")
    if failure := reading.unclear(0):
        return f"{when}: the run cannot be read: {failure}"
    found = contents(folder / "run")
    # the rest of an unfinished run may wait for --resume, or for the next fit
    own = {n: d for n, d in found.items() if not n.startswith(("checkpoint/", "."))}
    wrong = {name: differences(own, whole) for name, whole in wholes.items()}
    if all(wrong.values()):
        return f"{when}: neither run is whole: {wrong}"
    again = Child(folder, command, *fit_words("--seed", 2, "--overwrite"))
    if failure := again.unclear(0):
        return f"{when}: the next fit fails: {failure}"
    rest = differences(contents(folder / "run"), wholes["new"])
    return f"{when}: after the next fit: {rest}" if rest else ""


def _stopped(stop: str | None, at: int, words: list[Any]) -> None:
    """Run a command that is stopped at a step, or that prints its steps."""
    number = -1

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal number
        if event not in STEPS or "run" not in str(arguments[0]) + str(arguments[-1]):
            return
        number += 1
        if stop is None:
            print("STEP", event, *arguments[:2], flush=True)
        elif number == at and stop == "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        elif number == at and stop == "SIGINT":
            signal.raise_signal(signal.SIGINT)
        elif number == at:
            raise PermissionError(13, "Permission denied", str(arguments[0]))

    sys.addaudithook(watch)
    command(*words)


# ---------------------------------------------------------------- two at once


def starts(trials: Trials) -> None:
    """Start two `fit` on one folder at the same moment: one gets it, the other is told so in one line."""
    write_problem(trials.folder)
    expected = contents(fitted(trials.folder / "alone", epochs=1))
    for folder in trials:
        barrier = CONTEXT.Barrier(2)
        # every other time they wait for each other where the folder is about to be made
        both = [Child(folder, _together, barrier, trials.tried % 2, fit_words(epochs=1)) for _ in range(2)]
        codes = [child.wait() for child in both]
        failure = next(filter(None, (child.unclear(0, 1) for child in both)), "")
        if not failure and sorted(map(str, codes)) != ["0", "1"]:
            failure = f"the two ended with {codes}"
        trials.record(failure or differences(contents(folder / "run"), expected))


def _together(barrier: Any, at_folder: int, words: list[Any]) -> None:
    waited = False

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal waited
        if event == "os.mkdir" and not waited and str(arguments[0]).endswith("run"):
            waited = True
            with suppress(threading.BrokenBarrierError):  # the other one was refused before it came here
                barrier.wait(5)

    if at_folder:
        sys.addaudithook(watch)
    else:
        barrier.wait(60)
    command(*words)


def saves(trials: Trials) -> None:
    """Two processes save different models into one folder at the same moment; one of them is there, whole."""
    models = _two_models(trials.folder)
    barrier, target = CONTEXT.Barrier(2), trials.folder / "target"
    more = (barrier, str(target), trials.count, trials.deadline)
    savers = [Child(trials.folder, _save, rank, models, *more) for rank in range(2)]
    for child in savers:
        child.process.join(trials.deadline - time.monotonic() + 120)
    _collect(trials, savers)


def loads(trials: Trials) -> None:
    """A process loads a model again and again while another one saves two models in turn."""
    models = _two_models(trials.folder)
    target = trials.folder / "target"
    shutil.copytree(models[0], target)
    writer = Child(trials.folder, _save_in_turn, models, str(target), trials.deadline + 60)
    reader = Child(trials.folder, _load, models, str(target), trials.count, trials.deadline)
    reader.process.join(trials.deadline - time.monotonic() + 60)
    writer.kill()
    _collect(trials, [reader])


def _collect(trials: Trials, children: list[Child]) -> None:
    for child in children:
        code = child.wait(10)
        for line in child.output.splitlines():
            if line.startswith("TRIAL"):
                trials.record(line[5:].strip())
        if code != 0:
            trials.record(f"ended with {code}: {child.output[-200:]}")


def _two_models(folder: Path) -> list[str]:
    write_problem(folder)
    return [str(fitted(folder / f"model-{seed}", "--seed", seed, epochs=1) / "model") for seed in (1, 2)]


def _same(model: Any, weights: list[Any]) -> bool:
    import torch

    own = model.module_.state_dict()
    return any(own.keys() == w.keys() and all(torch.equal(own[k], w[k]) for k in w) for w in weights)


def _save(rank: int, models: list[str], barrier: Any, target: str, count: int, deadline: float) -> None:
    import annotmix

    both = [annotmix.load(folder) for folder in models]
    weights = [model.module_.state_dict() for model in both]
    for _ in range(count):
        try:
            barrier.wait(60)
            _try_to_save(both[rank], target)
            barrier.wait(60)
        except threading.BrokenBarrierError:  # the time is over
            return
        if rank == 0:
            try:
                whole = _same(annotmix.load(target), weights)
                files = len(list(Path(target).glob("*.safetensors")))
                failure = "" if whole and files <= 3 else f"whole: {whole}, {files} files of weights"
            except Exception as error:
                failure = f"{type(error).__name__}: {error}"
            print("TRIAL", " ".join(failure.split()), flush=True)
            if time.monotonic() > deadline:
                barrier.abort()


def _try_to_save(model: Any, target: str) -> None:
    with suppress(OSError):  # an error may be told to one of the two; what counts is the model in the folder
        model.save(target)


def _save_in_turn(models: list[str], target: str, deadline: float) -> None:
    import annotmix

    both = [annotmix.load(folder) for folder in models]
    while time.monotonic() < deadline:
        for model in both:
            model.save(target)


def _load(models: list[str], target: str, count: int, deadline: float) -> None:
    import annotmix

    weights = [annotmix.load(folder).module_.state_dict() for folder in models]
    for _ in range(count):
        try:
            failure = "" if _same(annotmix.load(target), weights) else "neither of the two models"
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        print("TRIAL", " ".join(failure.split()), flush=True)
        if time.monotonic() > deadline:
            return


# ---------------------------------------------------------------- killed and resumed


def resumes(trials: Trials) -> None:
    """Kill `fit` at random moments; resumed, it gives the same bits and leaves nothing else behind."""
    write_problem(trials.folder)
    begun = time.monotonic()
    expected = contents(fitted(trials.folder / "whole", epochs=4))
    whole = time.monotonic() - begun
    for folder in trials:
        for _ in range(int(trials.rng.integers(1, 3))):
            child = Child(folder, command, *fit_words("--resume", epochs=4))
            child.process.join(float(trials.rng.uniform(0.1, 1)) * whole)
            if child.process.exitcode is None:
                child.kill()
        last = Child(folder, command, *fit_words("--resume", epochs=4))
        failure = last.unclear(0, 1)
        if "already holds a run" in last.output:
            failure = ""  # it was killed after its end
        trials.record(failure or differences(contents(folder / "run"), expected))
