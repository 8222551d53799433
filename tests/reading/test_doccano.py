"""doccano's exports as version 1.8 writes them: a ZIP file with one file per annotator."""

from __future__ import annotations

import zipfile

import pandas as pd
import pytest

from annotmix.reading import read_labels

EXPORT = {
    "admin": [(1, "Such a great film", ["good"]), (2, "A dull mess", ["bad", "long"]), (3, "C", ["C#"])],
    "ann": [(1, "Such a great film", ["long"]), (2, "A dull mess", ["bad"]), (3, "C", [])],
}
LABELS = {("1", "admin", "good"), ("3", "admin", "C#"), ("1", "ann", "long"), ("2", "ann", "bad")}


def text_of(rows, ending):
    """A file after the rules of doccano's formatters and writers."""
    table = pd.DataFrame(rows, columns=["id", "text", "label"]).assign(Comments=[[] for _ in rows])
    if ending == "csv":
        joined = {name: table[name].map(lambda own: "#".join(sorted(own))) for name in ("label", "Comments")}
        return table.assign(**joined).to_csv(index=False)
    table["label"] = table["label"].map(sorted)
    return table.to_json(orient="records", force_ascii=False, lines=ending == "jsonl")


def triples(labelled):
    return set(
        labelled.annotations.to_long()[["item", "annotator", "label"]].itertuples(index=False, name=None)
    )


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv"])
@pytest.mark.parametrize("packed", [True, False])
def test_each_form(tmp_path, ending, packed):
    if packed:
        path = tmp_path / "export.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, rows in EXPORT.items():
                archive.writestr(f"{name}.{ending}", text_of(rows, ending))
        paths = [path]
    else:
        paths = [tmp_path / f"{name}.{ending}" for name in EXPORT]
        for path, rows in zip(paths, EXPORT.values(), strict=True):
            path.write_text(text_of(rows, ending))
    labelled = read_labels(paths)
    assert labelled.format == "doccano"
    assert triples(labelled) == LABELS
    assert "1 entries with several classes were left out." in labelled.notes
    assert labelled.texts["1"] == "Such a great film"


def test_shared_labels_have_no_annotator(tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_text(text_of(EXPORT["admin"], "jsonl"))
    with pytest.raises(ValueError, match="share their labels, and does not say who gave which"):
        read_labels([path])
