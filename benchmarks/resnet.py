"""annot-mix with a ResNet-18 from scratch on a part of cifar10h, for a few epochs: does it learn, how fast?

    python benchmarks/resnet.py --data FOLDER [--images 2000] [--epochs 3]

FOLDER holds cifar10h/cifar10h-raw.zip and cifar10/cifar-10-batches-py. One thread.
"""

from __future__ import annotations

import argparse
import math
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import annotmix
from annotmix.labels.annotations import Annotations

torch.set_num_threads(1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder with the datasets; default: ANNOTMIX_DATA")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    data = annotmix.load_dataset("cifar10h", args.data)
    labels = data.labels
    kept = labels.item < args.images
    part = Annotations(
        labels.item[kept],
        labels.annotator[kept],
        labels.label[kept],
        labels.items[: args.images],
        labels.annotators,
        labels.classes,
    )
    print(part.summary().to_string())
    settings = data.settings | {"max_epochs": args.epochs}
    clf = annotmix.make_classifier("annot-mix", **settings, random_state=0)
    clf.fit(data.X[: args.images], part)
    steps = math.ceil(args.images / settings["batch_size"])
    print((clf.history_[["loss", "seconds"]]).round(3).to_string())
    print(f"{clf.history_['seconds'].mean() / steps:.2f} s a step of {settings['batch_size']} images")
    test = np.random.default_rng(0).choice(len(data.y_test), 1000, replace=False)
    print(clf.evaluate(data.X_test[test], data.y_test[test]))


if __name__ == "__main__":
    main()
