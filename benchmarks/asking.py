"""Accuracy against labels bought, for ways to say which item is labelled next, and by whom.

    python benchmarks/asking.py --seeds 10 --out docs/images/label-next.svg
    python benchmarks/asking.py --seeds 10 --strangers 6
    python benchmarks/asking.py --dataset letter --data FOLDER --seeds 3

A simulated crowd labels digits (or letter): an expert, good and mediocre annotators, specialists of half the
classes, one who swaps classes, spammers, a contrarian. All strategies start with as many random labels, buy
the same number a round, and learn with the same approach from scratch after every round:

- random: any item, any annotator;
- uncertain: the items of highest entropy, any annotator;
- three each: any items, three labels each of any annotators; mv-base learns from the same labels;
- suggest: `annotmix.suggest`.

With `--strangers 6`, half of the annotators have no label at the start, and `suggest` without credit for the
little known stands beside.

Scored are the classifier on test instances, and the consensus labels of all items of the pool, labelled or
not. Split, crowd and first labels are drawn anew for every seed, the same for all strategies (three each has
its own first labels). The strategy was worked out on the seeds 100 to 106.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import torch

import annotmix
from annotmix.datasets.simulation import confuser, hammer, simulate, spammer, specialist

torch.set_num_threads(1)
EACH = 3
SCORES = {"test": "classifier, test", "consensus": "consensus, pool"}


class Pool(NamedTuple):
    """Items to be labelled, what everybody would say about every one of them, and test instances."""

    X: np.ndarray
    y: np.ndarray
    said: np.ndarray  # (n, M)
    X_test: np.ndarray
    y_test: np.ndarray
    settings: dict[str, Any]


def crowd(C: int) -> dict[str, np.ndarray]:
    low, high = range(C // 2), range(C // 2, C)
    return {
        "expert": hammer(C, 0.97),
        "good-1": hammer(C, 0.85),
        "good-2": hammer(C, 0.8),
        "mediocre-1": hammer(C, 0.6),
        "mediocre-2": hammer(C, 0.5),
        "knows-low": specialist(C, low, 0.95, 0.2),
        "knows-high": specialist(C, high, 0.95, 0.2),
        "swaps-pairs": confuser(C, [(3, 8), (4, 9), (1, 7)], 0.7),
        "spammer-1": spammer(C),
        "spammer-2": spammer(C),
        "always-says-1": spammer(C, always=1),
        "contrarian": hammer(C, 0.04),
    }


def load(dataset: str, folder: str | None, seed: int) -> Pool:
    """The dataset, split anew by the seed, and a crowd drawn anew."""
    rng = np.random.default_rng([seed, 0])
    data = annotmix.load_dataset(dataset, folder, progress=False)
    X, y = np.concatenate([data.X, data.X_test]), np.concatenate([data.y, data.y_test])
    y = np.searchsorted(data.classes, y)
    order = rng.permutation(len(X))
    n_pool, n_test = {"digits": (1000, 697), "letter": (5000, 5000)}[dataset]
    pool, test = order[:n_pool], order[n_pool : n_pool + n_test]
    people = crowd(len(data.classes))
    said = simulate(y[pool], people, random_state=rng).label.reshape(n_pool, len(people))
    settings = {"hidden": (256, 128), "dropout": 0.5 if dataset == "digits" else 0.0}
    return Pool(X[pool], y[pool], said, X[test], y[test], settings)


# ---------------------------------------------------------------- strategies: pairs (item, annotator), (n, 2)


def at_random(model: Any, pool: Pool, Z: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    free = np.argwhere(Z < 0)
    return free[rng.choice(len(free), n, replace=False)]


def uncertain(model: Any, pool: Pool, Z: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    p = model.predict_proba(pool.X)
    entropy = -(p * np.log(np.maximum(p, 1e-12))).sum(axis=1)
    items = [i for i in np.argsort(-entropy) if (Z[i] < 0).any()][:n]
    return np.array([(i, rng.choice(np.flatnonzero(Z[i] < 0))) for i in items])


def three_each(model: Any, pool: Pool, Z: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Where an item was begun with the last labels of a round, it is finished first."""
    missing = np.maximum(EACH - (Z >= 0).sum(axis=1), 0)
    begun = np.flatnonzero((missing > 0) & (missing < EACH))
    fresh = rng.permutation(np.flatnonzero(missing == EACH))
    pairs = [
        (i, m)
        for i in np.concatenate([begun, fresh])
        for m in rng.choice(np.flatnonzero(Z[i] < 0), missing[i], replace=False)
    ]
    return np.array(pairs[:n])


def suggested(model: Any, pool: Pool, Z: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return annotmix.suggest(model, pool.X, Z, n)[["item", "annotator"]].to_numpy()


def without_credit(model: Any, pool: Pool, Z: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return annotmix.suggest(model, pool.X, Z, n, credit=0)[["item", "annotator"]].to_numpy()


Strategy = Callable[[Any, Pool, np.ndarray, int, np.random.Generator], np.ndarray]
STRATEGIES: dict[str, Strategy] = {
    "random": at_random,
    "uncertain": uncertain,
    "three each": three_each,
    "suggest": suggested,
    "suggest, credit=0": without_credit,
}
#: Lines of table and figure; the first is drawn in black.
NAMES = ("suggest", "uncertain", "random", "three each", "three each, mv-base", "suggest, credit=0")


# ---------------------------------------------------------------- the study


def start(strategy: str, pool: Pool, n: int, strangers: int, rng: np.random.Generator) -> np.ndarray:
    """The first labels: one each of `n` items, or three each of a third of them; none of some annotators."""
    Z = np.full_like(pool.said, -1)
    known = rng.permutation(Z.shape[1])[strangers:]
    if strategy == "three each":
        pairs = three_each(None, pool, Z[:, known], n, rng)
    else:
        items = rng.choice(len(Z), n, replace=False)
        pairs = np.column_stack([items, rng.integers(len(known), size=n)])
    pairs[:, 1] = known[pairs[:, 1]]
    return buy(Z, pool, pairs)


def buy(Z: np.ndarray, pool: Pool, pairs: np.ndarray) -> np.ndarray:
    Z = Z.copy()
    item, annotator = pairs.T.astype(int)
    Z[item, annotator] = pool.said[item, annotator]
    return Z


def fit(approach: str, pool: Pool, Z: np.ndarray, seed: int, epochs: int) -> Any:
    clf = annotmix.make_classifier(
        approach, **pool.settings, max_epochs=epochs, classes=range(pool.y.max() + 1), random_state=seed,
        progress=False,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*have no labels.*")
        return clf.fit(pool.X, Z)


def run(strategy: str, seed: int, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Scores after every round."""
    torch.set_num_threads(1)
    pool = load(args.dataset, args.data, seed)
    rng = np.random.default_rng([seed, 1])
    Z, rows = start(strategy, pool, args.start, args.strangers, rng), []
    for n in range(args.rounds + 1):
        model = fit(args.approach, pool, Z, seed, args.epochs)
        found = {
            "test": model.score(pool.X_test, pool.y_test),
            "consensus": float(np.mean(model.consensus(pool.X, Z)["label"].to_numpy() == pool.y)),
            "right": float(np.mean((pool.said == pool.y[:, None])[Z >= 0])),
        }
        known = {"seed": seed, "labels": int((Z >= 0).sum())}
        rows.append({"strategy": strategy, **known, **found})
        if strategy == "three each":
            plain = fit("mv-base", pool, Z, seed, args.epochs)
            vote = pd.Series(plain.predict(pool.X))
            vote.update(annotmix.majority_vote(annotmix.Annotations.from_matrix(Z, -1), random_state=seed))
            found |= {"test": plain.score(pool.X_test, pool.y_test), "consensus": np.mean(vote == pool.y)}
            rows.append({"strategy": "three each, mv-base", **known, **found})
        if n < args.rounds:
            Z = buy(Z, pool, STRATEGIES[strategy](model, pool, Z, args.labels, rng))
    return rows


def table(scores: pd.DataFrame, goal: float) -> str:
    """Markdown: mean ± standard deviation over seeds in percent, and labels until the mean reaches a goal."""
    counts = sorted(scores["labels"].unique())
    shown = [counts[i] for i in np.unique(np.linspace(0, len(counts) - 1, 5).round().astype(int))]
    lines = []
    for score, title in SCORES.items():
        last = f" labels for {100 * goal:g} % |"
        lines += [f"| {title}, labels: | " + " | ".join(map(str, shown)) + " |" + last]
        lines += ["|---|" + "---|" * (len(shown) + 1)]
        for strategy in ran(scores):
            of = scores[scores["strategy"] == strategy].groupby("labels")[score].agg(["mean", "std"])
            cells = [f"{100 * of['mean'][n]:.1f} ± {100 * of['std'].fillna(0)[n]:.1f}" for n in shown]
            lines += [f"| {strategy} | " + " | ".join(cells) + f" | {reached(of['mean'], goal)} |"]
        lines += [""]
    return "\n".join(lines)


def ran(scores: pd.DataFrame) -> list[str]:
    return [name for name in NAMES if (scores["strategy"] == name).any()]


def reached(mean: pd.Series, goal: float) -> str:
    """Labels at which a line between the points first reaches the goal."""
    above = np.flatnonzero(mean.to_numpy() >= goal)
    if not len(above):
        return f"> {mean.index[-1]}"
    if not (i := above[0]):
        return f"≤ {mean.index[0]}"
    (x0, x1), (y0, y1) = mean.index[i - 1 : i + 1], mean.iloc[i - 1 : i + 1]
    return f"{x0 + (goal - y0) / (y1 - y0) * (x1 - x0):.0f}"


def draw(scores: pd.DataFrame, path: Path) -> None:
    """Two panels, a line a strategy, bands of one standard deviation over the seeds."""
    from annotmix.bench import figures

    plt = figures._plt()
    with figures._style():
        figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.6), sharey=True, layout="constrained")
        for axes, (score, title) in zip(panels, SCORES.items(), strict=True):
            for number, strategy in enumerate(ran(scores)):
                of = scores[scores["strategy"] == strategy].groupby("labels")[score].agg(["mean", "std"])
                mean, std = 100 * of["mean"], 100 * of["std"].fillna(0)
                line = figures._line(number)
                axes.plot(mean.index, mean, label=strategy, **line)
                axes.fill_between(
                    mean.index, mean - std, mean + std, color=line["color"], alpha=0.15, linewidth=0
                )
            axes.set_title(title)
            axes.set_xlabel("labels bought")
        panels[0].set_ylabel("right [%]")
        figures._legend_below(figure, panels[0], 3)
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"Date": None, "Creator": None} if path.suffix == ".svg" else {"Software": None}
        figure.savefig(path, metadata=metadata, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=os.environ.get("ANNOTMIX_DATA"), help="default: ANNOTMIX_DATA")
    parser.add_argument("--dataset", choices=["digits", "letter"], default="digits")
    parser.add_argument("--approach", default="annot-mix")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--start", type=int, help="first labels; default: 200 (digits), 1000 (letter)")
    parser.add_argument("--strangers", type=int, default=0, help="annotators without a label at the start")
    parser.add_argument("--labels", type=int, help="labels a round; default: 150 (digits), 1000 (letter)")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--goal", type=float, default=0.9)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, help="figure, .svg or .png")
    args = parser.parse_args()
    args.start = args.start or {"digits": 200, "letter": 1000}[args.dataset]
    args.labels = args.labels or {"digits": 150, "letter": 1000}[args.dataset]
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    strategies = [name for name in STRATEGIES if args.strangers or name != "suggest, credit=0"]
    started = time.perf_counter()
    with ProcessPoolExecutor(args.workers) as pool:
        jobs = [pool.submit(run, strategy, seed, args) for seed in seeds for strategy in strategies]
        scores = pd.DataFrame([row for job in jobs for row in job.result()])
    minutes = (time.perf_counter() - started) / 60
    print(f"{args.dataset}, {args.approach}, seeds {seeds[0]} to {seeds[-1]}, {minutes:.1f} minutes\n")
    print(table(scores, args.goal))
    right = 100 * scores[scores["labels"] == scores["labels"].max()].groupby("strategy")["right"].mean()
    print("Labels bought that are right: " + ", ".join(f"{name} {right[name]:.0f} %" for name in strategies))
    if args.out:
        draw(scores, args.out)


if __name__ == "__main__":
    main()
