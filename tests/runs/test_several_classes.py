"""Items with several classes, from files to results."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from helpers.set_crowds import CLASSES, set_crowd
from typer.testing import CliRunner

from annotmix.cli import app
from annotmix.labels import posterior
from annotmix.labels.set_texts import write_set

runner = CliRunner()


def run(*words):
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Labels, features and true sets of items; the last five items have no labels."""
    folder = tmp_path_factory.mktemp("sets")
    true, sets = set_crowd(120, 8, 3)
    labels = sets.to_long()
    labels["labels"] = labels["labels"].map(write_set)
    labels[labels["item"].isin(sets.items[:-5])].to_csv(folder / "labels.csv", index=False)
    noise = np.random.default_rng(0).normal(0, 0.4, true.shape)
    features = pd.DataFrame(true + noise, index=pd.Index(sets.items, name="item"), columns=list("ABCDE"))
    features.to_csv(folder / "items.csv")
    truth = [write_set([name for name, own in zip(CLASSES, row, strict=True) if own]) for row in true]
    pd.DataFrame({"item": sets.items, "truth": truth}).to_csv(folder / "truth.csv", index=False)
    return folder


@pytest.mark.parametrize("method", ["posterior", "mv", "ds"])
def test_aggregate(files, method):
    words = ["aggregate", files / "labels.csv", "--multi-label", "--method", method, "-q"]
    table = pd.read_csv(io.StringIO(run(*words).stdout), keep_default_na=False)
    _, sets = set_crowd(120, 8, 3)
    sets = sets[:-5]
    assert table["item"].tolist() == sets.items.tolist()
    assert (table["label"] == "(none)").any()
    q = table[[f"P({name})" for name in CLASSES]].to_numpy()
    assert ((q >= 0) & (q <= 1)).all()
    if method == "posterior":
        np.testing.assert_allclose(q, posterior(sets).q, atol=1e-6)
        assert table["label"].tolist() == posterior(sets).consensus["labels"].map(write_set).tolist()
    if method == "mv":
        share = pd.Series(sets.chosen[:, 0]).groupby(sets.item).mean()
        np.testing.assert_allclose(q[:, 0], share)
