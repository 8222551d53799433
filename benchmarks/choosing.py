"""Choosing by noisy labels that are held out, against choosing by a few clean ones: clf-acc on test.

    python benchmarks/choosing.py --data FOLDER --datasets mgc labelme-vgg16 letter --seeds 5

Every candidate is trained on nine tenths of the labels, held out by item or by label (`--by`), and scored
after every epoch: label-ll of the labels held out, accuracy on 100 clean items of the validation set (a fresh
draw a seed), accuracy on test. Then the same choice is made by each judge:

    epoch       of annot-mix as published (α = 1)
    alpha       of annot-mix, last epoch
    both        of annot-mix, α and epoch
    plus        folds and α of annot-mix-plus, last epoch
    approach    annot-mix or annot-mix-plus as they come, last epoch

"oracle" chooses by the test set itself, "default" does not choose: α = 1, last epoch; annot-mix-plus as it
comes. Means over seeds, percent; letter has one seed unless --letter-seeds says otherwise.
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import torch

import annotmix
from annotmix.datasets import load_dataset

torch.set_num_threads(1)
ALPHAS = (0, 0.2, 0.4, 1, 2, 4)
MIX = [("annot-mix", {"alpha": alpha}) for alpha in ALPHAS]
PLUS = [
    ("annot-mix-plus", {"folds": folds, "alpha": alpha})
    for folds, alpha in itertools.product((0, 5), (0, 0.4))
]
#: Choice: its candidates, whether the epoch is chosen too, and what is taken without choosing.
CHOICES = {
    "epoch": ([("annot-mix", {"alpha": 1})], True, ("annot-mix", {"alpha": 1})),
    "alpha": (MIX, False, ("annot-mix", {"alpha": 1})),
    "both": (MIX, True, ("annot-mix", {"alpha": 1})),
    "plus": (PLUS, False, PLUS[-1]),
    "approach": ([("annot-mix", {"alpha": 1}), PLUS[-1]], False, PLUS[-1]),
}
JUDGES = {"held-out labels": "valid/label-ll", "clean labels": "clean/clf-acc", "oracle": "test/clf-acc"}


def run(
    folder: str, dataset: str, approach: str, params: dict, seed: int, by: str, clean: int
) -> pd.DataFrame:
    """The scores after every epoch."""
    published = {"published": True} if dataset == "letter" else {}
    data = load_dataset(dataset, folder, **published, progress=False)
    rng = np.random.default_rng([seed, 1])
    few = rng.permutation(len(data.y_valid))[:clean]
    kept, held = annotmix.hold_out(data.labels, 0.1, by=by, rng=rng)
    clf = annotmix.make_classifier(
        approach, **{**data.settings, **params}, classes=data.classes, random_state=seed, progress=False
    )
    monitor = {"clean": (data.X_valid[few], data.y_valid[few]), "test": (data.X_test, data.y_test)}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*items have no labels.*")
        clf.fit(data.X, kept, validation=(data.X, None, held), monitor=monitor)
    return clf.history_[list(JUDGES.values())]


def choose(histories: list[pd.DataFrame], judge: str, epochs: bool) -> float:
    """clf-acc on test of the candidate and the epoch that the judge likes best."""
    every = pd.concat([history if epochs else history.tail(1) for history in histories], ignore_index=True)
    return float(every["test/clf-acc"].iloc[every[judge].argmax()])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=os.environ.get("ANNOTMIX_DATA"), help="default: ANNOTMIX_DATA")
    parser.add_argument("--datasets", nargs="+", default=["mgc", "labelme-vgg16"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--letter-seeds", type=int, default=1)
    parser.add_argument("--by", choices=["item", "label"], default="item")
    parser.add_argument("--clean", type=int, default=100)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    args = parser.parse_args()
    print("| | choice | default | " + " | ".join(JUDGES) + " |\n|---|---|---|" + "---|" * len(JUDGES))
    with ProcessPoolExecutor(args.workers) as pool:
        for dataset in args.datasets:
            seeds = range(args.letter_seeds if dataset == "letter" else args.seeds)
            jobs = {
                (number, seed): pool.submit(run, args.data, dataset, *candidate, seed, args.by, args.clean)
                for number, candidate in enumerate([*MIX, *PLUS])
                for seed in seeds
            }
            found = {key: job.result() for key, job in jobs.items()}
            for choice, (candidates, epochs, default) in CHOICES.items():
                numbers = [[*MIX, *PLUS].index(candidate) for candidate in candidates]
                plain = [found[[*MIX, *PLUS].index(default), seed]["test/clf-acc"].iloc[-1] for seed in seeds]
                chosen = [
                    [choose([found[n, seed] for n in numbers], judge, epochs) for seed in seeds]
                    for judge in JUDGES.values()
                ]
                cells = " | ".join(f"{100 * np.mean(values):.1f}" for values in [plain, *chosen])
                print(f"| {dataset} | {choice} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
