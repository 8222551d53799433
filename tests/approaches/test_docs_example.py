"""The worked example of docs/adding-an-approach.md, run as a reader would and through the generic tests."""

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest
import test_registry
from test_registry import easy, fit, make

from annotmix.approaches import _REGISTRY

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding-an-approach.md"
GENERIC = [
    test
    for test_name, test in vars(test_registry).items()
    if test_name.startswith("test_") and "name" in inspect.signature(test).parameters
]
TWO_STAGE_ONLY = {
    "test_without_an_annotator_model_the_error_says_who_has_one",
    "test_aggregated_labels_are_exposed_and_say_what_is_missing",
}


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
    monkeypatch.setattr(test_registry, "ONE_STAGE", [*test_registry.ONE_STAGE, "one-coin"])
    spec.loader.exec_module(module)
    yield "one-coin"
    _REGISTRY.pop("one-coin")


@pytest.mark.parametrize(
    "test", [t for t in GENERIC if t.__name__ not in TWO_STAGE_ONLY], ids=lambda test: test.__name__
)
def test_the_example_passes_the_generic_tests(example, test, tmp_path):
    extra = {"tmp_path": tmp_path} if "tmp_path" in inspect.signature(test).parameters else {}
    test(example, **extra)


def test_the_example_in_the_estimator(example):
    X, Z, y = easy()
    clf = fit(make(example, start=0.9), X, Z, y)
    assert clf.score(X, y) > 0.85
    assert clf.consensus(X, Z)["probability"].between(0, 1).all()
    perf = clf.predict_annotator_perf(X)
    assert (perf.std(axis=0) < 1e-6).all()  # one coin: the same for every instance
