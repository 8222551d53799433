"""The state of a training on disk: weights, optimiser and history, no random state."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor, nn

from annotmix.training.optimizer import RAdam
from annotmix.training.processes import is_stale
from annotmix.training.tensor_files import ModelFileError, load_tensors, save_tensors

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


def save_checkpoint(
    folder: Path, model: nn.Module, optimizer: RAdam, run: Training, fingerprint: str
) -> None:
    """Write the state of a run; `fingerprint` identifies its settings and data.

    A process that has outlived the one that started it writes nothing.
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
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f".{FILE}.{os.getpid()}"
    try:
        save_tensors(new, tensors, facts)
        if not is_stale():
            new.replace(folder / FILE)
    finally:
        new.unlink(missing_ok=True)


def resume(folder: Path | None, model: nn.Module, optimizer: RAdam, fingerprint: str) -> Training:
    """The run of the checkpoint, with the state of model and optimiser restored; a new run without one."""
    path = folder / FILE if folder else None
    if path is None or not path.exists():
        return Training()
    tensors, facts = load_tensors(path)
    if facts.get("fingerprint") != fingerprint:
        raise ModelFileError(
            f"{str(path)!r} belongs to another run: its data, parameters or random_state differ. "
            "Choose another checkpoint folder, or remove the file."
        )
    device = next(model.parameters()).device
    parts: dict[str, State] = {"model": {}, "best": {}, "optimizer": {}}
    for key, tensor in tensors.items():
        part, name = key.split(".", 1)
        parts[part][name] = tensor.to(device)
    model.load_state_dict(parts["model"])
    optimizer.load_state(parts["optimizer"])
    return Training(facts["epoch"], facts["history"], facts["best_epoch"], facts["best_score"], parts["best"])


def how_to_resume(folder: Path | None, max_epochs: int) -> str:
    """A sentence for the message about a run whose processes were lost."""
    path = folder / FILE if folder else None
    if path is None or not path.exists():
        return "There is no checkpoint to resume from."
    epoch = load_tensors(path)[1]["epoch"]
    return f"The same fit resumes after epoch {epoch} of {max_epochs}, from its checkpoint."
