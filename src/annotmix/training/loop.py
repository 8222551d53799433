"""The one training loop.

Every epoch's randomness (order, mixing, dropout) follows from the seed and the number of the epoch alone.
So a checkpoint holds weights, optimiser and history, no random state, and a run that was killed and resumed
ends with the same bits as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor

from annotmix._common.progress import Progress
from annotmix.approaches.base import Approach, Batch
from annotmix.labels.annotations import Annotations
from annotmix.networks.features import Features
from annotmix.training import processes
from annotmix.training.augmentation import Augmentation
from annotmix.training.inference import EvaluationSet, scores
from annotmix.training.optimizer import RAdam
from annotmix.training.team import Team
from annotmix.training.tensor_files import ModelFileError, load_tensors, save_tensors

State = dict[str, Tensor]
#: The monitored set that selects the best epoch: by clf-acc, or by label-ll where true classes are unknown.
VALIDATION = "valid"
#: Streams of randomness that follow from one seed.
INITIALISATION, EPOCH, REFERENCE, BEGINNING, HELD_OUT = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Settings:
    """How to train; the defaults are the paper's for tabular data."""

    max_epochs: int = 50
    batch_size: int = 64
    lr: float = 1e-2
    weight_decay: float = 0.0
    augment: Augmentation | None = None
    seed: int = 0
    precision: Any = "32-true"
    devices: int | None = None
    checkpoint: Path | None = None
    checkpoint_every: int = 10
    progress: bool = True


@dataclass
class Training:
    """Where a run stands: what was done, and the weights of the best epoch so far."""

    epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int | None = None
    best_score: float = -math.inf
    best_state: State = field(default_factory=dict)


def train(
    model: Approach,
    X: Features,
    annotations: Annotations,
    settings: Settings,
    monitor: Mapping[str, EvaluationSet] | None = None,
    fingerprint: str = "",
) -> Training:
    """Train `model` in place on the labelled items of X.

    Parameters
    ----------
    model : Approach
    X : Features
        Row n belongs to item n of `annotations`.
    annotations : Annotations
    settings : Settings
    monitor : mapping of name to EvaluationSet, optional
        Scored after every epoch. The one named "valid" selects the best epoch: by its clf-acc where it has
        true classes, else by its label-ll.
    fingerprint : str
        Identifies settings and data; a checkpoint of another run is refused.

    Returns
    -------
    Training
        History and best weights. The model itself holds the last epoch's.
    """
    n_processes = processes.to_start(settings.devices)
    work = (annotations, settings, monitor or {}, fingerprint)
    try:
        if n_processes:
            return _train_elsewhere(n_processes, model, X, *work)
        fabric = processes.make_fabric(X.device, settings.devices, settings.precision)
        return _train(fabric, model, X, *work)
    except ChildProcessError as error:
        raise ChildProcessError(f"{error} {_kept(settings)}") from None


def _train_elsewhere(
    n_processes: int,
    model: Approach,
    X: Features,
    annotations: Annotations,
    settings: Settings,
    monitor: Mapping[str, EvaluationSet],
    fingerprint: str,
) -> Training:
    """`train` in new processes; what they did is in their last checkpoint, with nothing left to do."""
    device, cpu = X.device, torch.device("cpu")
    sets = {name: data.to(cpu) for name, data in monitor.items()}
    with TemporaryDirectory() as folder:
        if settings.checkpoint is None:
            settings = replace(settings, checkpoint=Path(folder), checkpoint_every=settings.max_epochs)
        work = (model.to(cpu), X.to(cpu), annotations, settings, sets, fingerprint)
        processes.start(n_processes, device, settings.precision, _train, *work)
        fabric = processes.make_fabric(device, 1, settings.precision)
        return _train(fabric, model, X, annotations, settings, {}, fingerprint)


def _train(
    fabric: Fabric,
    model: Approach,
    X: Features,
    annotations: Annotations,
    settings: Settings,
    monitor: Mapping[str, EvaluationSet],
    fingerprint: str,
) -> Training:
    """`train` in this process, which may be one of several."""
    X = X.to(fabric.device)
    monitor = {name: data.to(fabric.device) for name, data in monitor.items()}
    model.to(fabric.device)
    with randomness(settings.seed, BEGINNING) as rng:
        model.begin(annotations, rng)
    groups = model.parameter_groups(settings.lr, settings.weight_decay)
    optimizer = RAdam(groups, lr=settings.lr)
    wrapped, wrapped_optimizer = fabric.setup(model, optimizer)
    run = _resume(model, optimizer, settings, fingerprint)
    labels = Labels(annotations, X.device)
    team = Team(fabric, model)
    # Fabric's wrappers take a tenth of a small step; one process in single precision needs none of them
    alone = team.size == 1 and settings.precision == "32-true"
    team.line_up(run.epoch)
    progress = Progress(model.name, settings.max_epochs, run.epoch, settings.progress and team.rank == 0)

    with progress, team.layers(), flushed_denormals():
        for epoch in range(run.epoch, settings.max_epochs):
            started = time.perf_counter()
            lr = 0.5 * settings.lr * (1 + math.cos(math.pi * epoch / settings.max_epochs))
            for group in optimizer.param_groups:
                group["lr"] = lr
            losses, counts = [], []
            model.train()
            with randomness(settings.seed, EPOCH, epoch) as rng:
                for batch in labels.batches(X, settings.batch_size, rng, settings.augment):
                    optimizer.catch_up(batch.annotator)
                    if alone:
                        loss = model.gradients(batch, rng)
                        optimizer.update()
                    else:
                        loss = team.weigh(wrapped(team.part(batch), rng))
                        fabric.backward(loss)
                        team.sum_gradients(optimizer)
                        wrapped_optimizer.step()
                    optimizer.zero_grad()
                    model.after_step()
                    losses.append(loss.detach())
                    counts.append(len(batch.label))
            if monitor or _due(epoch + 1, settings):
                optimizer.catch_up()
            model.after_epoch(X, (epoch + 1) / settings.max_epochs)
            total = torch.dot(torch.stack(losses), torch.tensor(counts, device=X.device).to(losses[0]))
            row = {"epoch": epoch + 1, "loss": float(team.sum(total)) / len(annotations), "lr": lr}
            _require_finite(row["loss"], epoch + 1)
            row["seconds"] = time.perf_counter() - started
            for name, data in monitor.items():
                row |= {f"{name}/{score}": value for score, value in scores(model, data).items()}
            row = team.agree(row)
            run.epoch = epoch + 1
            run.history.append(row)
            score = row.get(f"{VALIDATION}/clf-acc", row.get(f"{VALIDATION}/label-ll", -math.inf))
            if score > run.best_score:
                run.best_epoch, run.best_score = epoch + 1, score
                run.best_state = {name: t.detach().clone() for name, t in model.state_dict().items()}
            if settings.checkpoint and _due(run.epoch, settings) and team.rank == 0:
                _checkpoint(model, optimizer, run, settings.checkpoint, fingerprint)
            progress.advance(_note(row))
    model.eval()
    return run


class Labels:
    """The labels as tensors on the device, and the batches they make."""

    def __init__(self, annotations: Annotations, device: torch.device):
        self.device = device
        self.labelled = np.flatnonzero(annotations.labels_per_item)
        self.count, self.start = np.diff(annotations.start), annotations.start
        self.annotator = torch.tensor(annotations.annotator, device=device)
        self.label = torch.tensor(annotations.label, device=device)
        weight = annotations.weight
        self.weight = None if weight is None else torch.tensor(weight, dtype=torch.float32, device=device)

    def batches(
        self, X: Features, batch_size: int, rng: np.random.Generator, augment: Augmentation | None = None
    ) -> Iterator[Batch]:
        """All labelled items once, shuffled, `batch_size` at a time with all their labels."""
        order = rng.permutation(self.labelled)
        count = self.count[order]
        end = np.cumsum(count)
        # label positions in the new order: for every item its run start[n], start[n] + 1, …
        position = np.arange(end[-1]) + np.repeat(self.start[order] - (end - count), count)
        row = torch.from_numpy(np.repeat(np.arange(len(order)) % batch_size, count)).to(self.device)
        index = torch.from_numpy(position).to(self.device)
        annotator, label = self.annotator[index], self.label[index]
        weight = None if self.weight is None else self.weight[index]
        for first in range(0, len(order), batch_size):
            last = min(first + batch_size, len(order))
            part = slice(end[first] - count[first], end[last - 1])
            x = X.draw(order[first:last], rng)
            items = torch.from_numpy(order[first:last]).to(self.device)
            yield Batch(
                x if augment is None else augment(x, rng),
                row[part],
                annotator[part],
                label[part],
                items,
                None if weight is None else weight[part],
            )


@contextmanager
def randomness(seed: int, *stream: int) -> Iterator[np.random.Generator]:
    """A numpy generator, and torch's own generator seeded alike for as long as the context lasts.

    Initialisation and dropout, ours and those of a backbone from outside, draw from torch's global
    generator. It is seeded here from (seed, stream) and put back as it was afterwards, so callers never
    notice.
    """
    state = np.random.SeedSequence([seed, *stream])
    numpy_seed, torch_seed = state.spawn(2)
    with torch.random.fork_rng():
        torch.manual_seed(int(torch_seed.generate_state(1, np.uint64)[0]))
        yield np.random.default_rng(numpy_seed)


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Numbers below 1e-38 are zero on this CPU thread, for as long as the context lasts.

    The mean gradient of a unit that is never active again halves every seven steps, and after a thousand
    steps lies where a CPU takes a hundred times as long for every number.
    """
    before = float(torch.tensor([1e-39]).mul(1.0)) == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def _due(epoch: int, settings: Settings) -> bool:
    return epoch % settings.checkpoint_every == 0 or epoch == settings.max_epochs


def _checkpoint(
    model: Approach, optimizer: torch.optim.Optimizer, run: Training, folder: Path, fingerprint: str
) -> None:
    tensors = {f"model.{name}": t.contiguous() for name, t in model.state_dict().items()}
    tensors |= {f"best.{name}": t.contiguous() for name, t in run.best_state.items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": t.contiguous() for key, t in state.items()}
    facts = {
        "fingerprint": fingerprint,
        "epoch": run.epoch,
        "history": run.history,
        "best_epoch": run.best_epoch,
        "best_score": run.best_score,
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_tensors(folder / "checkpoint.safetensors", tensors, facts)


def _resume(
    model: Approach, optimizer: torch.optim.Optimizer, settings: Settings, fingerprint: str
) -> Training:
    """The run as the checkpoint left it, with model and optimiser brought there; a new run without one."""
    path = settings.checkpoint / "checkpoint.safetensors" if settings.checkpoint else None
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
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in parts["optimizer"].items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return Training(facts["epoch"], facts["history"], facts["best_epoch"], facts["best_score"], parts["best"])


def _kept(settings: Settings) -> str:
    """What is left of a run whose processes were lost, and how to go on."""
    path = settings.checkpoint / "checkpoint.safetensors" if settings.checkpoint else None
    if path is None or not path.exists():
        return "There is no checkpoint to go on from."
    epoch = load_tensors(path)[1]["epoch"]
    return f"The same fit goes on after epoch {epoch} of {settings.max_epochs}, from its checkpoint."


def _require_finite(loss: float, epoch: int) -> None:
    if not math.isfinite(loss):
        raise FloatingPointError(
            f"The loss is {loss} in epoch {epoch}. Standardise the features (for example with scikit-learn's "
            "StandardScaler) or lower lr."
        )


def _note(row: dict[str, float]) -> str:
    shown = {k: v for k, v in row.items() if k not in ("epoch", "lr", "seconds")}
    return "  ".join(f"{key} {value:.3f}" for key, value in shown.items())
