"""How well soft labels describe a crowd, where there is one right class per item and where there is not.

Every fifth label of items with several is held out and predicted by the votes, by the posterior of the right
class, and by soft labels: the mean log-likelihood counts. On simulated crowds the distance to the true
distribution is measured too, and how often several truths are claimed.

    python benchmarks/no_single_truth.py --data FOLDER     writes the tables of docs/no-single-truth.md
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import annotmix
from annotmix.labels.posterior import Posterior

PAGE = Path(__file__).parents[1] / "docs" / "no-single-truth.md"
N, C, M, SEEDS = 400, 3, 20, 10
KINDS = {
    "one right class, equal annotators": 0.0,
    "one right class, annotators with errors of their own": 0.0,
    "opinions, mostly shared": 0.1,
    "opinions, divided": 0.5,
}


def simulate(kind: str, per_item: int, seed: int) -> tuple[annotmix.Annotations, np.ndarray]:
    """Labels, and the distribution of the labels of every item."""
    rng, concentration = np.random.default_rng(seed), KINDS[kind]
    opinions = np.eye(C)[rng.integers(C, size=N)]
    if concentration:
        opinions = rng.dirichlet([concentration] * C, size=N)
    accuracy = rng.uniform(0.5, 1.0, size=M) if "of their own" in kind else np.full(M, 0.85)
    habits = rng.dirichlet([0.5] * C, size=(M, C)) if "of their own" in kind else np.full((M, C, C), 1 / C)
    confusion = accuracy[:, None, None] * np.eye(C) + (1 - accuracy)[:, None, None] * habits
    labels = np.full((N, M), -1)
    for n in range(N):
        for m in rng.permutation(M)[:per_item]:
            labels[n, m] = rng.choice(C, p=opinions[n] @ confusion[m])
    return annotmix.Annotations.from_matrix(labels), opinions @ confusion.mean(axis=0)


def described(result: Posterior) -> dict[str, np.ndarray]:
    """Three answers to the question what the next label is, shape (N, C) each."""
    a = result.annotations
    votes = np.full((a.n_items, a.n_classes), 0.5)  # half a vote for every class, so that none is impossible
    np.add.at(votes, (a.item, a.label), 1.0)
    votes /= votes.sum(axis=1, keepdims=True)
    return {"votes": votes, "posterior": result.answer.q, "soft labels": result.soft_labels().values}


def held_out(a: annotmix.Annotations) -> tuple[dict[str, float], float]:
    """Mean log-likelihood of held-out labels, by what predicts them; and the rise by votes."""
    several = a.labels_per_item[a.item] > 1
    held = several & (np.random.default_rng(0).random(len(a)) < 0.2)
    result = annotmix.posterior(a.keep(~held))
    item, label = a.item[held], a.label[held]
    scores = {
        name: float(np.log(np.clip(q[item, label], 1e-3, 1)).mean()) for name, q in described(result).items()
    }
    return scores, annotmix.posterior(a).soft_labels().rise


def simulated() -> Iterator[list[str]]:
    """Rows of the first table."""
    for kind in KINDS:
        for per_item in (3, 7):
            distances, claims = [], 0
            for seed in range(SEEDS):
                a, given = simulate(kind, per_item, seed)
                result = annotmix.posterior(a)
                claims += result.soft_labels().several_truths
                distances.append(
                    {k: np.abs(q - given).sum(1).mean() / 2 for k, q in described(result).items()}
                )
            mean = pd.DataFrame(distances).mean()
            yield [kind, str(per_item), *(f"{mean[name]:.3f}" for name in mean.index), f"{claims} of {SEEDS}"]


def real(data: Path) -> Iterator[list[str]]:
    """Rows of the second table."""
    babe = pd.read_csv(data / "babe_llm" / "labels_zero-shot.csv")
    sets = {
        "mgc": annotmix.load_dataset("mgc", data).labels,
        "labelme": annotmix.load_dataset("labelme", data).labels,
        "babe_llm, zero-shot": annotmix.Annotations.from_long(babe[babe["label"] != "?"]),
    }
    for name, a in sets.items():
        scores, rise = held_out(a)
        yield [name, *(f"{value:.3f}" for value in scores.values()), f"{rise:.1f}"]


def table(head: list[str], rows: Iterator[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    names = ["votes", "posterior", "soft labels"]
    tables = {
        "simulated": table(["crowd", "labels per item", *names, "several truths claimed"], simulated()),
        "real": table(["set", *names, "rise by votes, standard errors"], real(data)),
    }
    text = PAGE.read_text(encoding="utf-8")
    for name, content in tables.items():
        pattern = rf"(<!-- {name}: [^\n]*-->\n).*?(\n<!-- end -->)"
        text = re.sub(pattern, lambda match, new=content: match[1] + new + match[2], text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")
    print("\n\n".join(tables.values()))


if __name__ == "__main__":
    main()
