"""What soft labels and confidences are worth, on simulated annotators who know when they are not sure.

    python benchmarks/soft_labels.py --seeds 5

600 instances of four blobs; two of eight annotators label each. Half of the time an annotator knows the
class. Else it guesses: between all four classes ("no idea") or between the right one and another ("two
left"). The same labels are given in three forms: hard (the guess), with a confidence (the guess, by its
chance of being right), soft (all classes that were left, equally). clf-acc on 2000 further instances, mean
over seeds.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

import annotmix

N, M, C, D = 600, 8, 4, 10
FORMS = ("hard", "confidence", "soft")


def instances(n, rng):
    y = rng.integers(C, size=n)
    return 1.2 * np.eye(C, D)[y] + rng.normal(size=(n, D)), y


def labels(y, doubt, rng):
    """The same labels in three forms, each of shape (N, M, C), nan where there is none."""
    knows = rng.random((N, M)) < 0.5
    left = np.ones((N, M, C), dtype=bool)
    if doubt == "two left":
        other = (y[:, None] + rng.integers(1, C, size=(N, M))) % C
        left = np.eye(C, dtype=bool)[other] | np.eye(C, dtype=bool)[y][:, None]
    left[knows] = np.eye(C, dtype=bool)[np.broadcast_to(y[:, None], (N, M))[knows]]
    guess = np.eye(C)[np.argmax(rng.random((N, M, C)) * left, axis=2)]
    soft = left / left.sum(axis=2, keepdims=True)
    asked = np.argsort(rng.random((N, M)), axis=1) < 2
    forms = (guess, guess / left.sum(axis=2, keepdims=True), soft)
    return {form: np.where(asked[..., None], P, np.nan) for form, P in zip(FORMS, forms, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument(
        "--approaches", nargs="+", default=["mv-base", "ds-mixup", "annot-mix", "annot-mix-plus"]
    )
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("| doubt | approach | " + " | ".join(FORMS) + " |\n|---|---|---|---|---|")
    for doubt in ("no idea", "two left"):
        for approach in asked.approaches:
            scores = {form: [] for form in FORMS}
            for seed in range(asked.seeds):
                rng = np.random.default_rng(seed)
                (X, y), (X_new, y_new) = instances(N, rng), instances(2000, rng)
                for form, P in labels(y, doubt, rng).items():
                    clf = annotmix.make_classifier(
                        approach, hidden=(64,), dropout=0.0, max_epochs=20, random_state=seed, progress=False
                    )
                    scores[form].append(clf.fit(X, P).score(X_new, y_new))
            figures = " | ".join(f"{100 * np.mean(s):.1f} ± {100 * np.std(s):.1f}" for s in scores.values())
            print(f"| {doubt} | {approach} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
