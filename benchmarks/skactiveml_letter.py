"""CPU seconds an epoch of scikit-activeml's AnnotMixClassifier on letter; run in an environment that has it.

    python benchmarks/skactiveml_letter.py 64 [FOLDER]

The networks are annotmix's: an MLP 16 → 256 → 128 → 26, embeddings of 128, one hidden layer of 128 with
dropout 1/2, dense confusion matrices; RAdam. The first argument is the number of labels a batch. Prints the
fastest epoch.
"""

from __future__ import annotations

import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import letter_like
import numpy as np
import torch
from skactiveml.classifier.multiannotator import AnnotMixClassifier
from skorch.callbacks import Callback
from torch import nn

torch.set_num_threads(1)


class Network(nn.Module):
    """Logits and the embedding they are made of."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for n_in, n_out in ((letter_like.D, 256), (256, 128)):
            layers += [nn.Linear(n_in, n_out), nn.BatchNorm1d(n_out), nn.ReLU()]
        self.backbone, self.head = nn.Sequential(*layers), nn.Linear(128, letter_like.C)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.backbone(x)
        return self.head(h), h


class Clock(Callback):
    """CPU seconds of every epoch."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_epoch_begin(self, net, **kwargs) -> None:
        self.started = time.process_time()

    def on_epoch_end(self, net, **kwargs) -> None:
        self.seconds.append(time.process_time() - self.started)


def main() -> None:
    data = letter_like.load(sys.argv[2] if len(sys.argv) > 2 else None)
    Z = np.full((letter_like.N, letter_like.M), np.nan)
    Z[data.item, data.annotator] = data.label
    clock = Clock()
    clf = AnnotMixClassifier(
        Network,
        alpha=1.0,
        sample_embed_dim=128,
        annotator_embed_dim=128,
        hidden_dim=128,
        n_hidden_layers=1,
        hidden_dropout=0.5,
        classes=list(range(letter_like.C)),
        random_state=0,
        neural_net_param_dict={
            "max_epochs": 3,
            "lr": 1e-2,
            "optimizer": torch.optim.RAdam,
            "batch_size": int(sys.argv[1]),
            "iterator_train__shuffle": True,
            "verbose": 0,
            "callbacks": [("clock", clock)],
        },
    )
    clf.fit(data.X, Z)
    print(min(clock.seconds))


if __name__ == "__main__":
    main()
