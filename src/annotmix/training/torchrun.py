"""Whether torchrun has started this process; known without torch."""

from __future__ import annotations

import os


def by_torchrun() -> bool:
    """Whether torchrun has started this process beside others."""
    return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("WORLD_SIZE", 1)) > 1
