"""Simulated annotators, for experiments, demonstrations, tests and teaching.

- `simulate_annotators`: every annotator is a network that saw its own part of the data (the paper's way).
- `hammer`, `spammer`, `specialist`, `confuser`, `local_expert`, whose labels `simulate` draws: every
  annotator is a confusion matrix, or two and where each holds. Cheap, and needs no torch.
- `thin` keeps a few of the labels of either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from annotmix.datasets.simulation.parametric import (
    Confusion,
    LocalExpert,
    confuser,
    hammer,
    local_expert,
    simulate,
    spammer,
    specialist,
)
from annotmix.datasets.simulation.thinning import thin

if TYPE_CHECKING:
    from annotmix.datasets.simulation.trained import SimulatedAnnotators, simulate_annotators
else:  # hidden from type checkers, for which every name would exist otherwise

    def __getattr__(name: str) -> Any:
        if name in ("SimulatedAnnotators", "simulate_annotators"):
            from annotmix.datasets.simulation import trained  # loads torch, which takes a while

            return getattr(trained, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Confusion",
    "LocalExpert",
    "SimulatedAnnotators",
    "confuser",
    "hammer",
    "local_expert",
    "simulate",
    "simulate_annotators",
    "spammer",
    "specialist",
    "thin",
]
