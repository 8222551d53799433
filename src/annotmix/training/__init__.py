"""Training a model: the loop, batches, optimiser, checkpoints, randomness, several processes."""

from annotmix.training.loop import Settings, train

__all__ = ["Settings", "train"]
