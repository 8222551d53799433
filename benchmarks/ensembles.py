"""What averaging several annot-mix networks gives, beside one annot-mix-plus: clf-acc on test and seconds.

    python benchmarks/ensembles.py mgc labelme-vgg16 --data FOLDER --members 5 --seeds 5

An ensemble averages the class probabilities of networks that differ by their seed. Mean ± standard deviation
over seeds, last epoch; seconds of all members together as a multiple of one annot-mix in the same run.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import annotmix

torch.set_num_threads(1)


def fit(
    data: annotmix.datasets.Dataset, approach: str, seed: int, **params: object
) -> tuple[np.ndarray, float]:
    """Class probabilities of the test instances, and seconds."""
    clf = annotmix.make_classifier(
        approach, **{**data.settings, **params}, random_state=seed, progress=False, classes=data.classes
    )
    started = time.perf_counter()
    clf.fit(data.X, data.labels)
    return clf.predict_proba(data.X_test), time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--data", default=os.environ.get("ANNOTMIX_DATA"), help="default: ANNOTMIX_DATA")
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--alpha", type=float, default=0.4)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    print("| | one annot-mix | ensemble | annot-mix-plus |\n|---|---|---|---|")
    for name in args.datasets:
        data = annotmix.load_dataset(name, args.data)
        right: dict[str, list[float]] = {"one": [], "ensemble": [], "plus": []}
        seconds = dict.fromkeys(right, 0.0)
        for seed in range(args.seeds):
            members = [fit(data, "annot-mix", 1000 * seed + i, alpha=args.alpha) for i in range(args.members)]
            plus = fit(data, "annot-mix-plus", seed)
            mean = np.mean([p for p, _ in members], axis=0)
            for key, p in {"one": members[0][0], "ensemble": mean, "plus": plus[0]}.items():
                right[key].append(float(np.mean(data.classes[p.argmax(axis=1)] == data.y_test)))
            seconds["one"] += members[0][1]
            seconds["ensemble"] += sum(s for _, s in members)
            seconds["plus"] += plus[1]
        cells = [
            f"{100 * np.mean(right[key]):.1f} ± {100 * np.std(right[key], ddof=1):.1f} "
            f"({seconds[key] / seconds['one']:.1f}×)"
            for key in right
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
