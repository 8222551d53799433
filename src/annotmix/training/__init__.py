"""Training a model: the loop, batches, optimiser, checkpoints, randomness, several processes."""

from typing import TYPE_CHECKING

from annotmix._common.lazy import lazy

if TYPE_CHECKING:
    from annotmix.training.loop import Settings, train

__all__ = ["Settings", "train"]

__getattr__, __dir__ = lazy(__name__, {"Settings": "loop", "train": "loop"})
