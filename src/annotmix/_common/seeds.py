"""The seed of a run."""

from __future__ import annotations

from typing import Any

import numpy as np


def seed_of(random_state: Any) -> int:
    """One integer that all randomness of a run follows from; `None` draws a new one."""
    if isinstance(random_state, int | np.integer):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative, found {random_state}.")
        return int(random_state)
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    raise ValueError(f"random_state must be an integer, a RandomState or None, found {random_state!r}.")
