"""The consensus of every method on every set with real or simulated annotators, as one table.

    python benchmarks/evidence.py --data FOLDER                     # all that is missing, then the page
    python benchmarks/evidence.py --sets mgc --methods vote plus --seeds 1
    python benchmarks/evidence.py --before FOLDER_OF_OLD_SOURCE     # the row of an earlier commit

Every result is one line of build/evidence.jsonl, and is not computed again; docs/results/evidence.md is made
from all lines. Networks have the settings of the catalogue. CROWDLAB runs in an environment of its own and
gets the out-of-fold probabilities of our `CrowdClassifier`. Results of earlier source are kept in
benchmarks/evidence-before.jsonl.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from evidence_page import METHODS, SETS, page
from practitioner import Crowd, environment
from scipy.stats import spearmanr
from sklearn.preprocessing import StandardScaler

import annotmix
from annotmix.bench import study_data
from annotmix.bench.worker import code
from annotmix.datasets.crowds import Crowd as Simulated
from annotmix.datasets.fetch import data_folders
from annotmix.datasets.loading import build, get_spec, read_parts
from annotmix.datasets.spec import ENCODED
from annotmix.encoders import make_encoder
from annotmix.labels.crowdkit import classification_aggregators
from annotmix.labels.metrics import perf_auroc

RESULTS, BEFORE = Path("build/evidence.jsonl"), Path(__file__).with_name("evidence-before.jsonl")
PAGE = Path("docs/results/evidence.md")
AGGREGATORS = classification_aggregators()
ENOUGH_LABELS, N_GOLD, BINS, PATIENCE = 10, 200, 10, 120
SOURCES = {
    "mgc": {"name": "mgc", "encoder": None, "published": False},
    "labelme": {"name": "labelme-vgg16", "encoder": None, "published": False},
    "digits": {"name": "digits", "encoder": None, "published": False},
    "letter": {"name": "letter", "encoder": None, "published": True},
    "trec6": {"name": "trec6", "encoder": "text:minilm", "published": True},
}


class Answer(NamedTuple):
    """P(consensus right) and confidence per item, quality per label, accuracy per annotator, a classifier."""

    right: np.ndarray
    confidence: np.ndarray
    quality: np.ndarray
    annotators: np.ndarray
    classifier: Any = None
    seconds: float | None = None  # by default those that the call took
    judged: np.ndarray | None = None  # the items that count; all by default


# -------------------------------------------------------------------- sets


@lru_cache(maxsize=1)
def load(name: str, folder: str | None) -> Crowd:
    if name.startswith("babe"):
        return Crowd(_babe(name.removeprefix("babe "), data_folders(folder)[0] / "babe_llm"))
    if name == "flowers102":
        return Crowd(_flowers(data_folders(folder)[0] / "flowers102"))
    return Crowd(study_data.load(SOURCES[name], folder))


def _babe(shots: str, folder: Path) -> SimpleNamespace:
    """Sentences that 13 language models labelled; an unreadable label, "?", is a missing one."""
    texts, gold = (pd.read_csv(folder / name).set_index("task") for name in ("texts.csv", "gold.csv"))
    table = pd.read_csv(folder / f"labels_{shots}.csv").query("label != '?'")
    labels = annotmix.Annotations.from_long(table, items=list(texts.index))
    X = make_encoder("text:minilm", progress=False).encode(list(texts["text"]))
    X, y = StandardScaler().fit_transform(X).astype("float32"), gold.loc[texts.index, "label"].to_numpy()
    return SimpleNamespace(X=X, labels=labels, y=y, X_test=None, y_test=None, settings=dict(ENCODED))


def _flowers(folder: Path) -> SimpleNamespace:
    """The catalogue's split and simulated annotators, on features of the photos in place of the photos."""
    features = np.load(folder / "efficientnet_lite0.npy").astype("float32")
    spec = get_spec("flowers102")
    paths = {key: folder / Path(file.path).name for key, file in spec.files.items()}
    raw = read_parts(spec, paths)
    parts = {
        name: replace(part, X=features[[int(photo[6:11]) - 1 for photo in part.items]])
        for name, part in raw.parts.items()
    }
    data = build(spec, replace(raw, parts=parts), Simulated(encoder=lambda X: X, progress=False))
    scaler = StandardScaler().fit(data.X)
    X, X_test = (scaler.transform(part).astype("float32") for part in (data.X, data.X_test))
    return SimpleNamespace(**{**data.__dict__, "X": X, "X_test": X_test})


# -------------------------------------------------------------------- methods


def from_proba(crowd: Crowd, q: np.ndarray, annotators: Any = None, classifier: Any = None) -> Answer:
    quality = q[crowd.labels.item, crowd.labels.label]
    trust = crowd.mean(quality) if annotators is None else np.asarray(annotators, dtype=float)
    return Answer(q.argmax(axis=1) == crowd.y, q.max(axis=1), quality, trust, classifier)


def from_posterior(crowd: Crowd, posterior: Any, classifier: Any = None) -> Answer:
    trust = posterior.annotators["accuracy"].reindex(crowd.labels.annotators)
    return from_proba(crowd, posterior.probabilities.to_numpy(), trust, classifier)


def vote(crowd: Crowd, seed: int) -> Answer:
    share = crowd.shares()
    top = np.isclose(share, share.max(axis=1, keepdims=True))
    ties = top[np.arange(len(top)), crowd.y] / top.sum(axis=1)
    return from_proba(crowd, share)._replace(right=ties)


def dawid_skene(crowd: Crowd, seed: int, gold: dict[Any, Any] | None = None) -> Answer:
    return from_proba(crowd, annotmix.dawid_skene(crowd.labels, gold=gold).probabilities.to_numpy())


def crowd_kit(name: str, trust: str) -> Callable[[Crowd, int], Answer]:
    def answer(crowd: Crowd, seed: int) -> Answer:
        a = crowd.labels
        table = pd.DataFrame({"task": a.item, "worker": a.annotator, "label": a.label})
        fitted = AGGREGATORS[name]().fit(table)
        q = fitted.probas_.reindex(index=range(a.n_items), columns=range(a.n_classes), fill_value=0.0)
        skill = getattr(fitted, trust).reindex(range(a.n_annotators))
        return from_proba(crowd, q.fillna(0.0).to_numpy(), skill)

    return answer


def labels_alone(crowd: Crowd, seed: int, gold: dict[Any, Any] | None = None) -> Answer:
    return from_posterior(crowd, annotmix.posterior(crowd.labels, gold=gold))


@lru_cache(maxsize=1)
def _logistic(crowd: Crowd, seed: int) -> tuple[Any, float]:
    started = time.process_time()
    clf = annotmix.CrowdClassifier(random_state=seed, progress=False).fit(crowd.data.X, crowd.labels)
    return clf, time.process_time() - started


def logistic(crowd: Crowd, seed: int) -> Answer:
    clf, seconds = _logistic(crowd, seed)
    return from_posterior(crowd, clf.posterior_, clf)._replace(seconds=seconds)


def crowdlab(crowd: Crowd, seed: int) -> Answer:
    a, rows = crowd.labels, np.flatnonzero(crowd.labelled)
    clf, seconds = _logistic(crowd, seed)
    matrix = np.full((a.n_items, a.n_annotators), -1)
    matrix[a.item, a.annotator] = a.label
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(given, label=matrix[rows], proba=clf.unseen_proba_[rows])
        script = Path(__file__).with_name("crowdlab.py")
        subprocess.run([environment(Path("build/crowdlab")), script, given, found], check=True)
        result = dict(np.load(found, allow_pickle=False))
    right, confidence = np.zeros(a.n_items), np.zeros(a.n_items)
    right[rows], confidence[rows] = result["consensus"] == crowd.y[rows], result["confidence"]
    seconds += float(result["seconds"])
    return Answer(right, confidence, result["quality"], result["annotators"], seconds=seconds)


def network(approach: str) -> Callable[[Crowd, int], Answer]:
    def answer(crowd: Crowd, seed: int) -> Answer:
        clf = _fitted(crowd, approach, seed)
        return from_posterior(crowd, clf.posterior_, clf)

    return answer


def before(crowd: Crowd, seed: int) -> Answer:
    """annot-mix-plus of source that has no `annotmix.posterior` yet."""
    from annotmix.estimators.beliefs import beliefs

    X, labels = crowd.data.X, crowd.labels
    clf = _fitted(crowd, "annot-mix-plus", seed)
    consensus = clf.consensus(X, labels)
    right = consensus["label"].to_numpy() == crowd.data.y
    quality = clf.label_quality(X, labels)["probability"].to_numpy()
    trust = crowd.mean(beliefs(clf, X, labels).right_by_others)
    return Answer(right, consensus["probability"].to_numpy(), quality, trust, clf)


def _fitted(crowd: Crowd, approach: str, seed: int) -> Any:
    clf = annotmix.make_classifier(approach, **crowd.data.settings, random_state=seed, progress=False)
    return clf.fit(crowd.data.X, crowd.labels)


def with_gold(method: Callable[..., Answer]) -> Callable[[Crowd, int], Answer]:
    """Some items have a known class; the others are judged."""

    def answer(crowd: Crowd, seed: int) -> Answer:
        known = np.random.default_rng(seed).choice(crowd.labels.n_items, N_GOLD, replace=False)
        judged = crowd.labelled.copy()
        judged[known] = False
        gold = dict(zip(crowd.labels.items[known], crowd.data.y[known], strict=True))
        return method(crowd, seed, gold)._replace(judged=judged)

    return answer


def gold_logistic(crowd: Crowd, seed: int, gold: dict[Any, Any]) -> Answer:
    clf = annotmix.CrowdClassifier(random_state=seed, progress=False)
    return from_posterior(crowd, clf.fit(crowd.data.X, crowd.labels, gold=gold).posterior_)


RUN: dict[str, Callable[[Crowd, int], Answer]] = {
    "vote": vote,
    "ds": dawid_skene,
    "one-coin": crowd_kit("OneCoinDawidSkene", "skills_"),
    "glad": crowd_kit("GLAD", "alphas_"),
    "labels": labels_alone,
    "logistic": logistic,
    "crowdlab": crowdlab,
    "annot-mix": network("annot-mix"),
    "plus": network("annot-mix-plus"),
    "before": before,
    "ds-gold": with_gold(dawid_skene),
    "labels-gold": with_gold(labels_alone),
    "logistic-gold": with_gold(gold_logistic),
}

# -------------------------------------------------------------------- scores


def scores(crowd: Crowd, answer: Answer) -> dict[str, Any]:
    a, judged = crowd.labels, crowd.labelled if answer.judged is None else answer.judged
    right, confidence = answer.right[judged].astype(float), answer.confidence[judged]
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, right - confidence, BINS)
    count, of_judged = a.labels_per_annotator >= ENOUGH_LABELS, judged[a.item]
    real = crowd.mean(crowd.correct.astype(float))
    items = np.where(judged, answer.right.astype(float), np.nan).astype(np.float32)
    clf, data = answer.classifier, crowd.data
    tested = clf is not None and data.X_test is not None
    return {
        "accuracy": float(right.mean()),
        "auroc": perf_auroc(crowd.correct[of_judged], answer.quality[of_judged]),
        "ece": float(np.abs(gaps).sum() / len(right)),
        "annotators": float(spearmanr(answer.annotators[count], real[count])[0]),
        "clf-acc": float((clf.predict(data.X_test) == data.y_test).mean()) if tested else None,
        "right": base64.b64encode(zlib.compress(items.tobytes(), 9)).decode(),
    }


def _too_slow(*_: Any) -> None:
    raise TimeoutError


def run(name: str, method: str, seed: int, folder: str | None) -> dict[str, Any]:
    """One line of the results; without scores if a method of crowd-kit takes too long."""
    crowd = load(name, folder)
    if method in ("glad", "one-coin"):
        signal.signal(signal.SIGVTALRM, _too_slow)
        signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    started, result = time.process_time(), {}
    try:
        answer = RUN[method](crowd, seed)
        seconds = time.process_time() - started if answer.seconds is None else answer.seconds
        result = scores(crowd, answer)
    except TimeoutError:
        seconds = float(PATIENCE)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    facts = {"set": name, "method": method, "seed": seed, "commit": code()["commit"]}
    return {**facts, "seconds": round(seconds, 3), **result}


# -------------------------------------------------------------------- the command


def jobs(args: argparse.Namespace) -> list[tuple[str, str, int]]:
    """(set, method, seed): the quick sets first, and the first seed of all before the second."""
    wanted = []
    for quick in (True, False):
        names = [name for name in args.sets if SETS[name].quick == quick]
        for seed in range(max((SETS[name].seeds for name in names), default=0)):
            for name in names:
                for method in args.methods:
                    facts, limit = METHODS[method], SETS[name].seeds if args.seeds is None else args.seeds
                    if facts.suits(name) and seed < (limit if facts.random else 1):
                        wanted.append((name, method, seed))
    return wanted


def lines() -> list[dict[str, Any]]:
    files = (path for path in (RESULTS, BEFORE) if path.exists())
    return [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder with the data; by default ANNOTMIX_DATA")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    usual = [name for name in METHODS if name != "before"]
    parser.add_argument("--methods", nargs="*", default=usual, choices=list(METHODS))
    parser.add_argument("--seeds", type=int, help="by default five for quick sets, three for others")
    parser.add_argument("--before", help="src folder of an earlier commit: run its annot-mix-plus only")
    args = parser.parse_args()
    if args.before:
        rest = [part for part in sys.argv[1:] if part not in ("--before", args.before)]
        command = [sys.executable, __file__, *rest, "--methods", "before"]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": args.before})
        return
    warnings.filterwarnings("ignore", category=RuntimeWarning)  # overflows in crowd-kit's GLAD
    RESULTS.parent.mkdir(exist_ok=True)
    done = {(line["set"], line["method"], line["seed"]) for line in lines()}
    todo = [job for job in jobs(args) if job not in done]
    for number, job in enumerate(todo, start=1):
        result = run(*job, args.data)
        with (BEFORE if job[1] == "before" else RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        short = {key: result.get(key) for key in ("accuracy", "auroc", "ece", "annotators", "clf-acc")}
        print(f"{number}/{len(todo)}", *job, f"{result['seconds']:.1f} s", short, flush=True)
    PAGE.write_text(page(lines()), encoding="utf-8")


if __name__ == "__main__":
    main()
