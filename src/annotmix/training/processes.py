"""Several processes that train one model, by PyTorch's DistributedDataParallel.

Every process computes the gradient of its own share of each batch; DistributedDataParallel averages the
gradients while they are computed. Either torchrun has started the processes, or `start` does, for the
training alone. They talk to each other on the loopback interface where all are on one machine.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
import pickle
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException, start_processes
from torch.nn.parallel import DistributedDataParallel

from annotmix.approaches.base import Approach, Batch
from annotmix.networks.annotators import AnnotatorEmbedding
from annotmix.networks.features import Features
from annotmix.training.torchrun import by_torchrun

#: Seconds that a process which lost another one waits for its parent, which knows more, to end it.
PATIENCE = 5.0
#: Seconds between looks for torchrun, where it has started this process.
_INTERVAL = 0.5
#: Says whether the process that started this one for a training has ended; None where nobody did.
_parent_ended: Callable[[], bool] | None = None


class Processes:
    """The processes that train together, seen from one of them: those of `torch.distributed`, or it alone."""

    def __init__(self, together: bool = False):
        self.rank, self.size = (dist.get_rank(), dist.get_world_size()) if together else (0, 1)

    def prepare(self, model: nn.Module) -> None:
        """Let all gradients be dense where they are averaged: not every backend averages sparse ones."""
        for module in model.modules():
            if self.size > 1 and isinstance(module, AnnotatorEmbedding):
                module.sparse = False

    def loss(self, model: Approach, device: torch.device, epoch: int) -> Callable[..., Tensor]:
        """The model's loss with averaged gradients; all processes start with the weights of the first one."""
        if self.size == 1:
            return model.loss
        if epoch != (first := self.from_first(epoch)):
            raise ValueError(
                f"Process {self.rank + 1} of {self.size} resumes from epoch {epoch}, the first one from "
                f"epoch {first}: the checkpoint folder must be one that all processes see."
            )
        # a module from elsewhere may have parameters that its output does not depend on
        foreign = any(not type(m).__module__.startswith(("annotmix.", "torch.")) for m in model.modules())
        # buffers are not exchanged in every step: `average_statistics` is enough, once per epoch
        known = inspect.signature(DistributedDataParallel.__init__).parameters
        name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
        buffers: dict[str, Any] = {name: False}
        return DistributedDataParallel(
            _Loss(model),
            device_ids=[device] if device.type == "cuda" else None,
            find_unused_parameters=foreign,
            **buffers,
        )

    def share(
        self, items: NDArray[np.int64], batch_size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], int, np.random.Generator]:
        """This process's share of an epoch: items in a random order, batch size, and further randomness.

        All processes have equally many items, so that they take the same number of steps.
        """
        order = rng.permutation(items)
        if self.size == 1:
            return order, batch_size, rng
        own = rng.spawn(self.size)[self.rank]
        torch.manual_seed(int(own.integers(2**63)))
        every = np.resize(order, -(-len(order) // self.size) * self.size)
        return every[self.rank :: self.size], -(-batch_size // self.size), own

    def share_features(self, X: Features) -> Features:
        """The same features, whose `map` shares the work among the processes."""
        return X if self.size == 1 else _SharedFeatures(X, self)

    def sum(self, values: Tensor) -> Tensor:
        """Sum over the processes, in place."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def from_first(self, value: Any) -> Any:
        """The value of the first process."""
        values = [value]
        if self.size > 1:
            dist.broadcast_object_list(values)
        return values[0]

    @torch.no_grad()
    def average_statistics(self, model: nn.Module) -> None:
        """Average the running statistics of batch normalisation, which each process has of its own items."""
        for name, buffer in model.named_buffers():
            if self.size > 1 and name.endswith(("running_mean", "running_var")):
                self.sum(buffer).div_(self.size)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Say that a process may be lost where the exchange with it fails."""
        try:
            yield
        except RuntimeError as error:
            if self.size == 1:
                raise
            if not by_torchrun():
                time.sleep(PATIENCE)  # the parent says which one is lost, and ends this one
            raise ChildProcessError(
                f"Process {self.rank + 1} of {self.size} failed, or lost another one ({error})."
            ) from error


class _Loss(nn.Module):
    """The loss of a model as `forward`, which DistributedDataParallel takes as the training step."""

    def __init__(self, model: Approach):
        super().__init__()
        self.model = model

    def forward(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        return self.model.loss(batch, rng)


class _SharedFeatures(Features):
    """Features whose `map` computes every size-th piece and gathers the others."""

    def __init__(self, X: Features, processes: Processes):
        vars(self).update(vars(X))
        self._processes = processes

    def map(self, function: Callable[[slice, Tensor], Tensor]) -> Tensor:
        """As in `Features`."""
        rank, size, pieces = self._processes.rank, self._processes.size, self.pieces()
        own = {
            number: function(pieces[number], self.take(pieces[number])).cpu()
            for number in range(rank, len(pieces), size)
        }
        gathered: list[dict[int, Tensor]] = [{}] * size
        dist.all_gather_object(gathered, own)
        every = {number: part for parts in gathered for number, part in parts.items()}
        return torch.cat([every[number] for number in range(len(pieces))]).to(self.device)


def to_start(devices: int | None) -> int:
    """How many processes have to be started for so many devices; 0 where this one is alone or torchrun's."""
    if not by_torchrun():
        return devices if devices is not None and devices > 1 else 0
    started = int(os.environ["WORLD_SIZE"])
    if devices not in (None, 1, started):
        raise ValueError(
            f"devices={devices}, but torchrun has started {started} processes. Leave devices= out there."
        )
    return 0


def join(device: torch.device, devices: int | None) -> Processes:
    """The processes that torchrun has started, or this one alone."""
    together = by_torchrun() and devices != 1
    if together and not dist.is_initialized():
        torchrun = os.getppid()
        _end_with_parent(lambda: os.getppid() != torchrun)
        _connect(device, one_machine=os.environ["LOCAL_WORLD_SIZE"] == os.environ["WORLD_SIZE"])
    return Processes(together)


def start(n: int, device: torch.device, work: Callable[..., Any], *args: Any) -> None:
    """Do `work(processes, device, *args)` in n new processes and wait for them.

    A ValueError or ArithmeticError, which all processes meet alike, is raised here as it was there.
    """
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f'devices={n} needs device="cpu" or "cuda", found {device.type!r}.')
    cuda = device.type == "cuda"
    limit = torch.cuda.device_count() if cuda else max(2, os.cpu_count() or 1)
    if n > limit:
        raise ValueError(
            f"devices={n} are too many: every process takes a {'GPU' if cuda else 'core'}, of which there "
            f"are {limit}."
        )
    try:
        packed = pickle.dumps((work, args))
    except (pickle.PicklingError, AttributeError, TypeError) as why:
        raise ValueError(
            f"devices={n} hands the model to other processes, which this one does not allow ({why}). "
            "Define the backbone at the top level of a module, or start the processes with torchrun."
        ) from why
    errors: Any = multiprocessing.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        given = (n, device.type, str(Path(folder) / "rendezvous"), packed, errors)
        try:
            start_processes(_work, given, n, start_method="spawn")  # type: ignore[no-untyped-call]
        except (ProcessExitedException, ProcessRaisedException) as lost:
            if errors.empty():
                raise ChildProcessError(f"Process {lost.error_index + 1} of {n} {_how(lost)}.") from None
    if not errors.empty():
        raise errors.get()


def _work(rank: int, n: int, kind: str, rendezvous: str, packed: bytes, errors: Any) -> None:
    """The main function of a new process."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    _end_with_parent(lambda: not parent.is_alive(), lambda: wait([parent.sentinel]))
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    device = torch.device(f"cuda:{rank}" if kind == "cuda" else kind)
    work, args = pickle.loads(packed)
    try:
        # a file: a store at a port would listen on every interface
        _connect(device, one_machine=True, init_method=f"file://{rendezvous}", rank=rank, world_size=n)
        work(Processes(together=True), device, *args)
    except (ValueError, ArithmeticError) as error:
        errors.put(error)
    # all is written; at the end of Python, threads of the connection abort the process now and then
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def is_stale() -> bool:
    """Whether the process that started this one has ended: the files may belong to another run now."""
    return _parent_ended is not None and _parent_ended()


def _end_with_parent(ended: Callable[[], bool], wait_for_end: Callable[[], Any] | None = None) -> None:
    """End this process, whatever it does, once its parent has ended."""
    global _parent_ended
    _parent_ended = ended

    def watch() -> None:
        if wait_for_end is not None:
            wait_for_end()
        while not ended():
            time.sleep(_INTERVAL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _connect(device: torch.device, one_machine: bool, **how: Any) -> None:
    """Join the other processes, through the loopback interface if all are on this machine."""
    loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    if one_machine and loopback:
        for backend in ("GLOO", "NCCL"):
            os.environ.setdefault(f"{backend}_SOCKET_IFNAME", loopback[0])
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", **how)


def _how(lost: ProcessExitedException | ProcessRaisedException) -> str:
    if isinstance(lost, ProcessRaisedException):
        return f"failed: {lost}"
    return f"was ended by {lost.signal_name}" if lost.signal_name else f"ended with code {lost.exit_code}"
