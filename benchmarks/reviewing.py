"""What reviews buy: accuracy of the consensus against the number of reviewed items, by their order.

The true labels play the reviewer. Reviewed items become gold, and the run learns again. Beside it, how good
the estimates of the labels that are still wrong are.

    python benchmarks/reviewing.py --data FOLDER       writes docs/results/reviewing.md and its figure
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import annotmix
from annotmix.review.estimate import progress
from annotmix.review.orders import ordered
from annotmix.runs.result_tables import item_table, label_table

DOCS = Path(__file__).parents[1] / "docs"
SETS, SEEDS = ("mgc", "labelme-vgg16"), 3
REVIEWS = (0, 25, 50, 100, 200)
ORDERS = {"useful": "most useful first", "doubtful": "most doubtful first", "sample": "at random"}


def fitted(X: np.ndarray, labels: annotmix.Annotations, gold: dict, seed: int) -> annotmix.Posterior:
    """The posterior of a run with logistic regression, which takes seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = annotmix.CrowdClassifier("logistic", random_state=seed, progress=False)
        return model.fit(X, labels, items=labels.items, gold=gold or None).posterior_


def measure(name: str, seed: int, data: Path) -> list[dict]:
    """One row per order and number of reviews."""
    made = annotmix.load_dataset(name, data, progress=False)
    labels = made.labels
    truth = pd.Series(made.y, index=labels.items)
    start, rows = fitted(made.X, labels, {}, seed), []
    items, labels_found = item_table(start, start.answer.q), label_table(start)
    for order in ORDERS:
        places, drawn = ordered(order, items, labels_found)
        for n in REVIEWS:
            reviewed = items.index[places[:n]]
            gold = truth[reviewed].to_dict()
            found = start if not n else fitted(made.X, labels, gold, seed)
            wrong, seen = items["label"] != truth, items.index.isin(reviewed)
            left = progress(items, gold, items.index[places[:n][drawn[:n]]]).left
            rows.append(
                {
                    "set": name,
                    "seed": seed,
                    "order": order,
                    "reviews": n,
                    "learnt again": float((found.consensus["label"] == truth).mean()),
                    "corrected only": float((~wrong | seen).mean()),
                    "left": float(wrong[~seen].mean()),
                    "estimate": left.share,
                    "low": left.low,
                    "high": left.high,
                }
            )
    return rows


def table(rows: pd.DataFrame) -> str:
    """Accuracy of the consensus by set, order and reviews, in Markdown."""
    lines = ["| set | order | " + " | ".join(f"{n} reviews" for n in REVIEWS) + " |"]
    lines.append("|---|---|" + "---:|" * len(REVIEWS))
    for (name, order), own in rows.groupby(["set", "order"], sort=False):
        cells = []
        for n in REVIEWS:
            at = own[own["reviews"] == n]
            again, only = (100 * at[column].mean() for column in ("learnt again", "corrected only"))
            cells.append(f"{again:.1f} ({only:.1f})")
        lines.append(f"| {name} | {ORDERS[order]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def estimates(rows: pd.DataFrame) -> str:
    """How good the estimates of the wrong labels that are left are, in Markdown."""
    lines = ["| set | order | reviews | wrong labels left | estimate | interval holds it |"]
    lines.append("|---|---|---:|---:|---:|---:|")
    for (name, order, n), own in rows.groupby(["set", "order", "reviews"], sort=False):
        held = ((own["low"] <= own["left"]) & (own["left"] <= own["high"])).sum()
        lines.append(
            f"| {name} | {ORDERS[order]} | {n} | {100 * own['left'].mean():.1f} % | "
            f"{100 * own['estimate'].mean():.1f} % | {held} of {len(own)} |"
        )
    return "\n".join(lines)


def draw(rows: pd.DataFrame, path: Path) -> None:
    """Accuracy against reviews, one panel per set."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(SETS), figsize=(9, 3.4), layout="constrained")
    for axis, name in zip(axes, SETS, strict=True):
        for order, words in ORDERS.items():
            own = rows[(rows["set"] == name) & (rows["order"] == order)].groupby("reviews")["learnt again"]
            axis.plot(own.mean().index, 100 * own.mean(), marker="o", label=words)
        axis.set(title=name, xlabel="reviewed items", ylabel="consensus right, %")
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure what is not in the file of results yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--results", type=Path, default=Path("build/reviewing.jsonl"))
    arguments = parser.parse_args()
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    arguments.results.touch()
    rows = [json.loads(line) for line in arguments.results.read_text(encoding="utf-8").splitlines()]
    done = {(row["set"], row["seed"]) for row in rows}
    for name in SETS:
        for seed in range(SEEDS):
            if (name, seed) not in done:
                new = measure(name, seed, arguments.data)
                rows += new
                with arguments.results.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(row) + "\n" for row in new)
    found = pd.DataFrame(rows)
    draw(found, DOCS / "images" / "reviewing.svg")
    page = DOCS / "results" / "reviewing.md"
    text = page.read_text(encoding="utf-8")
    for mark, content in (("accuracy", table(found)), ("estimates", estimates(found))):
        start, end = (f"<!-- {mark}: benchmarks/reviewing.py -->", f"<!-- end of {mark} -->")
        before, rest = text.split(start)
        text = f"{before}{start}\n{content}\n{end}{rest.split(end)[1]}"
    page.write_text(text, encoding="utf-8")
    print(table(found), estimates(found), sep="\n\n")


if __name__ == "__main__":
    main()
