"""Two approaches, or two versions of the code, on the same datasets and seeds."""

from __future__ import annotations

import math

import pandas as pd

from annotmix.bench.results import EPOCHS, Results, collect
from annotmix.bench.sheets import NONE, Sheet, Shown
from annotmix.bench.store import Store
from annotmix.bench.study import Study


def compare_two(study: Study, store: Store, a: str, b: str, score: str, epoch: str) -> Sheet:
    """The mean difference B − A of pairs of runs, with its 95 % interval.

    Parameters
    ----------
    a, b : str
        Labels of approaches of the study; or versions of the code, by the start of a commit, by
        "COMMIT+" for changed files on top of it, or by a version number.
    """
    labels = [entry.label for entry in study.approaches]
    if a in labels and b in labels:
        results = collect(study, store)
        sides = [_values(results, score, epoch).query("approach == @name") for name in (a, b)]
        keys, first = ["dataset", "seed"], "dataset"
    else:
        runs = store.runs()
        versions = sorted(set(_versions(runs[runs["status"] == "done"])))
        sides = []
        for name in (a, b):
            matching = [version for version in versions if _matches(version, name)]
            if not matching:
                raise ValueError(
                    f"{name!r} is no approach of the study {study.name!r} ({', '.join(labels)}) and no "
                    f"version of the code in the store ({', '.join(versions) or 'none'})."
                )
            sides.append(_values(_made_by(study, store, matching), score, epoch))
        keys, first = ["dataset", "approach", "seed"], "dataset, approach"
    pairs = sides[0].merge(sides[1], on=keys, suffixes=("_a", "_b"))
    if pairs.empty:
        raise ValueError(f"The store has no runs of {a!r} and {b!r} with the same dataset and seed.")
    records = _summary(pairs, keys[:-1])
    heads = [first, "seeds", a, b, "B − A", "95 % interval", "B better"]
    rows = [(", ".join(map(str, _as_tuple(name))), _cells(row)) for name, row in records.iterrows()]
    notes = [
        "Differences of runs with the same dataset and seed, in percent points. The interval (Student's t) "
        "is about other seeds on the same data, not about other data; no correction for several comparisons."
    ]
    title = f"{study.name}: {score} [%] after the {epoch} epoch, A = {a}, B = {b}"
    return Sheet(title, heads, rows, records.reset_index(), notes)


def _made_by(study: Study, store: Store, versions: list[str]) -> Results:
    return collect(study, store, lambda table: _versions(table).isin(versions))


def _values(results: Results, score: str, epoch: str) -> pd.DataFrame:
    if epoch not in EPOCHS:
        raise ValueError(f"epoch must be one of {', '.join(EPOCHS)}, found {epoch!r}.")
    parts = [
        results.values(results.part(score, name), epoch).query("dataset == @name")
        for name in results.datasets
    ]
    return pd.concat([results.values(score, epoch)[:0], *parts])


def _summary(pairs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    from scipy.stats import t

    pairs = pairs.assign(difference=100 * (pairs["value_b"] - pairs["value_a"]))
    groups = pairs.groupby(by, sort=False)
    table = pd.DataFrame(
        {
            "seeds": groups.size(),
            "a": 100 * groups["value_a"].mean(),
            "b": 100 * groups["value_b"].mean(),
            "difference": groups["difference"].mean(),
            "better": groups["difference"].agg(lambda d: int((d > 0).sum())),
        }
    )
    n = table["seeds"]
    half = t.ppf(0.975, n - 1) * groups["difference"].std(ddof=1) / n**0.5
    return table.assign(low=table["difference"] - half, high=table["difference"] + half)


def _cells(row: pd.Series) -> list[Shown]:
    interval = NONE if math.isnan(row["low"]) else f"{row['low']:+.1f} to {row['high']:+.1f}"
    return [
        Shown(f"{row['seeds']:.0f}"),
        Shown(f"{row['a']:.1f}"),
        Shown(f"{row['b']:.1f}"),
        Shown(f"{row['difference']:+.1f}"),
        Shown(interval),
        Shown(f"{row['better']:.0f} of {row['seeds']:.0f}"),
    ]


def _versions(runs: pd.DataFrame) -> pd.Series:
    """Such as "d323da0…", "d323da0…+" with changed files, or "0.1.0" outside a checkout."""
    changed = runs["dirty"].fillna(0).astype(bool).map({True: "+", False: ""})
    return (runs["commit"] + changed).fillna(runs["version"]).astype(str)


def _matches(version: str, name: str) -> bool:
    if name.endswith("+") != version.endswith("+"):
        return False
    return version == name or (len(name) >= 4 and version.rstrip("+").startswith(name.rstrip("+")))


def _as_tuple(name: object) -> tuple[object, ...]:
    return name if isinstance(name, tuple) else (name,)
