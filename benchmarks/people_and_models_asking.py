"""Accuracy against cost of asking experts beside 13 language models, for `benchmarks/people_and_models.py`.

All models have labelled all sentences of babe_llm, and simulated experts are asked sentence by sentence. An
expert is right with the probability 0.9 (the gold label, or else the other class; the same answers for all
strategies of a seed) and costs 20 times as much as a model. Strategies choose the next 100 sentences:

- suggest: `annotmix suggest`, from the posterior of all labels so far;
- disputed: the sentences with the most equal votes of the models;
- random: any sentences.

The answers join the crowd in two ways: as gold (`annotmix fit --gold`), or as labels of three further
annotators. Scored is the consensus of all sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import annotmix
from annotmix.estimators.suggestion import suggest_from

EXPERTS = ["expert-1", "expert-2", "expert-3"]
#: An expert's accuracy, and the cost of one label of a model and of an expert.
ACCURACY, MODEL_COST, EXPERT_COST = 0.9, 1.0, 20.0


class Data(NamedTuple):
    """Labels of the models (item, annotator, label), and the gold label of every item."""

    labels: pd.DataFrame
    gold: pd.Series


Strategy = Callable[[Data, Any, pd.DataFrame, int, np.random.Generator], list[str]]


def suggested(data: Data, result: Any, asked: pd.DataFrame, n: int, rng: np.random.Generator) -> list[str]:
    found = suggest_from(
        result, n * EXPERT_COST, annotators=EXPERTS, cost=dict.fromkeys(EXPERTS, EXPERT_COST),
        per_annotator=n, exclude=asked["item"],
    )  # fmt: skip
    return found["item"].tolist()


def disputed(data: Data, result: Any, asked: pd.DataFrame, n: int, rng: np.random.Generator) -> list[str]:
    votes = data.labels.groupby(["item", "label"]).size().unstack(fill_value=0)
    lead = votes.max(axis=1) / votes.sum(axis=1)
    lead = lead[~lead.index.isin(asked["item"])]
    return (lead + 1e-6 * rng.random(len(lead))).sort_values().index[:n].tolist()


def at_random(data: Data, result: Any, asked: pd.DataFrame, n: int, rng: np.random.Generator) -> list[str]:
    free = data.gold.index[~data.gold.index.isin(asked["item"])]
    return rng.choice(free, n, replace=False).tolist()


STRATEGIES: dict[str, Strategy] = {"suggest": suggested, "disputed": disputed, "random": at_random}


def ask(
    data: Data, name: str, as_gold: bool, seed: int, rounds: int = 6, questions: int = 100
) -> list[dict[str, Any]]:
    """Accuracy of the consensus and money spent after every round."""
    rng = np.random.default_rng([seed, 1])
    said = answers(data.gold, seed)
    asked, rows = pd.DataFrame(columns=["item", "annotator", "label"]), []
    for done in range(rounds + 1):
        result = posterior(data, asked, as_gold)
        right = float((result.consensus["label"] == data.gold).mean())
        cost = MODEL_COST * len(data.labels) + EXPERT_COST * len(asked)
        way = "gold" if as_gold else "labels"
        rows.append(
            {"strategy": name, "as": way, "seed": seed, "asked": len(asked), "cost": cost, "right": right}
        )
        if done == rounds:
            break
        items = STRATEGIES[name](data, result, asked, questions, rng)
        turn = [EXPERTS[k % len(EXPERTS)] for k in range(len(items))]
        new = pd.DataFrame({"item": items, "annotator": turn, "label": said.loc[items].to_numpy()})
        asked = pd.concat([asked, new], ignore_index=True)
    return rows


def answers(gold: pd.Series, seed: int) -> pd.Series:
    """What an expert says about every item: the gold label, or with the probability 0.1 the other class."""
    rng = np.random.default_rng([seed, 0])
    one, other = sorted(gold.unique())
    wrong = gold.map({one: other, other: one})
    return gold.where(rng.random(len(gold)) < ACCURACY, wrong)


def posterior(data: Data, asked: pd.DataFrame, as_gold: bool) -> Any:
    models = data.labels["annotator"].unique()
    table = data.labels if as_gold or asked.empty else pd.concat([data.labels, asked])
    labels = annotmix.Annotations.from_long(table, items=data.gold.index, annotators=[*models, *EXPERTS])
    gold = asked.set_index("item")["label"] if as_gold and len(asked) else None
    return annotmix.posterior(labels, gold=gold)


def asking_rows(scores: pd.DataFrame) -> list[list[str]]:
    """One row per strategy and way in which answers count: percent of right labels by questions."""
    mean = 100 * scores.groupby(["as", "strategy", "asked"])["right"].mean()
    asked = mean.index.get_level_values("asked").unique()
    return [
        [way, name, *(f"{mean[way, name, n]:.1f}" for n in asked)]
        for way in ("gold", "labels")
        for name in STRATEGIES
    ]


def draw_asking(scores: pd.DataFrame, folder: Path) -> None:
    """Accuracy against cost: one panel per way in which answers count, one line per strategy."""
    from annotmix.bench import figures

    plt = figures._plt()
    with figures._style():
        figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.4), sharey=True, layout="constrained")
        titles = {"gold": "expert answers as gold", "labels": "expert answers as labels"}
        for axes, (way, title) in zip(panels, titles.items(), strict=True):
            for number, name in enumerate(STRATEGIES):
                of = scores[(scores["strategy"] == name) & (scores["as"] == way)].groupby("cost")["right"]
                mean, spread = 100 * of.mean(), 100 * of.std().fillna(0)
                line = figures._line(number)
                axes.plot(mean.index / 1000, mean, label=name, **line)
                axes.fill_between(
                    mean.index / 1000,
                    mean - spread,
                    mean + spread,
                    color=line["color"],
                    alpha=0.15,
                    linewidth=0,
                )
            axes.set_title(title)
            axes.set_xlabel("cost [thousand model labels]")
        panels[0].set_ylabel("right [%]")
        figures._legend_below(figure, panels[0], len(STRATEGIES))
        save(figure, folder, "people-and-models-asking")


def save(figure: Any, folder: Path, name: str) -> None:
    """Write a figure as SVG and PNG, the same bytes for the same figure."""
    folder.mkdir(parents=True, exist_ok=True)
    for ending in ("svg", "png"):
        metadata = {"Date": None, "Creator": None} if ending == "svg" else {"Software": None}
        figure.savefig(folder / f"{name}.{ending}", metadata=metadata, bbox_inches="tight", dpi=150)
