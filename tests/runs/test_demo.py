"""The demonstration with tiny settings."""

from __future__ import annotations

import numpy as np
import pytest

from annotmix.datasets.simulation import hammer, simulate
from annotmix.runs.demo import CROWD, _annotators, _digits, _real_confusion, run_demo
from annotmix.runs.report.demo import LEARNS_FROM


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return folder, run_demo(folder, seed=1, epochs=2)


def test_writes_one_file(run):
    folder, _ = run
    assert [path.name for path in folder.iterdir()] == ["report.html"]


def test_findings_have_everything(run):
    _, found = run
    assert list(found.curves) == list(LEARNS_FROM)
    assert len(found.curves) == 2
    assert set(found.annotators.index) == set(CROWD)
    assert 3000 <= found.n_labels == found.annotators["labels"].sum() <= 4000
    assert found.annotators["real"].is_monotonic_decreasing
    assert found.share_right("majority") > found.label_accuracy
    for example in found.examples:
        assert list(example.labels.values()).count(example.majority) > len(example.labels) / 2
        assert example.consensus != example.majority


def test_same_seed_same_page_and_printed_figures(run, tmp_path, capsys):
    folder, found = run
    run_demo(tmp_path, seed=1, epochs=2)
    assert (tmp_path / "report.html").read_bytes() == (folder / "report.html").read_bytes()
    out = capsys.readouterr().out
    for share in found.accuracy:
        assert f"{share:.1%}" in out
    for name in CROWD:
        assert name in out
    assert f"{found.share_right('consensus'):.1%} by annot-mix's consensus" in " ".join(out.split())
    assert out.splitlines()[-1].startswith(f"Report: {tmp_path / 'report.html'}")
    assert (tmp_path / "report.html").resolve().as_uri() in out


def test_annotators_are_averaged_over_their_own_labels():
    y = np.arange(10) % 3
    labels = simulate(y, {"a": hammer(3, 0.5), "b": hammer(3, 0.9)}, random_state=0)
    perf = np.random.default_rng(0).random((10, 2))
    table = _annotators(perf, labels, y)
    for m, name in enumerate("ab"):
        assert table.loc[name, "labels"] == 10
        assert table.loc[name, "estimated"] == pytest.approx(perf[:, m].mean())
        assert table.loc[name, "real"] == np.mean(labels.to_matrix()[name].to_numpy() == y)


def test_real_confusion_counts_the_labels():
    y = np.array([0, 0, 1, 1, 1])
    labels = simulate(y, {"a": hammer(3, 1.0), "b": hammer(3, 0.0)}, random_state=0)
    np.testing.assert_array_equal(_real_confusion(labels, y, "a"), [[1, 0, 0], [0, 1, 0], [np.nan] * 3])
    assert _real_confusion(labels, y, "b")[1, 1] == 0


def test_split_is_fixed_and_scaled():
    X, y, X_test, y_test = _digits()
    assert (len(X), len(X_test)) == (len(y), len(y_test)) == (1000, 797)
    assert X.min() == 0
    assert X.max() == 1
    np.testing.assert_array_equal(y, _digits()[1])


def test_a_file_in_the_way_is_named_before_the_work(tmp_path):
    path = tmp_path / "taken"
    path.write_text("mine")
    with pytest.raises(NotADirectoryError, match="taken"):
        run_demo(path)
    assert path.read_text() == "mine"
