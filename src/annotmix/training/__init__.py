"""Training a model: the loop, batches, optimiser, checkpoints, randomness, several processes."""
