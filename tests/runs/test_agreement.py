"""The command `annotmix agreement`: what it prints and writes, for files of any format."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from annotmix.cli import app
from annotmix.labels.agreement import agreement
from annotmix.labels.annotations import Annotations
from annotmix.runs.agreement import advices, agreement_lines

GRADES = ["low", "medium", "high"]


def run(*arguments):
    return CliRunner().invoke(app, ["agreement", *map(str, arguments)])


@pytest.fixture
def labels(tmp_path):
    """A table of grades by four good annotators and one who guesses."""
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=150)
    rows = []
    for m in range(5):
        for n in range(150):
            right = m < 4 and rng.random() < 0.85
            rows.append((f"item {n}", f"ann {m}", GRADES[true[n] if right else rng.integers(3)]))
    table = pd.DataFrame(rows, columns=["item", "annotator", "label"]).sample(frac=0.7, random_state=0)
    table.to_csv(tmp_path / "labels.csv", index=False)
    return tmp_path / "labels.csv"


def test_it_prints_the_figures_and_what_to_do(labels):
    done = run(labels)
    assert done.exit_code == 0, done.output
    result = agreement(pd.read_csv(labels))
    for part in (
        "items, 3 classes (long).",
        f"Krippendorff's α, nominal    {result.alpha:.3f} (",
        f"two labels agree             {result.percent:.1%}",
        "these are not reliable enough to draw conclusions from single ones.",
        "Look at labels of 'ann 4': they agree with the rest less than others do",
        "Do not use single labels as they are.",
    ):
        assert part in done.stdout
    assert run(labels, "--quiet").stdout == ""


def test_an_order_of_classes(labels):
    ordered = json.loads(run(labels, "--level", "ordinal", "--order", "low,medium,high", "--json").stdout)
    expected = agreement(pd.read_csv(labels), level="ordinal", order=GRADES)
    assert ordered["level"] == "ordinal"
    assert ordered["coefficients"]["alpha"]["value"] == pytest.approx(expected.alpha)
    for arguments, message in (
        (["--level", "ordinal"], "--order low,medium,high"),
        (["--order", "low,medium,high"], 'order needs level="ordinal"'),
        (["--level", "ratio"], "found 'ratio'"),
    ):
        done = run(labels, *arguments)
        assert done.exit_code == 1
        assert message in done.stderr


def test_files_and_json_hold_the_same(labels, tmp_path):
    paths = {name: tmp_path / f"{name}.csv" for name in ("annotators", "classes", "pairs")}
    options = [part for name, path in paths.items() for part in (f"--out-{name}", path)]
    done = run(labels, "--json", *options)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    for name, path in paths.items():
        table = pd.read_csv(path)
        assert table.columns.tolist() == list(document[name][0])
        assert len(table) == len(document[name])
        for column in table.select_dtypes("number"):
            np.testing.assert_allclose(table[column], [row[column] for row in document[name]], atol=1e-5)
    assert len(pd.read_csv(paths["pairs"])) == 10


def test_labels_without_a_pair(tmp_path):
    (tmp_path / "labels.csv").write_text("item,annotator,label\nx,ann,a\ny,bob,b\n")
    done = run(tmp_path / "labels.csv")
    assert done.exit_code == 0, done.output
    assert "Agreement on 0 items with two labels or more; 2 items with one label" in done.stdout
    assert "There is no α" in done.stdout
    assert json.loads(run(tmp_path / "labels.csv", "--json").stdout)["coefficients"]["alpha"]["value"] is None


def test_reliable_labels_need_nothing():
    Z = np.repeat(np.arange(60)[:, None] % 2, 3, axis=1)
    assert advices(agreement(Z)) == ["Nothing: the labels are reliable as they are."]
    Z = np.vstack([Z, np.c_[np.zeros((600, 1), dtype=int), np.full((600, 2), -1)]])
    assert "Let a random part of the items be labelled twice" in advices(agreement(Z))[0]


def test_names_cannot_fill_the_screen():
    a = Annotations.from_matrix(np.arange(4).reshape(2, 2) % 2, annotators=["a" * 900, "b"])
    assert max(map(len, agreement_lines(agreement(a)))) < 300


def test_it_needs_neither_torch_nor_scikit_learn(labels):
    code = (
        "import sys; from annotmix.cli import app; "
        f"app(['agreement', {str(labels)!r}, '-q'], standalone_mode=False); "
        "print(sorted({'torch', 'sklearn', 'scipy.stats', 'scipy.optimize'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_real_crowds(data_file):
    songs = json.loads(run(data_file("mgc/music_genre_mturk.csv"), "--json").stdout)
    assert songs["coefficients"]["alpha"]["value"] == pytest.approx(0.301, abs=1e-3)
    models = json.loads(run(data_file("babe_llm/labels_zero-shot.csv"), "--missing", "?", "--json").stdout)
    assert models["coefficients"]["alpha"]["value"] == pytest.approx(0.179, abs=1e-3)
    assert len(models["pairs"]) == 13 * 12 / 2
