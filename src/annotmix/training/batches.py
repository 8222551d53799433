"""Batches of items with all their labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from annotmix.approaches.base import Batch
from annotmix.labels.annotations import Annotations
from annotmix.networks.features import Features
from annotmix.training.augmentation import Augmentation


class Labels:
    """The labels as tensors on the device, and the batches they make."""

    def __init__(self, annotations: Annotations, device: torch.device):
        self.device = device
        self.labelled = np.flatnonzero(annotations.labels_per_item)
        self.count, self.start = np.diff(annotations.start), annotations.start
        self.annotator = torch.tensor(annotations.annotator, device=device)
        self.label = torch.tensor(annotations.label, device=device)
        weight = annotations.weight
        self.weight = None if weight is None else torch.tensor(weight, dtype=torch.float32, device=device)

    def batches(
        self,
        X: Features,
        order: NDArray[np.int64],
        batch_size: int,
        rng: np.random.Generator,
        augment: Augmentation | None = None,
    ) -> Iterator[Batch]:
        """The items in the given order, `batch_size` at a time with all their labels."""
        count = self.count[order]
        end = np.cumsum(count)
        # label positions in the new order: for every item its run start[n], start[n] + 1, …
        position = np.arange(end[-1]) + np.repeat(self.start[order] - (end - count), count)
        row = torch.from_numpy(np.repeat(np.arange(len(order)) % batch_size, count)).to(self.device)
        index = torch.from_numpy(position).to(self.device)
        annotator, label = self.annotator[index], self.label[index]
        weight = None if self.weight is None else self.weight[index]
        for first in range(0, len(order), batch_size):
            last = min(first + batch_size, len(order))
            part = slice(end[first] - count[first], end[last - 1])
            x = X.draw(order[first:last], rng)
            items = torch.from_numpy(order[first:last]).to(self.device)
            yield Batch(
                x if augment is None else augment(x, rng),
                row[part],
                annotator[part],
                label[part],
                items,
                None if weight is None else weight[part],
            )
