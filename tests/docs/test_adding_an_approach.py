"""The worked example of docs/adding-an-approach.md, run as a reader would and through the generic tests."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from helpers.approach_checks import CHECKS, arguments, easy, everywhere, fit, make, one_stage

from annotmix.approaches import _REGISTRY

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding-an-approach.md"


@pytest.fixture
def example(tmp_path, monkeypatch):
    code = re.search(
        r"<!-- example: one_coin.py -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL
    ).group(1)
    assert len(code.splitlines()) < 40
    path = tmp_path / "one_coin.py"
    path.write_text(code)
    spec = importlib.util.spec_from_file_location("one_coin", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "one_coin", module)
    spec.loader.exec_module(module)
    yield "one-coin"
    _REGISTRY.pop("one-coin")


@pytest.mark.parametrize(
    "check",
    [check for check, applies in CHECKS if applies in (everywhere, one_stage)],
    ids=lambda check: check.__name__,
)
def test_the_example_passes_the_generic_checks(example, check, tmp_path):
    check(**arguments(check, example, tmp_path))


def test_the_example_in_the_estimator(example):
    X, Z, y = easy()
    clf = fit(make(example, start=0.9), X, Z, y)
    assert clf.score(X, y) > 0.85
    assert clf.consensus(X, Z)["probability"].between(0, 1).all()
    perf = clf.predict_annotator_perf(X)
    assert (perf.std(axis=0) < 1e-6).all()  # one coin: the same for every instance
