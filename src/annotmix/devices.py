"""Where to compute."""

from __future__ import annotations

import torch


def pick_device(device: str) -> torch.device:
    """The device by name; "auto" takes a GPU where there is one."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        return torch.device(device)
    except RuntimeError as error:
        raise ValueError(f'device must be "auto", "cpu", "cuda" or "mps", found {device!r}.') from error
