"""Tables, comparisons and figures from made-up results whose means are known."""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pandas as pd
import pytest

from annotmix.bench import drawing, ranking, sheets
from annotmix.bench.comparing import compare_two
from annotmix.bench.paper import paper_figures
from annotmix.bench.results import collect
from annotmix.bench.score_tables import Cell, make_tables, mark
from annotmix.bench.store import Store
from annotmix.bench.study_files import parse_study

STUDY = """
seeds: 3
datasets: [mgc, {name: labelme-vgg16, alias: label_me}, aloi]
approaches:
  - true-base
  - mv-base
  - {approach: annot-mix, label: "a|b_c & <α>"}
  - crowd-layer
  - ds-mixup
"""
MEANS = {"true-base": 0.95, "mv-base": 0.70, "annot-mix": 0.80, "crowd-layer": 0.60, "ds-mixup": 0.75}


@pytest.fixture
def study():
    return parse_study(STUDY, "mine", "mine.yaml")


@pytest.fixture
def path(tmp_path, study, fill):
    path = tmp_path / "store.sqlite"
    fill(path, study.narrowed(["mgc", "label_me"]), lambda run: MEANS[run.approach.name])
    return path


def test_table_marks_and_notes(study, path):
    with Store(path) as store:
        tables = make_tables(collect(study, store))
    last = dict(tables[0].rows)
    noise = np.array([0.01 * np.random.default_rng(seed).normal() for seed in range(3)])
    expected = f"{100 * (0.8 + noise.mean()):.1f} ± {100 * noise.std(ddof=1):.1f}"
    assert tables[0].heads == ["approach", "mgc", "label_me"]
    assert last["a|b_c & <α>"][0] == sheets.Shown(expected, best=True)
    assert last["ds-mixup"][0].second
    assert last["crowd-layer"][1].worse
    assert last["true-base"][0] == sheets.Shown(last["true-base"][0].text)
    assert [sheet.title for sheet in tables] == [
        f"mine: clf-acc [%] after the {epoch} epoch" for epoch in ("last", "best")
    ]
    assert "Without runs in the store, so not shown: aloi." in tables[0].notes
    assert tables[0].notes[-1] == "Made by annotmix 0.1.0 aaaaaaa (30 runs)."


def test_missing_seeds_are_said(study, path):
    import sqlite3

    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM run WHERE dataset = 'mgc' AND approach = 'ds-mixup' AND seed > 0")
    with Store(path) as store:
        (sheet,) = make_tables(collect(study, store), epochs=["last"])
    assert dict(sheet.rows)["ds-mixup"][0].text.count("±") == 0
    assert any("mgc (ds-mixup 1 of 3)" in note for note in sheet.notes)


def test_annotator_scores_say_where_and_undefined_ones_are_left_out(study, path):
    with Store(path) as store:
        results = collect(study, store)
    (sheet,) = make_tables(results, "annot-acc", ["last"])
    assert sheet.notes[0] == "mgc, label_me: on the training set."
    assert make_tables(results, "perf-auroc", ["last"])[0].rows == []
    with pytest.raises(ValueError, match="no score 'acc'"):
        make_tables(results, "acc")


def test_ties_are_marked_alike():
    cells = {name: Cell(mean, None) for name, mean in zip("abcd", (80.04, 79.96, 70.0, 60.0), strict=True)}
    mark(cells, list("abcd"), "c")
    assert [cells[name].best for name in "abcd"] == [True, True, False, False]
    assert [cells[name].second for name in "abcd"] == [False, False, True, False]
    assert [cells[name].worse for name in "abcd"] == [False, False, False, True]


def test_every_format_escapes_names(study, path):
    with Store(path) as store:
        tables = make_tables(collect(study, store), epochs=["last"], paper=True)
    terminal, markdown, text, latex = (sheets.render(tables, form) for form in sheets.FORMATS)
    assert "a|b_c & <α>" in terminal
    assert "¹" in terminal
    assert "| a\\|b\\_c &amp; &lt;α&gt; | – | **" in markdown
    assert "<u>" in markdown
    assert r"a\textbar{}b\_c \& \textless{}$\alpha$\textgreater{} & -- & \textbf{" in latex
    assert r"\underline{" in latex
    assert latex.count(r"\\") == 6
    table = pd.read_csv(io.StringIO(text)).set_index(["approach", "dataset"])
    assert table.loc[("mv-base", "mgc"), "paper_mean"] == 66.1
    assert table.loc[("a|b_c & <α>", "mgc"), "clf_acc_mean"] == pytest.approx(80, abs=2)
    assert list(table["seeds"].unique()) == [3]


def test_paper_figures():
    assert paper_figures("clf-acc", "last")["annot-mix", "mgc"] == (73.8, 1.1)
    assert paper_figures("clf-acc", "last")["alpha=0", "mgc"] == (74.5, 1.7)
    assert len(paper_figures("clf-acc", "best")) == 13 * 11 + 6 * 11
    assert paper_figures("perf-auroc", "last")["crowd-layer", "letter"] == (78.0, 1.5)
    assert paper_figures("annot-acc", "last") == {}


def test_newest_run_counts_and_versions_compare(study, path, fill):
    fill(
        path,
        study.narrowed(["mgc"]),
        lambda run: MEANS[run.approach.name] + 0.05,
        commit="b" * 40,
        dirty=True,
    )
    with Store(path) as store:
        versions = compare_two(study, store, "aaaaaa", "bbbb+", "clf-acc", "last")
        approaches = compare_two(study, store, "mv-base", "ds-mixup", "clf-acc", "last")
        with pytest.raises(ValueError, match=r"'bbbb' is no approach .* and no version"):
            compare_two(study, store, "aaaa", "bbbb", "clf-acc", "last")
        (sheet,) = make_tables(collect(study, store), epochs=["last"])
    assert len(versions.rows) == 5
    assert versions.records["difference"].to_numpy() == pytest.approx(5.0)
    assert [cell.text for cell in versions.rows[0][1]][3:] == ["+5.0", "+5.0 to +5.0", "3 of 3"]
    assert approaches.records["difference"].to_numpy() == pytest.approx(5.0)
    mgc, labelme = (float(dict(sheet.rows)["mv-base"][i].text.split()[0]) for i in (0, 1))
    assert mgc - labelme == pytest.approx(5.0, abs=0.11)


def _digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


ALPHA = "".join(f"  - {{approach: annot-mix, label: alpha={a}, alpha: {a}}}\n" for a in (0, 1, 2))
SAME = "  - {approach: annot-mix, label: same, alpha: 1, pairing: within}\n"
FIGURES = {
    "curves": f"history: true\nseeds: 2\ndatasets: [mgc]\napproaches:\n{ALPHA}",
    "alpha": f"seeds: 2\ndatasets: [mgc, letter]\napproaches:\n{ALPHA}{SAME}",
    "noise": "seeds: 2\ndatasets: [cifar10h-10, cifar10h-20]\napproaches: [mv-base, annot-mix, conal]",
    "ranks": "seeds: 1\ndatasets: [mgc, letter, aloi, digits, cifar10n]\n"
    "approaches: [mv-base, annot-mix, conal]",
}


@pytest.mark.parametrize("name", list(FIGURES))
def test_figures_are_drawn_twice_alike(tmp_path, fill, name):
    study, path = parse_study(FIGURES[name], "mine", "mine.yaml"), tmp_path / "store.sqlite"
    fill(path, study, lambda run: MEANS.get(run.approach.name, 0.65))
    with Store(path) as store:
        for folder in ("one", "two"):
            (line,) = drawing.draw_study(study, store, tmp_path / folder, "annot-mix", ["true-base"])
            assert line.startswith("Written: ")
    first = _digests(tmp_path / "one")
    assert list(first) == [f"mine-{name}.{kind}" for kind in ("pdf", "png", "svg")]
    assert first == _digests(tmp_path / "two")


def test_no_rank_map_of_too_few_datasets(study, path, tmp_path):
    with Store(path) as store:
        (line,) = drawing.draw_study(study, store, tmp_path / "figures", "annot-mix", [])
    assert line.startswith("No rank map: There is no approach 'annot-mix'")
    with Store(path) as store:
        results = collect(study, store)
    scores = ranking.from_results(results, "clf-acc", ["last"])
    (line,) = drawing.draw_ranks(scores, tmp_path, "x", "mv-base", [])
    assert line.startswith("No rank map: 2 datasets are too few")
