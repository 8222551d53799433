"""The device to compute on."""

from __future__ import annotations

import os

import torch


def pick_device(device: str) -> torch.device:
    """The device by name; "auto" takes a GPU where there is one. Each process of torchrun has its own GPU."""
    if device in ("auto", "cuda") and torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    if device == "auto":
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        return torch.device(device)
    except RuntimeError as error:
        raise ValueError(f'device must be "auto", "cpu", "cuda" or "mps", found {device!r}.') from error
