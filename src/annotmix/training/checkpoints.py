"""The state of a training on disk: weights, optimiser and history, no random state."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from annotmix._common.schema import Count, Strict, decode
from annotmix.training.optimizer import RAdam
from annotmix.training.processes import is_stale
from annotmix.training.tensor_files import ModelFileError, load_tensors, save_tensors
from annotmix.training.tensor_layout import Layout, require_layout

FILE = "checkpoint.safetensors"
State = dict[str, Tensor]


@dataclass
class Training:
    """The state of a run: epochs that are done, their history, and the weights of the best one so far."""

    epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int | None = None
    best_score: float = -math.inf
    best_state: State = field(default_factory=dict)


class CheckpointFacts(Strict):
    """What a checkpoint says besides its tensors."""

    fingerprint: str
    epoch: Count
    history: list[dict[str, int | float]]
    best_epoch: Count | None
    best_score: float


def save_checkpoint(
    folder: Path, model: nn.Module, optimizer: RAdam, run: Training, fingerprint: str
) -> None:
    """Write the state of a run; `fingerprint` identifies its settings and data.

    The folder must exist: a process whose folder was removed, or renamed by another one that continues the
    run, writes nothing; nor does a process that has outlived the one that started it.
    """
    tensors = {f"model.{name}": t.contiguous() for name, t in model.state_dict().items()}
    tensors |= {f"best.{name}": t.contiguous() for name, t in run.best_state.items()}
    tensors |= {f"optimizer.{name}": t for name, t in optimizer.state().items()}
    facts = {
        "fingerprint": fingerprint,
        "epoch": run.epoch,
        "history": run.history,
        "best_epoch": run.best_epoch,
        "best_score": run.best_score,
    }
    new = folder / f".{FILE}.{os.getpid()}"
    try:
        save_tensors(new, tensors, facts)
        if not is_stale():
            new.replace(folder / FILE)
    except FileNotFoundError:
        raise OSError(
            f"The checkpoint folder {str(folder)!r} is gone: it was removed, or another process continues "
            "this training."
        ) from None
    finally:
        new.unlink(missing_ok=True)


def resume(folder: Path | None, model: nn.Module, optimizer: RAdam, fingerprint: str) -> Training:
    """The run of the checkpoint, with the state of model and optimiser restored; a new run without one."""
    path = folder / FILE if folder else None
    if path is None or not path.exists():
        return Training()

    def check(facts: dict[str, Any], layout: Layout) -> None:
        if facts.get("fingerprint") != fingerprint:
            raise ModelFileError(
                f"{str(path)!r} belongs to another run: its data, parameters or random_state differ. "
                "Choose another checkpoint folder, or remove the file."
            )
        decode(facts, CheckpointFacts)
        expected = {f"model.{name}": t for name, t in model.state_dict().items()}
        expected |= {f"optimizer.{name}": t for name, t in optimizer.state().items()}
        if facts.get("best_epoch") is not None:
            expected |= {f"best.{name}": t for name, t in model.state_dict().items()}
        require_layout(layout, expected)

    tensors, facts = load_tensors(path, check)
    saved = decode(facts, CheckpointFacts)
    device = next(model.parameters()).device
    parts: dict[str, State] = {"model": {}, "best": {}, "optimizer": {}}
    for key, tensor in tensors.items():
        part, name = key.split(".", 1)
        parts[part][name] = tensor.to(device)
    model.load_state_dict(parts["model"])
    optimizer.load_state(parts["optimizer"])
    return Training(saved.epoch, saved.history, saved.best_epoch, saved.best_score, parts["best"])


def how_to_resume(folder: Path | None, max_epochs: int) -> str:
    """A sentence for the message about a run whose processes were lost."""
    path = folder / FILE if folder else None
    if path is None or not path.exists():
        return "There is no checkpoint to resume from."
    epoch = load_tensors(path)[1].get("epoch")
    return f"The same fit resumes after epoch {epoch} of {max_epochs}, from its checkpoint."
