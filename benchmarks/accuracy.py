"""Accuracy of approaches on real crowd labels under the paper's protocol: mean ± std over seeds, last epoch.

    python benchmarks/accuracy.py mgc --data FOLDER
    python benchmarks/accuracy.py mgc --data FOLDER --approaches annot-mix annot-mix:alpha=0

By default all approaches of the paper, those with published=True twice, beside the paper's row and that of
the paper's published code. Parameters of an approach follow its name: `annot-mix:alpha=0.4,eta=0.8`.
true-base trains on the true classes. Runs go to as many processes as there are cores, one thread each.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from data import LOADERS, data_folder
from reference import PAPER, PUBLISHED_CODE

import annotmix

torch.set_num_threads(1)
SCORES = [
    "last/clf-acc",
    "best/clf-acc",
    "last/perf-auroc",
    "train/annot-acc",
    "train/perf-auroc",
    "train/consensus",
    "seconds",
]


def parse(spec: str) -> tuple[str, dict]:
    name, _, rest = spec.partition(":")
    pairs = (item.split("=", 1) for item in rest.split(",") if item)
    return name, {key: _value(value) for key, value in pairs}


def _value(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def run(dataset: str, folder: str, spec: str, seed: int) -> dict:
    data = LOADERS[dataset](data_folder(folder))
    name, params = parse(spec)
    clf = annotmix.make_classifier(name, **{**data.settings, **params}, random_state=seed, progress=False)
    labels = data.y if name == "true-base" else data.labels
    started = time.perf_counter()
    clf.fit(data.X, labels, validation=(data.X_valid, data.y_valid))
    seconds = time.perf_counter() - started
    result = {"spec": spec, "seed": seed, "seconds": seconds}
    knows_annotators = clf._approach.perf is not None
    test_labels = data.test_labels if knows_annotators else None
    result |= {f"last/{k}": v for k, v in clf.evaluate(data.X_test, data.y_test, test_labels).items()}
    if knows_annotators:
        train = clf.evaluate(data.X, data.y, data.labels)
        result |= {f"train/{k}": v for k, v in train.items()}
        consensus = clf.consensus(data.X, data.labels)["label"].to_numpy()
        result["train/consensus"] = float(np.mean(consensus == data.y))
    clf.use("best")
    result |= {f"best/{k}": v for k, v in clf.evaluate(data.X_test, data.y_test).items()}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=sorted(LOADERS))
    parser.add_argument("--data", help="folder with the datasets; default: ANNOTMIX_DATA")
    parser.add_argument("--approaches", nargs="+", default=everything())
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--json", help="also write every run to this file")
    args = parser.parse_args()
    folder = str(data_folder(args.data))
    jobs = [(args.dataset, folder, spec, seed) for spec in args.approaches for seed in range(args.seeds)]
    LOADERS[args.dataset](data_folder(args.data))  # what is cached (features, simulated labels) is made once
    with ProcessPoolExecutor(args.workers) as pool:
        results = list(pool.map(run, *zip(*jobs, strict=True)))
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)
    print(f"{args.dataset}, {args.seeds} seeds, mean ± std")
    print("| approach | " + " | ".join(["paper", "published code", *SCORES]) + " |")
    print("|---|" + "---|" * (len(SCORES) + 2))
    for spec in args.approaches:
        name = spec.partition(":")[0]
        others = [cell(table.get(args.dataset, {}).get(name)) for table in (PAPER, PUBLISHED_CODE)]
        ours = [summary([r for r in results if r["spec"] == spec], key) for key in SCORES]
        print(f"| {spec} | " + " | ".join(others + ours) + " |")


def everything() -> list[str]:
    """All approaches of the paper, and those with a published variant twice."""
    names = list(PAPER["mgc"])
    published = [n for n in names if "published" in annotmix.get_approach(n).hyper_parameters()]
    return [*names, *(f"{name}:published=True" for name in published), "annot-mix:alpha=0"]


def cell(figure: tuple[float, float] | None) -> str:
    return "–" if figure is None else f"{figure[0]:.1f} ± {figure[1]:.1f}"


def summary(results: list[dict], key: str) -> str:
    values = [r[key] * (1 if key == "seconds" else 100) for r in results if key in r]
    return cell((np.mean(values), np.std(values, ddof=1)) if len(values) > 1 else None)


if __name__ == "__main__":
    main()
