"""Studies: datasets × approaches × seeds, run once, kept in one file, shown as the paper shows them."""

from __future__ import annotations

from typing import Any

from annotmix._common import optional as extras


def require(module: str) -> Any:
    """A module of the extra `bench`."""
    return extras.require(module, "bench", "annotmix bench")
