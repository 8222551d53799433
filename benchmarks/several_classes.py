"""Sets of classes found on simulated crowds: a vote by class, classes judged alone, and annotators shared.

python benchmarks/several_classes.py
"""

from __future__ import annotations

import numpy as np

from annotmix import LabelSets, posterior
from annotmix.labels.metrics import set_scores
from annotmix.labels.set_posterior import vote_by_class

#: Items, annotators, classes and answers per item.
CROWDS = ((300, 12, 5, 4), (300, 40, 8, 3), (150, 15, 12, 3), (600, 20, 6, 5))
SEEDS = 4


def crowd(n_items: int, n_annotators: int, n_classes: int, per_item: int, seed: int):
    """True sets, shape (N, C), and answers: annotators differ in what they find and what they invent."""
    rng = np.random.default_rng(seed)
    true = rng.random((n_items, n_classes)) < rng.uniform(0.1, 0.5, n_classes)
    size = (n_annotators, n_classes)
    found = rng.uniform(0.4, 0.95, (n_annotators, 1)) + rng.normal(0, 0.08, size)
    left = rng.uniform(0.75, 0.99, (n_annotators, 1)) + rng.normal(0, 0.04, size)
    found, left = np.clip(found, 0.05, 0.99), np.clip(left, 0.05, 0.99)
    Z = np.full((n_items, *size), np.nan)
    for n in range(n_items):
        who = rng.permutation(n_annotators)[:per_item]
        Z[n, who] = rng.random((per_item, n_classes)) < np.where(true[n], found[who], 1 - left[who])
    return true, LabelSets.from_array(Z)


def main() -> None:
    """Print the mean scores of every method on every crowd."""
    for shape in CROWDS:
        scores: dict[str, list[dict[str, float]]] = {"vote by class": [], "alone": [], "shared": []}
        for seed in range(SEEDS):
            true, sets = crowd(*shape, seed)
            alone = [posterior(sets.binary(name)).answer.q[:, 1] for name in sets.classes.tolist()]
            found = {
                "vote by class": vote_by_class(sets),
                "alone": np.stack(alone, axis=1) >= 0.5,
                "shared": posterior(sets).members,
            }
            for name, members in found.items():
                scores[name].append(set_scores(true, members))
        print("items {}, annotators {}, classes {}, answers per item {}".format(*shape))
        for name, own in scores.items():
            means = {key: np.mean([one[key] for one in own]) for key in own[0]}
            print(f"  {name:<14}", "  ".join(f"{key} {value:.3f}" for key, value in means.items()))


if __name__ == "__main__":
    main()
