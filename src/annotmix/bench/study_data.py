"""The dataset of a run, as features."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from annotmix.datasets import Dataset, load_dataset


def load(source: Mapping[str, Any], data_dir: str | None) -> Dataset:
    """A dataset as `DatasetEntry.source` describes it; the last two are remembered by the process."""
    return _load(json.dumps(source, sort_keys=True), data_dir)


@lru_cache(maxsize=2)
def _load(source: str, data_dir: str | None) -> Dataset:
    facts = json.loads(source)
    quiet = {"download": False, "progress": False, "published": facts["published"]}
    if facts["encoder"] is None:
        return load_dataset(facts["name"], data_dir, **quiet)
    from sklearn.preprocessing import StandardScaler

    from annotmix.encoders import make_encoder

    encoder = make_encoder(facts["encoder"], progress=False)
    data = load_dataset(facts["name"], data_dir, encoder=encoder, **quiet)
    scaler = StandardScaler().fit(encoder.encode(data.X))
    X, X_valid, X_test = (
        scaler.transform(encoder.encode(part)).astype("float32")
        for part in (data.X, data.X_valid, data.X_test)
    )
    return replace(data, X=X, X_valid=X_valid, X_test=X_test)


def facts(data: Dataset) -> dict[str, Any]:
    """The facts about a dataset for tables and figures."""
    labels = data.labels
    right = labels.classes[labels.label] == data.y[labels.item]
    return {
        "train": len(data.y),
        "valid": len(data.y_valid),
        "test": len(data.y_test),
        "classes": len(data.classes),
        "annotators": labels.n_annotators,
        "labels": len(labels),
        "percent_false": float(100 * (1 - right.mean())),
        "test_labels": data.test_labels is not None,
    }
