"""The figures of the paper's tables, to stand beside ours."""

from __future__ import annotations

from importlib import resources

import pandas as pd

#: File and name of the score in it; the ablation's variants are names beside those of the approaches.
_TABLES = {
    "clf-acc": (("table3_clf_acc.csv", "approach"), ("table2_ablation.csv", "variant")),
    "perf-auroc": (("table4_perf_auroc.csv", "approach"),),
}

#: Mean and std by (approach or variant, dataset).
PaperScores = dict[tuple[str, str], tuple[float, float]]


def paper_figures(score: str, epoch: str) -> PaperScores:
    """Mean and std in percent by (approach or variant, dataset), as the paper has them."""
    score = {"test/clf-acc": "clf-acc", "test/perf-auroc": "perf-auroc"}.get(score, score)
    scores: PaperScores = {}
    for file, name in _TABLES.get(score, ()):
        with (resources.files(__name__) / file).open(encoding="utf-8") as opened:
            table = pd.read_csv(opened)
        table = table[table["epoch"] == epoch]
        column = score.replace("-", "_")
        figures = zip(table[f"{column}_mean"], table[f"{column}_std"], strict=True)
        scores |= zip(zip(table[name], table["dataset"], strict=True), figures, strict=True)
    return scores
