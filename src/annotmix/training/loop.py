"""The one training loop.

Every epoch's randomness (order, mixing, dropout) follows from the seed and the number of the epoch alone.
So a checkpoint holds weights, optimiser and history, no random state, and a run that was killed and resumed
ends with the same bits as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from annotmix._common.progress import Progress
from annotmix.approaches.base import Approach
from annotmix.labels.annotations import Annotations
from annotmix.networks.features import Features
from annotmix.networks.generator import borrowed_generator
from annotmix.training import processes
from annotmix.training.augmentation import Augmentation
from annotmix.training.batches import Labels
from annotmix.training.checkpoints import Training, how_to_resume, resume, save_checkpoint
from annotmix.training.inference import EvaluationSet, scores
from annotmix.training.optimizer import RAdam
from annotmix.training.processes import Processes

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
    precision: str = "32-true"
    devices: int | None = None
    checkpoint: Path | None = None
    checkpoint_every: int = 10
    progress: bool = True

    def checkpoint_due(self, epoch: int) -> bool:
        """Whether there is a checkpoint after so many epochs, if there is a folder for it."""
        return epoch % self.checkpoint_every == 0 or epoch == self.max_epochs


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
    if settings.checkpoint is not None:
        settings.checkpoint.mkdir(parents=True, exist_ok=True)
    try:
        if n_processes:
            return _train_in_new_processes(n_processes, model, X, *work)
        return _train(processes.join(X.device, settings.devices), X.device, model, X, *work)
    except ChildProcessError as error:
        advice = how_to_resume(settings.checkpoint, settings.max_epochs)
        raise ChildProcessError(f"{error} {advice}") from None


def _train_in_new_processes(
    n_processes: int,
    model: Approach,
    X: Features,
    annotations: Annotations,
    settings: Settings,
    monitor: Mapping[str, EvaluationSet],
    fingerprint: str,
) -> Training:
    """`train` in new processes; the result is their last checkpoint, after which nothing is left to train."""
    device, cpu = X.device, torch.device("cpu")
    sets = {name: data.to(cpu) for name, data in monitor.items()}
    with TemporaryDirectory() as folder:
        if settings.checkpoint is None:
            settings = replace(settings, checkpoint=Path(folder), checkpoint_every=settings.max_epochs)
        work = (model.to(cpu), X.to(cpu), annotations, settings, sets, fingerprint)
        processes.start(n_processes, device, _train, *work)
        return _train(Processes(), device, model, X, annotations, settings, {}, fingerprint)


def _train(
    group: Processes,
    device: torch.device,
    model: Approach,
    X: Features,
    annotations: Annotations,
    settings: Settings,
    monitor: Mapping[str, EvaluationSet],
    fingerprint: str,
) -> Training:
    """`train` in this process, which may be one of several."""
    X = group.share_features(X.to(device))
    monitor = {name: data.to(device) for name, data in monitor.items()}
    model.to(device)
    progress = Progress(model.name, settings.max_epochs, show=settings.progress and group.rank == 0)
    with progress, randomness(settings.seed, BEGINNING) as rng:
        model.begin(annotations, rng)
    group.prepare(model)
    optimizer = RAdam(model, settings.weight_decay)
    run = resume(settings.checkpoint, model, optimizer, fingerprint)
    loss_of = group.loss(model, device, run.epoch)
    labels, precision = Labels(annotations, device), _precision(settings.precision, device)
    progress.done = run.epoch

    with progress, flushed_denormals(), group.watch():
        for epoch in range(run.epoch, settings.max_epochs):
            started = time.perf_counter()
            lr = 0.5 * settings.lr * (1 + math.cos(math.pi * epoch / settings.max_epochs))
            losses, counts = [], []
            model.train()
            with randomness(settings.seed, EPOCH, epoch) as rng:
                order, batch_size, rng = group.share(labels.labelled, settings.batch_size, rng)
                n_batches = -(-len(order) // batch_size)
                for batch in labels.batches(X, order, batch_size, rng, settings.augment):
                    optimizer.catch_up(batch.annotator)
                    with precision:
                        loss = loss_of(batch, rng)
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimizer.step(lr)
                    optimizer.zero_grad()
                    model.after_step()
                    losses.append(loss.detach())
                    counts.append(len(batch.label))
                    progress.within(f"epoch {epoch + 1}: {len(losses)} of {n_batches} batches")
            if monitor or settings.checkpoint_due(epoch + 1):
                optimizer.catch_up()
            group.average_statistics(model)
            model.after_epoch(X, (epoch + 1) / settings.max_epochs)
            n_labels = torch.tensor(counts, device=device).to(losses[0])
            total = torch.stack([torch.dot(torch.stack(losses), n_labels), n_labels.sum()])
            loss_sum, label_count = group.sum(total).tolist()
            row = {"epoch": epoch + 1, "loss": loss_sum / label_count, "lr": lr}
            row["seconds"] = time.perf_counter() - started
            _require_finite(row["loss"], epoch + 1)
            if group.rank == 0:
                for name, data in monitor.items():
                    row |= {f"{name}/{score}": value for score, value in scores(model, data).items()}
            row = group.from_first(row)
            run.epoch = epoch + 1
            run.history.append(row)
            score = row.get(f"{VALIDATION}/clf-acc", row.get(f"{VALIDATION}/label-ll", -math.inf))
            if score > run.best_score:
                run.best_epoch, run.best_score = epoch + 1, score
                run.best_state = {name: t.detach().clone() for name, t in model.state_dict().items()}
            if settings.checkpoint and settings.checkpoint_due(run.epoch) and group.rank == 0:
                save_checkpoint(settings.checkpoint, model, optimizer, run, fingerprint)
            progress.advance(_note(row))
    model.eval()
    return run


@contextmanager
def randomness(seed: int, *stream: int) -> Iterator[np.random.Generator]:
    """A numpy generator, and torch's own generator seeded alike for as long as the context lasts.

    Initialisation and dropout, ours and those of a backbone from outside, draw from torch's global
    generator. It is seeded here from (seed, stream) and put back as it was afterwards, so callers never
    notice. The process has one such generator for all its threads: other threads wait here.
    """
    state = np.random.SeedSequence([seed, *stream])
    numpy_seed, torch_seed = state.spawn(2)
    with borrowed_generator():
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


def _precision(name: str, device: torch.device) -> AbstractContextManager[object]:
    """The context in which losses are computed."""
    if name == "32-true":
        return nullcontext()
    if name == "bf16-mixed":
        return torch.autocast(device.type, torch.bfloat16)
    raise ValueError(f'precision must be "32-true" or "bf16-mixed", found {name!r}.')


def _require_finite(loss: float, epoch: int) -> None:
    if not math.isfinite(loss):
        raise FloatingPointError(
            f"The loss is {loss} in epoch {epoch}. Standardise the features (for example with scikit-learn's "
            "StandardScaler) or lower lr."
        )


def _note(row: dict[str, float]) -> str:
    shown = {k: v for k, v in row.items() if k not in ("epoch", "lr", "seconds")}
    return "  ".join(f"{key} {value:.3f}" for key, value in shown.items())
