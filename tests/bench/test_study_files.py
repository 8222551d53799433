"""Studies from YAML: what is read, and errors that name the line."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotmix.bench.study_files import StudyError, parse_study, read_study, shipped_studies

GOOD = """\
description: a test
seeds: [3, 5]
datasets:
  - digits
  - {name: labelme-vgg16, alias: labelme, settings: {max_epochs: 2, lr: 1e-3}}
  - {name: trec6, encoder: "text:minilm"}
approaches:
  - mv-base
  - {approach: annot-mix, alpha: 1}
  - {approach: annot-mix, label: strong, alpha: 4, lr: 0.1}
"""


def test_a_study_is_read():
    study = parse_study(GOOD, "mine", "mine.yaml")
    assert [entry.label for entry in study.datasets] == ["digits", "labelme", "trec6"]
    assert [entry.label for entry in study.approaches] == ["mv-base", "annot-mix (alpha=1)", "strong"]
    assert study.seeds == (3, 5)
    assert not study.history
    assert len(study.runs()) == 18
    assert study.datasets[1].settings == {"max_epochs": 2, "lr": 1e-3}


def test_a_study_names_the_values_of_a_network():
    text = GOOD.replace("lr: 1e-3", "hidden: [64], dropout: 0, weight_decay: 1e-3")
    run = parse_study(text, "mine", "mine.yaml").narrowed(["labelme"]).runs()[0]
    network = {"hidden": [64], "dropout": 0.0, "weight_decay": 1e-3}
    assert run.configuration["parameters"].items() >= network.items()
    with pytest.raises(StudyError, match=r"dropout must be like 0.0, found 'auto'"):
        parse_study(GOOD.replace("lr: 1e-3", "dropout: auto"), "mine", "mine.yaml")


def test_an_approach_can_be_for_some_of_the_datasets():
    text = GOOD.replace("alpha: 4", "alpha: 4, only: [labelme]")
    study = parse_study(text, "mine", "mine.yaml")
    assert len(study.runs()) == 14
    assert {run.dataset.label for run in study.runs() if run.approach.label == "strong"} == {"labelme"}
    assert study.narrowed(["labelme"]).runs() == [r for r in study.runs() if r.dataset.label == "labelme"]


@pytest.mark.parametrize("name", shipped_studies())
def test_shipped_studies_are_valid(name):
    study = read_study(name)
    assert study.description
    assert len({run.key for run in study.runs()}) == len(study.runs())


def test_the_paper_is_covered():
    assert {"benchmark", "ablation", "noise", "curves", "quick"} <= set(shipped_studies())
    approaches = {entry.name for entry in read_study("benchmark").approaches}
    assert len(approaches) >= 13
    assert len(read_study("benchmark").datasets) == 11
    assert read_study("curves").history
    assert {entry.name for entry in read_study("quick").datasets} == {"digits"}


def test_studies_share_runs_that_are_the_same():
    """annot-mix has alpha=1 by default, so Table 2's column is Table 3's row."""
    benchmark, ablation = (read_study(n).narrowed(["mgc"]) for n in ("benchmark", "ablation"))
    rows = {run.key for run in benchmark.runs() if run.approach.name == "annot-mix"}
    assert rows == {run.key for run in ablation.runs() if run.approach.label == "alpha=1"}


def test_labels_are_no_part_of_a_run_but_parameters_are():
    def key(entry: str) -> str:
        text = f"seeds: 1\ndatasets: [digits]\napproaches:\n  - {entry}\n"
        return parse_study(text, "s", "s.yaml").runs()[0].key

    assert key("annot-mix") == key("{approach: annot-mix, label: x, alpha: 1, eta: 0.9}")
    assert (
        len({key("annot-mix"), key("{approach: annot-mix, alpha: 2}"), key("{approach: annot-mix, lr: 1}")})
        == 3
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("- mv-base", "- mv-bsae", "line 8: Unknown approach 'mv-bsae'. Did you mean 'mv-base'?"),
        ("alpha: 1}", "alhpa: 1}", "line 9: annot-mix has no parameter 'alhpa'. Did you mean 'alpha'?"),
        ("alpha: 1}", "alpha: -1}", "line 9: annot-mix: alpha must be 0"),
        ("alpha: 1}", "alpha: much}", "line 9: alpha must be like 1.0, found 'much'."),
        ("alpha: 1}", "alpha: true}", "line 9: alpha must be like 1.0, found True."),
        ("alpha: 1}", "only: [mgc]}", "line 9: only: 'mgc' is not among the datasets 'digits', 'labelme',"),
        ("alpha: 1}", "only: digits}", "line 9: only must be a list of datasets, found 'digits'."),
        ("alpha: 1}", "random_state: 1}", "line 9: annot-mix has no parameter 'random_state'."),
        ("- digits", "- digit", "line 4: There is no dataset 'digit'. Did you mean 'digits'?"),
        ("- digits", "- {alias: x}", "line 4: the dataset has no name."),
        ("- digits", "- [digits]", "line 4: expected 'name: value' pairs"),
        ("- digits", "- labelme-vgg16\n  - {name: labelme-vgg16}", "line 5: 'labelme-vgg16' stands twice"),
        ('"text:minilm"', '"image:x"', "line 6: 'image:x' cannot encode trec6, which is text."),
        ('"text:minilm"', "minilm", "line 6: encoder must be"),
        (', encoder: "text:minilm"', "", "line 6: trec6 needs an encoder"),
        ("[3, 5]", "[3, 3]", "line 2: seeds must be"),
        ("[3, 5]", "0", "line 2: seeds must be"),
        ("[3, 5]", "ten", "line 2: seeds must be"),
        ("description", "descriptoin", "line 1: a study has no 'descriptoin'. Did you mean 'description'?"),
        ("a test", "[a test", "line 2: not YAML"),
        ("  - digits", "  - &a digits\n  - *a", "aliases"),
        ("approaches:", "history: true\nsettings:", "line 9: a study has no 'settings'."),
    ],
)
def test_mistakes_name_the_line(old, new, message):
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    with pytest.raises(StudyError) as caught:
        parse_study(text, "mine", "mine.yaml")
    assert str(caught.value).startswith("mine.yaml")
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["", "- a", "datasets: [digits]", "x: !!python/object/apply:os.getcwd []"])
def test_what_is_no_study(text):
    with pytest.raises(StudyError):
        parse_study(text, "mine", "mine.yaml")


_atoms = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_trees = st.recursive(
    _atoms,
    lambda t: st.lists(t, max_size=3) | st.dictionaries(st.text(max_size=8), t, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(
    st.text(max_size=80)
    | _trees.map(str)
    | st.builds(lambda d, a: f"datasets: {d}\napproaches: {a}", _trees, _trees)
)
def test_any_text_is_a_study_or_a_study_error(text):
    with suppress(StudyError):  # any other exception fails the test
        assert parse_study(text, "mine", "mine.yaml").runs()


def test_narrowing():
    study = parse_study(GOOD, "mine", "mine.yaml")
    narrow = study.narrowed(["labelme-vgg16"], ["strong", "mv-base"], 1)
    assert [str(run) for run in narrow.runs()] == ["labelme, mv-base, seed 3", "labelme, strong, seed 3"]
    assert len(study.narrowed(approaches=["annot-mix"]).approaches) == 2
    with pytest.raises(ValueError, match=r"no dataset 'labelm'\. Did you mean 'labelme'"):
        study.narrowed(["labelm"])
    with pytest.raises(ValueError, match="between 1 and 2"):
        study.narrowed(seeds=3)


def test_unknown_study_names_the_nearest():
    with pytest.raises(StudyError, match="Did you mean 'benchmark'"):
        read_study("benchmrk")
