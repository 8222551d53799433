"""Table 1: the figures of the files at hand beside those of the paper."""

from __future__ import annotations

import pytest

from annotmix.datasets import overview
from annotmix.datasets.catalogue import SPECS
from annotmix.datasets.overview import count, describe, listing, table
from annotmix.datasets.spec import Figures


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("mgc", "mgc/music_genre_gold.csv"),
        ("labelme", "labelme/answers.txt"),
        ("cifar10n", "cifar10n/CIFAR-10_human.pt"),
        ("cifar100n", "cifar100n/CIFAR-100_human.pt"),
    ],
)
def test_labels_of_people_are_as_in_the_paper(name, file, data_dir, data_file):
    data_file(file)
    found, _ = count(name, data_dir)
    paper = SPECS[name].paper
    for figure in ("train", "classes", "annotators"):
        assert getattr(found, figure) == getattr(paper, figure), figure
    assert found.percent_false == pytest.approx(paper.percent_false, abs=0.06)
    assert found.labels_per_item == pytest.approx(paper.labels_per_item, abs=0.06)
    if name != "mgc":  # 2945 labels of 44 people are 67 a person, whatever the paper says
        assert found.labels_per_annotator == pytest.approx(paper.labels_per_annotator, abs=0.6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cifar10h-10", Figures(1708, None, None, 10, 10, 1767 / 1708, 176.7, 78.49)),
        ("cifar10h", Figures(8550, None, None, 10, 100, 19_219 / 8550, 192.19, 21.67)),
    ],
)
def test_least_accurate_people_of_the_copy_at_hand(name, expected, data_dir, data_file):
    """The copy keeps 500 000 of 514 200 labels, so its figures are not quite those of the paper."""
    data_file("cifar10h/cifar10h-raw.zip")
    found, note = count(name, data_dir)
    for figure in ("train", "classes", "annotators", "labels_per_item", "labels_per_annotator"):
        assert getattr(found, figure) == pytest.approx(getattr(expected, figure)), figure
    assert found.percent_false == pytest.approx(expected.percent_false, abs=0.01)
    assert note == "missing: cifar10/cifar-10-batches-py"


@pytest.mark.parametrize(
    ("name", "file", "sizes"),
    [
        ("trec6", "trec6/TREC_10.label", (4952, 500, 500, 6)),
        ("flowers102", "flowers102/setid.mat", (1020, 1020, 6149, 102)),
    ],
)
def test_simulated_annotators_of_texts_and_photos_are_not_counted(name, file, sizes, data_dir, data_file):
    data_file(file)
    found, note = count(name, data_dir)
    assert found == Figures(*sizes)
    assert "encoder=" in note


def test_nothing_at_hand(tmp_path):
    assert count("aloi", tmp_path) == (Figures(), "missing: aloi/aloi.bz2")
    text = listing(tmp_path)
    assert str(tmp_path) in text.splitlines()[-1]
    rows = {line.split("|")[1].strip(): line.split("|")[3].strip() for line in text.splitlines()[2:-2]}
    assert rows.pop("digits") == rows.pop("digits-images") == "built in"
    assert set(rows) == set(SPECS) - {"digits", "digits-images"}
    assert set(rows.values()) == {"no"}


def test_what_is_at_hand_and_where(data_dir, data_file):
    data_file("cifar10n/CIFAR-10_human.pt")
    found = {
        name: overview.presence(SPECS[name], [data_dir]) for name in ("mgc", "cifar10n", "agnews", "aloi")
    }
    assert found["mgc"] == ("yes", str(data_dir))
    assert found["cifar10n"] == ("labels only", str(data_dir))
    assert found["agnews"][0] == "in part"
    assert found["aloi"] == ("no", "–")


def test_table_of_two(data_dir, data_file):
    data_file("mgc/music_genre_gold.csv")
    lines = table(["mgc", "digits"], data_dir).splitlines()
    assert len({len(line) for line in lines}) == 1
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[2] == ["mgc", "files", "700", "100", "200", "10", "44", "4.2", "67", "44.0"]
    assert cells[3] == ["", "paper", "700", "100", "200", "10", "44", "4.2", "70", "44.0"]
    assert cells[4][:7] == ["digits", "files", "1,197", "100", "500", "10", "20"]
    assert len(cells) == 5


def test_a_damaged_file_is_a_note_among_all_and_an_error_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(overview, "list_datasets", lambda: ["letter", "digits"])
    (tmp_path / "letter").mkdir()
    (tmp_path / "letter" / "letter-recognition.data").write_text("A,1\nB,x\n")
    text = table(None, tmp_path)
    assert "line 2: column 2 must be a finite number, found 'x'" in text.splitlines()[-1]
    assert "| digits" in text
    with pytest.raises(ValueError, match="line 2"):
        table(["letter"], tmp_path)


def test_description_of_one(data_dir, data_file, tmp_path):
    data_file("flowers102/setid.mat")
    text = describe("flowers102", data_dir)
    assert "Nilsback" in text
    assert "setid.mat, as published" in text
    assert "flowers102/jpg: missing; from https://www.robots.ox.ac.uk" in text


def test_a_copy_that_is_not_as_published(data_dir, data_file, tmp_path):
    data_file("trec6/TREC_10.label")
    (tmp_path / "trec6").mkdir()
    for name in ("TREC_10.label", "train_5500.label"):
        (tmp_path / "trec6" / name).write_bytes((data_dir / "trec6" / name).read_bytes() + b"\n")
    assert "TREC_10.label, NOT as published (checksum)" in describe("trec6", tmp_path)
