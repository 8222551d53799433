"""Files of a run that were changed: one clear line, or a result as if nothing had been changed."""

from __future__ import annotations

import json
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers.mutations import mutate
from helpers.run_problem import write_problem

from annotmix.estimators.suggestion import suggest_from
from annotmix.reading import read_features
from annotmix.runs.evaluate import score
from annotmix.runs.fit import fit
from annotmix.runs.folder import RunFolder
from annotmix.runs.report.run import run_page
from annotmix.runs.request import Request
from annotmix.runs.summary import summary_lines


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A finished run of few items with true labels, and its files."""
    folder = tmp_path_factory.mktemp("small")
    write_problem(folder, n=24)
    request = Request(
        (folder / "labels.csv",),
        folder / "run",
        features=folder / "items.csv",
        epochs=1,
        valid=folder / "truth.csv",
    )
    fit(request, lambda line: None, progress=False)
    return folder


def use_findings(run, folder):
    findings = run.findings()
    truth = pd.read_csv(folder / "truth.csv", dtype=str).set_index("id")["truth"].to_dict()
    run_page(findings)
    summary_lines(score(findings, truth), run.path)


def use_preparation(run, folder):
    preparation = run.read("preparation")[0]
    X = preparation.transform(read_features(folder / "items.csv", item=preparation.id_column), "items.csv")
    assert np.isfinite(X).all()


def use_model(run, folder):
    model = run.model()
    proba = model.predict_proba(run.read("features")[0])
    assert proba.shape == (24, 3)
    assert np.isfinite(proba).all()
    suggest_from(model.posterior_, 5)


def use_all(run, folder):
    use_preparation(run, folder)
    use_findings(run, folder)


FILES = {
    "findings/findings.json": (use_findings, 60),
    "model/preparation.json": (use_preparation, 100),
    "model/model.json": (use_model, 60),
    "run.json": (use_all, 3),
}


@pytest.mark.parametrize("name", FILES)
def test_changed_files_are_refused_in_one_line_or_make_no_difference(small, tmp_path, name):
    use, times = FILES[name]
    run = RunFolder(shutil.copytree(small / "run", tmp_path / "run"))
    original = json.loads((run.path / name).read_text())
    use(run, small)
    rng, refused = np.random.default_rng(0), 0
    for _ in range(times):
        changed, what = mutate(original, rng)
        message = "nothing to say"
        (run.path / name).write_text(json.dumps(changed))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                use(run, small)
        except ValueError as error:
            refused += 1
            message = str(error)
        except Exception as error:
            raise AssertionError(what) from error
        assert 5 < len(message) < 2000, what
    assert refused > times / 2 or name == "run.json"
