"""What knowing annotators by more than a number buys: people in groups, with few labels each, on digits.

    python benchmarks/annotator_features.py --seeds 5

Experts, novices and two kinds of specialists label the digits; of each the group and a noisy number, years of
experience, are known. 60 people label for training, 20 others are never seen there. Mean ± standard deviation
over seeds (people, labels and training), in percent: accuracy of the classifier on the test set; how well
p_perf tells right labels from false ones on the test set (perf-auroc), of people who were seen and of those
who were not; and how well a person's mean p_perf ranks the people (Spearman's ρ with their true accuracy).
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import annotmix
from annotmix.datasets.simulation import hammer, simulate

torch.set_num_threads(1)

GROUPS = ("expert", "novice", "knows 0 to 4", "knows 5 to 9")
#: What the model gets: name, whether it gets features, parameters.
VARIANTS = {
    "identity": (False, {}),
    "features": (True, {"annotator_identity": False}),
    "both": (True, {}),
}


def people(count: int, rng: np.random.Generator) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """What is known about `count` people, and their confusion matrices."""
    group = rng.choice(GROUPS, size=count, p=[0.25, 0.35, 0.2, 0.2])
    names = [f"p{number:03d}" for number in range(count)]
    skill = np.empty((count, 10))
    for row, own in zip(skill, group, strict=True):
        row[:] = {"expert": 0.92, "novice": 0.4}.get(own, 0.2)
        if own.startswith("knows"):
            row[slice(0, 5) if own == GROUPS[2] else slice(5, 10)] = 0.9
    skill = (skill + rng.normal(0, 0.05, (count, 1))).clip(0.1, 0.98)
    years = np.log1p(10 * skill.mean(axis=1)) + rng.normal(0, 0.3, count)
    table = pd.DataFrame({"group": group, "years": years}, index=names)
    table.loc[rng.random(count) < 0.1, "years"] = np.nan
    table.loc[rng.random(count) < 0.1, "group"] = None
    return table, {name: hammer(10, own) for name, own in zip(names, skill, strict=True)}


def problem(data: annotmix.datasets.Dataset, n_seen: int, n_new: int, per_person: tuple[int, int], seed: int):
    """Table of all people, sparse training labels of the first, and what all say about the test set."""
    rng = np.random.default_rng(seed)
    table, confusion = people(n_seen + n_new, rng)
    train, test = (simulate(y, confusion, random_state=rng).to_matrix() for y in (data.y, data.y_test))
    train = train.iloc[:, :n_seen].copy()
    for name in train:
        keep = rng.permutation(len(train))[: rng.integers(per_person[0], per_person[1] + 1)]
        train[name] = np.where(np.isin(np.arange(len(train)), keep), train[name], -1)
    return table, train, test


def scores(perf: np.ndarray, said: pd.DataFrame, truth: np.ndarray) -> tuple[float, float]:
    """perf-auroc over all pairs, and Spearman's ρ of people's means."""
    right = said.to_numpy() == truth[:, None]
    rank = spearmanr(perf.mean(axis=0), right.mean(axis=0)).statistic if np.ptp(perf.mean(axis=0)) else 0.0
    return float(roc_auc_score(right.ravel(), perf.ravel())), float(rank)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--people", type=int, default=60, help="in training; a third as many are not")
    parser.add_argument("--labels", type=int, nargs=2, default=(10, 20), help="least and most a person")
    parser.add_argument("--epochs", type=int, default=50)
    args = parser.parse_args()
    data, n_seen = annotmix.load_dataset("digits"), args.people
    found: dict[str, list[list[float]]] = {}
    started = time.perf_counter()
    for seed in range(args.seeds):
        table, train, test = problem(data, n_seen, n_seen // 3, tuple(args.labels), seed)
        seen, new = table.iloc[:n_seen], table.iloc[n_seen:]
        for name, (describe, params) in VARIANTS.items():
            settings = {**data.settings, "max_epochs": args.epochs, "random_state": seed, "progress": False}
            clf = annotmix.AnnotMixClassifier(**settings, **params, classes=data.classes)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # items that nobody labelled
                clf.fit(data.X, train, annotator_features=seen if describe else None)
            row = [clf.score(data.X_test, data.y_test)]
            row += scores(clf.predict_annotator_perf(data.X_test).to_numpy(), test[seen.index], data.y_test)
            perf = clf.predict_annotator_perf(
                data.X_test, new.index, annotator_features=new if describe else None, unseen="population"
            )
            row += scores(perf.to_numpy(), test[new.index], data.y_test)
            found.setdefault(name, []).append(row)
    heads = ("clf-acc", "perf-auroc, seen", "rank of people, seen", "perf-auroc, not seen", "rank, not seen")
    print("| annotators known by | " + " | ".join(heads) + " |\n|---|" + "---|" * len(heads))
    for name, rows in found.items():
        mean, std = 100 * np.mean(rows, axis=0), 100 * np.std(rows, axis=0, ddof=min(1, len(rows) - 1))
        cells = [f"{m:.1f} ± {s:.1f}" for m, s in zip(mean, std, strict=True)]
        print(f"| {name} | " + " | ".join(cells) + " |")
    print(f"\n{args.seeds} seeds, {time.perf_counter() - started:.0f} s.")


if __name__ == "__main__":
    main()
