"""Torch's generator of random numbers, which a process has once for all its threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

#: Held by the thread that draws from torch's global generator, or puts it back.
_one_thread = threading.RLock()


def _forget_threads() -> None:
    """A forked process has no other threads: nobody would release the lock that one of them held."""
    global _one_thread
    _one_thread = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


@contextmanager
def borrowed_generator() -> Iterator[None]:
    """Torch's generator for this thread alone; afterwards it is as it was, and other threads go on.

    Everything here that draws from it does so inside: a thread that only puts it back would otherwise repeat
    the numbers of another one that is training.
    """
    with _one_thread, torch.random.fork_rng():
        yield
