"""All figures of the page "Mix people and language models", on babe_llm: 13 models, 3021 sentences, gold.

    python benchmarks/people_and_models.py --data FOLDER

writes them into docs/people-and-models.md, and the figure of prices into docs/images. Three crowds are
measured: every model without examples in the prompt, with two, and both as 26 annotators. Gold is drawn
`DRAWS` times; a draw is scored on the other sentences.

Every measurement is kept in a file (`--results`), so that an interrupted command continues where it
stopped. `--only` measures some parts and leaves the page as it is. All parts take about an hour on one core:
labels, classifier, network, ranking, groups, asking.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import people_and_models_asking as asking
from people_and_models_asking import Data
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

import annotmix

ROOT = Path(__file__).parents[1]
PAGE, IMAGES = ROOT / "docs" / "people-and-models.md", ROOT / "docs" / "images"
PROMPTS = {
    "zero-shot": ["zero-shot"],
    "two examples": ["2-shot"],
    "both, 26 annotators": ["zero-shot", "2-shot"],
}
GOLD = (0, 50, 200)
#: Draws of gold, for what takes seconds and for a classifier; the seeds of the study of prices.
DRAWS, CLASSIFIER_DRAWS, SEEDS = 10, 3, 3
ALONE, LOGISTIC, NETWORK = (
    "annotmix, labels alone",
    "annotmix, logistic regression",
    "annotmix, annot-mix-plus",
)
BY_GOLD, STACKED = "the model with most gold right", "logistic regression of labels, taught by the gold"
BEST = "the best model (nobody knows which)"


class Store:
    """Measurements by name, kept in a file of JSON lines."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.known = dict(map(json.loads, lines))

    def get(self, name: str, measure: Callable[[], Any]) -> Any:
        """The value of a measurement, measured now if it is not known."""
        if name not in self.known:
            started = time.perf_counter()
            self.known[name] = measure()
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, self.known[name]]) + "\n")
            print(f"{name}: {time.perf_counter() - started:.1f} s", flush=True)
        return self.known[name]


def load(folder: Path, prompts: list[str]) -> Data:
    """The labels of one or more prompts, without answers that cannot be parsed."""
    gold = pd.read_csv(folder / "babe_llm" / "gold.csv").set_index("task")["label"].rename_axis("item")
    parts = []
    for prompt in prompts:
        part = pd.read_csv(folder / "babe_llm" / f"labels_{prompt}.csv")
        part = part.rename(columns={"task": "item", "worker": "annotator"})
        if len(prompts) > 1:
            part["annotator"] += f", {prompt}"
        parts.append(part[part["label"] != "?"])
    return Data(pd.concat(parts), gold)


def annotations(data: Data) -> annotmix.Annotations:
    return annotmix.Annotations.from_long(data.labels, items=data.gold.index)


def drawn(data: Data, n: int, draw: int) -> pd.Series | None:
    """The gold of a draw, the same for all methods."""
    return data.gold.sample(n, random_state=draw) if n else None


def right(labels: pd.Series, data: Data, gold: pd.Series | None) -> float:
    """Percent of the sentences without gold whose label is right."""
    scored = data.gold if gold is None else data.gold.drop(gold.index)
    return 100 * float((labels.reindex(scored.index) == scored).mean())


def accuracy(data: Data) -> pd.Series:
    """The true accuracy of every model, among the answers that could be parsed."""
    correct = data.labels["label"].to_numpy() == data.gold.loc[data.labels["item"]].to_numpy()
    return pd.Series(correct).groupby(data.labels["annotator"].to_numpy()).mean()


# ---------------------------------------------------------------- methods: data, gold, seed → labels


def alone(data: Data, gold: pd.Series | None, seed: int) -> pd.Series:
    return annotmix.posterior(annotations(data), gold=gold).consensus["label"]


def vote(data: Data, gold: pd.Series | None, seed: int) -> pd.Series:
    return annotmix.majority_vote(annotations(data), random_state=seed)


def dawid_skene(data: Data, gold: pd.Series | None, seed: int) -> pd.Series:
    return annotmix.dawid_skene(annotations(data)).labels


def best_by_gold(data: Data, gold: pd.Series | None, seed: int) -> pd.Series:
    """The labels of the model with most gold labels right, and another label where it has none."""
    a = annotations(data)
    share = accuracy(Data(data.labels[data.labels["item"].isin(gold.index)], gold))
    labels = data.labels[data.labels["annotator"] == share.idxmax()].set_index("item")["label"]
    return labels.combine_first(annotmix.majority_vote(a, random_state=seed))


def stacked(data: Data, gold: pd.Series | None, seed: int) -> pd.Series:
    a = annotations(data)
    X = np.zeros((a.n_items, a.n_annotators * a.n_classes))
    X[a.item, a.annotator * a.n_classes + a.label] = 1
    model = LogisticRegression(max_iter=1000).fit(X[pd.Index(a.items).get_indexer(gold.index)], gold)
    return pd.Series(model.predict(X), index=a.items)


class OnTexts:
    """A classifier of the sentences' features, taught by the crowd."""

    def __init__(self, folder: Path, network: bool):
        self.folder, self.network = folder, network
        self.X: np.ndarray | None = None

    def __call__(self, data: Data, gold: pd.Series | None, seed: int) -> pd.Series:
        if self.X is None:
            texts = pd.read_csv(self.folder / "babe_llm" / "texts.csv").set_index("task")["text"]
            encoder = annotmix.TextEncoder("minilm")
            self.X = encoder.encode(texts.loc[data.gold.index].tolist())
        model = annotmix.AnnotMixPlusClassifier if self.network else annotmix.CrowdClassifier
        clf = model(random_state=seed, progress=False)
        clf.fit(self.X, annotations(data), items=data.gold.index, gold=gold)
        return clf.consensus()["label"]


def accuracies(
    store: Store, crowds: dict[str, Data], methods: dict[str, Callable[..., pd.Series]], draws: int
) -> Iterator[list[str]]:
    """Rows of a table: the share of right labels of every crowd and method, by the number of gold items."""
    for crowd, data in crowds.items():
        for method, labels in methods.items():
            cells = []
            for n in GOLD:
                if (n and method in ("majority vote", "Dawid–Skene")) or (
                    not n and method in (BY_GOLD, STACKED)
                ):
                    cells.append("")
                    continue
                times = draws if n or method in (LOGISTIC, "majority vote") else 1
                values = []
                for draw in range(times):
                    gold = drawn(data, n, draw)
                    values.append(
                        store.get(
                            f"{crowd} | {method} | {n} | {draw}",
                            lambda data=data, gold=gold, draw=draw, labels=labels: right(
                                labels(data, gold, draw), data, gold
                            ),
                        )
                    )
                cells.append(mean_and_spread(values))
            yield [crowd, method, *cells]


def mean_and_spread(values: list[float]) -> str:
    if len(values) == 1 or np.ptp(values) == 0:
        return f"{values[0]:.1f}"
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"


# ---------------------------------------------------------------- tables of the page


def labels_table(store: Store, crowds: dict[str, Data], folder: Path) -> list[list[str]]:
    methods = {
        "majority vote": vote,
        "Dawid–Skene": dawid_skene,
        ALONE: alone,
        BY_GOLD: best_by_gold,
        STACKED: stacked,
    }
    return list(accuracies(store, crowds, methods, DRAWS))


def classifier_table(store: Store, crowds: dict[str, Data], folder: Path) -> list[list[str]]:
    return list(accuracies(store, crowds, {LOGISTIC: OnTexts(folder, network=False)}, CLASSIFIER_DRAWS))


def network_table(store: Store, crowds: dict[str, Data], folder: Path) -> list[list[str]]:
    return list(accuracies(store, crowds, {NETWORK: OnTexts(folder, network=True)}, 1))


def ranking_table(store: Store, crowds: dict[str, Data], folder: Path) -> list[list[str]]:
    """Models ranked without gold: Spearman's ρ with the true order, and the place of the best model."""
    rows = []
    for crowd, data in crowds.items():

        def measure(data: Data = data) -> dict[str, Any]:
            real, a = accuracy(data), annotations(data)
            ours = annotmix.posterior(a).annotators["accuracy"]
            votes = annotmix.majority_vote(a, random_state=0)
            agree = accuracy(Data(data.labels, votes))
            ds = annotmix.dawid_skene(a).labels
            by = {"vote": agree, "Dawid–Skene": accuracy(Data(data.labels, ds)), "annotmix": ours}
            best = real.idxmax()
            return {
                "rho": {name: float(spearmanr(v.loc[real.index], real)[0]) for name, v in by.items()},
                "best": best,
                "place": int(ours.rank(ascending=False)[best]),
                "estimate": float(100 * ours[best]),
                "real": float(100 * real[best]),
            }

        found = store.get(f"{crowd} | ranking", measure)
        rho = [f"{value:.2f}" for value in found["rho"].values()]
        place = f"{found['place']} of {data.labels['annotator'].nunique()}"
        best = found["best"].replace("_", "-")
        rows.append([crowd, *rho, best, f"{found['real']:.1f}", f"{found['estimate']:.1f}", place])
    return rows


def groups_table(store: Store, crowds: dict[str, Data], folder: Path) -> list[list[str]]:
    """Models that err together, found without gold; and how often they really are wrong together."""
    rows = []
    for crowd, data in crowds.items():

        def measure(data: Data = data) -> list[dict[str, Any]]:
            together = annotmix.posterior(annotations(data)).dependence
            wrong = data.labels.assign(
                wrong=data.labels["label"].to_numpy() != data.gold.loc[data.labels["item"]].to_numpy()
            ).pivot(index="item", columns="annotator", values="wrong")
            found = []
            for group in together.groups.itertuples():
                both, chance = [], []
                for n, one in enumerate(group.annotators):
                    for other in group.annotators[n + 1 :]:
                        pair = wrong[[one, other]].dropna().astype(bool)
                        both.append(float(pair.all(axis=1).mean()))
                        chance.append(float(pair.mean().prod()))
                found.append(
                    {
                        "members": list(group.annotators),
                        "votes": float(group.votes),
                        "both": 100 * float(np.mean(both)),
                        "chance": 100 * float(np.mean(chance)),
                    }
                )
            return found

        for group in store.get(f"{crowd} | groups", measure):
            names = "; ".join(group["members"]).replace("_", "-")
            votes, both, chance = (f"{group[key]:.1f}" for key in ("votes", "both", "chance"))
            rows.append([crowd, names, votes, both, chance])
    return rows


def asking_table(store: Store, crowds: dict[str, Data], folder: Path) -> list[list[str]]:
    """Accuracy against the number of questions; draws the figure."""
    data = crowds["zero-shot"]
    rows = [
        row
        for seed in range(SEEDS)
        for as_gold in (True, False)
        for name in asking.STRATEGIES
        for row in store.get(
            f"asking | {name} | {as_gold} | {seed}",
            lambda name=name, as_gold=as_gold, seed=seed: asking.ask(data, name, as_gold, seed),
        )
    ]
    scores = pd.DataFrame(rows)
    asking.draw_asking(scores, IMAGES)
    return asking.asking_rows(scores)


def best_rows(crowds: dict[str, Data]) -> list[list[str]]:
    """The best single model of every crowd."""
    return [[crowd, BEST, f"{100 * accuracy(data).max():.1f}", "", ""] for crowd, data in crowds.items()]


#: Part → its rows.
PARTS: dict[str, Callable[[Store, dict[str, Data], Path], list[list[str]]]] = {
    "labels": labels_table,
    "classifier": classifier_table,
    "network": network_table,
    "ranking": ranking_table,
    "groups": groups_table,
    "asking": asking_table,
}


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_page(parts: dict[str, list[list[str]]], crowds: dict[str, Data]) -> None:
    """Write the tables between the markers of the page."""
    right = [row for name in ("labels", "classifier", "network") for row in parts[name]] + best_rows(crowds)
    order = ["majority vote", "Dawid–Skene", ALONE, LOGISTIC, NETWORK, BY_GOLD, STACKED, BEST]
    right.sort(key=lambda row: (list(crowds).index(row[0]), order.index(row[1])))
    gold = ["without gold", *(f"{n} gold items" for n in GOLD[1:])]
    ranking = ["prompts", "by the vote", "by Dawid–Skene", "by annotmix"]
    asked = [f"{n}" for n in range(0, 601, 100)]
    tables = {
        "accuracy": markdown(["prompts", "labels by", *gold], right),
        "ranking": markdown(
            [*ranking, "best model", "its accuracy", "estimated", "its place"], parts["ranking"]
        ),
        "groups": markdown(
            ["prompts", "group", "worth votes", "both wrong, %", "expected by chance, %"], parts["groups"]
        ),
        "asking": markdown(["answers count as", "questions:", *asked], parts["asking"]),
    }
    text = PAGE.read_text(encoding="utf-8")
    for name, content in tables.items():
        pattern = rf"(<!-- {name}: [^\n]*-->\n).*?(\n<!-- end -->)"
        text, n = re.subn(pattern, lambda match, new=content: match[1] + new + match[2], text, flags=re.S)
        if n != 1:
            raise SystemExit(f"{PAGE} needs the markers of the table {name!r} once, found {n}.")
    PAGE.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("ANNOTMIX_DATA"))
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "people-and-models.jsonl")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="measure these parts, leave the page")
    args = parser.parse_args()
    if args.data is None:
        parser.error("name the data folder with --data, or set ANNOTMIX_DATA")
    folder, store = Path(args.data), Store(args.results)
    crowds = {name: load(folder, prompts) for name, prompts in PROMPTS.items()}
    parts = {name: PARTS[name](store, crowds, folder) for name in args.only or PARTS}
    for rows in parts.values():
        print("\n".join(" | ".join(row) for row in rows))
    if args.only is None:
        write_page(parts, crowds)


if __name__ == "__main__":
    main()
