"""Do confidences as weights help, and does calibrating them per annotator? Simulated models, known truth.

    python benchmarks/confidences.py --seeds 5

Seven models label 600 items of four classes; how hard an item is decides how often all of them are right. A
model's confidence is the chance that its label is right ("honest"), that chance pulled towards 1
("overconfident"), or has nothing to do with it ("noise"). A label counts with its confidence to the power of
γ: 0 ignores it, 1 takes it as it is, and "learnt" chooses γ for every model among 0, 0.5, 1 and 2, one model
after the other, by the mean log-likelihood of a label given the others of its item. Scored is the consensus.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd

from annotmix import Annotations
from annotmix.labels.evidence import Evidence

N_ITEMS, N_CLASSES, N_MODELS = 600, 4, 7
EXPONENTS = (0.0, 0.5, 1.0, 2.0)


def crowd(confidence: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True classes (N,), labels (N, M) and their confidences (N, M)."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(N_CLASSES, size=N_ITEMS)
    skill = rng.normal(0.3, 0.7, size=N_MODELS)
    logit = rng.normal(0, 1.5, size=(N_ITEMS, 1)) + skill + rng.normal(0, 1, size=(N_ITEMS, N_MODELS))
    right = 1 / N_CLASSES + (1 - 1 / N_CLASSES) / (1 + np.exp(-logit))
    wrong = (truth[:, None] + rng.integers(1, N_CLASSES, size=right.shape)) % N_CLASSES
    labels = np.where(rng.random(right.shape) < right, truth[:, None], wrong)
    kinds = {"honest": right, "overconfident": right**0.2, "noise": rng.uniform(0.25, 1, size=right.shape)}
    if confidence != "mixed":
        return truth, labels, kinds[confidence]
    kind = np.arange(N_MODELS) % 3
    return truth, labels, np.choose(kind, list(kinds.values()))


def judged(labels: np.ndarray, weight: np.ndarray, gamma: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean log-likelihood of a label given the others of its item, and the consensus (N,)."""
    item, model = np.divmod(np.arange(labels.size), N_MODELS)
    table = pd.DataFrame({"item": item, "annotator": model, "label": labels.reshape(-1)})
    table["weight"] = (weight**gamma).reshape(-1)
    evidence = Evidence(Annotations.from_long(table, classes=range(N_CLASSES)))
    answer = evidence.combine(None)
    likelihood: Any = evidence.likelihood(None, answer.weights)
    return float(likelihood.mean()), answer.q.argmax(axis=1)


def learnt(labels: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """γ of every model by the likelihood, and the consensus with them."""
    best, consensus = judged(labels, weight, np.zeros(N_MODELS))
    gamma = np.zeros(N_MODELS)
    for m in range(N_MODELS):
        for value in EXPONENTS[1:]:
            trial = gamma.copy()
            trial[m] = value
            found, new = judged(labels, weight, trial)
            if found > best:
                best, gamma, consensus = found, trial, new
    return gamma, consensus


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--fixed", action="store_true", help="leave out the slow column learnt")
    args = parser.parse_args()
    seeds = range(args.seeds)
    heads = [*(f"γ = {value:g}" for value in EXPONENTS), *([] if args.fixed else ["learnt"])]
    print(f"| confidences | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for confidence in ("honest", "overconfident", "noise", "mixed"):
        rows = []
        for seed in seeds:
            truth, labels, weight = crowd(confidence, seed)
            found = [judged(labels, weight, np.full(N_MODELS, value))[1] for value in EXPONENTS]
            if not args.fixed:
                found.append(learnt(labels, weight)[1])
            rows.append([100 * float((own == truth).mean()) for own in found])
        print(f"| {confidence} | {' | '.join(f'{x:.1f}' for x in np.mean(rows, axis=0))} |", flush=True)


if __name__ == "__main__":
    main()
