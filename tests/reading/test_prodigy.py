"""Prodigy's export with the fields that it writes today."""

from __future__ import annotations

from helpers.exports import lines

from annotmix.reading import read_labels


def answer(text_hash, annotator, accept, time):
    return {
        "text": f"text {text_hash}", "_input_hash": text_hash, "_task_hash": -text_hash, "_is_binary": False,
        "options": [{"id": "good", "text": "good"}, {"id": "bad", "text": "bad"}], "_view_id": "choice",
        "config": {"choice_style": "single"}, "accept": accept, "answer": "accept", "_timestamp": time,
        "_annotator_id": annotator, "_session_id": annotator,
    }  # fmt: skip


def test_times_are_kept_and_the_newest_answer_counts(tmp_path):
    path = tmp_path / "answers.jsonl"
    records = [
        answer(1, "mood-ann", ["good"], 1707211049),
        answer(1, "mood-ann", ["bad"], 1707211000),
        answer(2, "2024-02-06_10-17-19", ["bad"], 1707211050),
    ]
    path.write_text(lines(records))
    labelled = read_labels([path])
    assert labelled.format == "prodigy"
    assert labelled.annotations.to_long().assign(time=labelled.time).to_numpy().tolist() == [
        ["1", "mood-ann", "good", 1707211049.0],
        ["2", "2024-02-06_10-17-19", "bad", 1707211050.0],
    ]
    assert any(note.startswith("1 session has no name") for note in labelled.notes)


def test_what_is_no_choice_is_counted_by_its_kind(tmp_path):
    path = tmp_path / "answers.jsonl"
    cases = [
        (["good"], "accept"), (["good", "bad"], "accept"), ([], "accept"),
        ([], "reject"), (["bad"], "reject"), (["bad"], "ignore"),
    ]  # fmt: skip
    records = [answer(n, "mood-ann", own, 0) | {"answer": said} for n, (own, said) in enumerate(cases)]
    path.write_text(lines(records))
    labelled = read_labels([path])
    assert labelled.annotations.to_long().to_numpy().tolist() == [["0", "mood-ann", "good"]]
    assert labelled.notes[1:] == [
        "1 answer with several choices was left out.",
        "1 answer without a choice was left out.",
        "2 rejected questions were left out.",
        "1 ignored answer was left out.",
        "--multi-label reads answers with several classes.",
    ]
