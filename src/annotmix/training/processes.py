"""Starting several processes that train one model together (see `annotmix.training.team`).

Lightning Fabric sets the processes up: those that torchrun has started, or its own, which are started for the
training alone. These leave their result in a checkpoint.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.strategies.ddp import DDPStrategy
from torch import nn
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

#: Seconds in which whoever started the processes ends them, once one is lost.
PATIENCE = 5.0


class Replicas(DDPStrategy):
    """Fabric's DDP without its wrapper around the module: `Team` sums the gradients."""

    def setup_environment(self) -> None:
        """Join the other processes, on this machine through the loopback."""
        loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
        if self.num_nodes == 1 and loopback:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback[0])
        with _quiet("lightning_fabric"):
            super().setup_environment()

    def setup_module(self, module: nn.Module) -> nn.Module:  # type: ignore[override]
        """The module as it is."""
        return module


def by_torchrun() -> bool:
    """Whether torchrun has started this process beside others."""
    return dist.is_torchelastic_launched() and int(os.environ.get("WORLD_SIZE", 1)) > 1


def to_start(devices: int | None) -> int:
    """How many processes have to be started for so many devices; 0 where this one is alone or torchrun's."""
    if not by_torchrun():
        return devices if devices is not None and devices > 1 else 0
    found = int(os.environ["WORLD_SIZE"])
    if devices not in (None, 1, found):
        raise ValueError(
            f"devices={devices}, but torchrun has started {found} processes. Leave devices= out there."
        )
    return 0


def make_fabric(device: torch.device, devices: int | None, precision: Any) -> Fabric:
    """Fabric for this process: alone, or with the others that torchrun has started."""
    if devices == 1 or not by_torchrun():
        on = [device.index] if device.type == "cuda" and device.index is not None else 1
        alone = [LightningEnvironment()]  # whatever torchrun says
        return _fabric(accelerator=device.type, devices=on, precision=precision, plugins=alone)
    here = int(os.environ["LOCAL_WORLD_SIZE"])
    nodes = int(os.environ["WORLD_SIZE"]) // here
    fabric = _fabric(
        accelerator=device.type, devices=here, num_nodes=nodes, strategy=Replicas(), precision=precision
    )
    fabric.launch()
    return fabric


def start(devices: int, device: torch.device, precision: Any, work: Callable[..., Any], *args: Any) -> None:
    """Do `work(fabric, *args)` in so many new processes and wait for them.

    A ValueError or ArithmeticError, which all processes meet alike, is raised here as it was there.
    """
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f'devices={devices} needs device="cpu" or "cuda", found {device.type!r}.')
    cuda = device.type == "cuda"
    found = torch.cuda.device_count() if cuda else max(2, os.cpu_count() or 1)
    if devices > found:
        raise ValueError(
            f"devices={devices} are too many: every process takes a {'GPU' if cuda else 'core'}, of which "
            f"there are {found}."
        )
    try:
        packed = pickle.dumps((work, args))
    except (pickle.PicklingError, AttributeError, TypeError) as why:
        raise ValueError(
            f"devices={devices} hands the model to other processes, which this one does not allow ({why}). "
            "Define the backbone at the top level of a module, or start the processes with torchrun."
        ) from why
    strategy = Replicas(start_method="spawn")
    fabric = _fabric(accelerator=device.type, devices=devices, strategy=strategy, precision=precision)
    port = os.environ.get("MASTER_PORT")
    try:
        with _quiet("torch.multiprocessing.spawn"):  # what it says of lost processes is said below
            threads = int(os.environ.get("OMP_NUM_THREADS", 1))
            error = fabric.launch(_do, packed, threads)  # type: ignore[arg-type]
    except ProcessExitedException as lost:
        how = f"was ended by {lost.signal_name}" if lost.signal_name else f"ended with code {lost.exit_code}"
        raise ChildProcessError(f"Process {lost.error_index + 1} of {devices} {how}.") from None
    except ProcessRaisedException as lost:
        raise ChildProcessError(f"Process {lost.error_index + 1} of {devices} failed: {lost}") from None
    finally:
        if port is None:  # Fabric chose one for these processes
            os.environ.pop("MASTER_PORT", None)
    if error is not None:
        raise error


def _do(fabric: Fabric, packed: bytes, n_threads: int) -> Exception | None:
    """What a new process does; an error that all processes meet alike is returned."""
    torch.set_num_threads(n_threads)
    work, args = pickle.loads(packed)
    try:
        work(fabric, *args)
    except (ValueError, ArithmeticError) as error:
        return error
    return None


def _fabric(**settings: Any) -> Fabric:
    with _quiet("lightning_fabric"):
        return Fabric(**settings)


@contextmanager
def _quiet(logger: str) -> Iterator[None]:
    """Let a logger say nothing but errors."""
    log = logging.getLogger(logger)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
