"""Files in a folder, and the names that labels have for them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotmix.reading.image_names import image_ids, plain_name, stored_name

FOLDER = Path("photos")


def ids(files, wanted):
    return image_ids(FOLDER, [FOLDER / name for name in files], wanted)[0]


@pytest.mark.parametrize("wanted", [["a/1.jpg", "b/2.jpg"], ["1.jpg", "2.jpg"], ["1", "2"]])
def test_paths_names_and_stems(wanted):
    assert ids(["a/1.jpg", "b/2.jpg"], wanted) == wanted


@pytest.mark.parametrize(
    "address",
    [
        "/data/upload/12/ab12cd34-cat.jpg",
        "/data/upload/ab12cd34-cat.jpg",
        "https://labels.example.com/data/upload/12/ab12cd34-cat.jpg?token=7",
        "/data/local-files/?d=animals/cat.jpg",
        "/data/local-files/?d=somewhere/else/cat.jpg",
        "s3://bucket/animals/cat.jpg",
    ],
)
@pytest.mark.parametrize("files", [["cat.jpg", "dog.jpg"], ["animals/cat.jpg", "animals/dog.jpg"]])
def test_addresses_of_label_studio(address, files):
    assert ids(files, [address]) == [address, files[1]]


def test_an_uploaded_file_may_have_kept_its_new_name():
    address = "/data/upload/12/ab12cd34-my%20cat.jpg"
    assert ids(["ab12cd34-my cat.jpg"], [address]) == [address]
    assert ids(["my cat.jpg"], [address]) == [address]


def test_what_is_not_clear_is_not_matched():
    two = ["/data/upload/1/ab12cd34-cat.jpg", "/data/upload/1/99999999-cat.jpg"]
    clear = "/data/upload/1/ab12cd34-dog.jpg"
    assert ids(["cat.jpg", "dog.jpg"], [*two, clear]) == ["cat.jpg", clear]
    assert ids(["x/cat.jpg", "y/cat.jpg", "dog.jpg"], [two[0], clear]) == ["x/cat.jpg", "y/cat.jpg", clear]
    assert ids(["x/cat.jpg", "y/cat.jpg"], ["/data/local-files/?d=y/cat.jpg"])[1].endswith("?d=y/cat.jpg")


@given(st.lists(st.text() | st.sampled_from(["//[", "?d=", "/data/local-files/?d=../../cat.jpg"])))
def test_any_names_give_every_file_an_id_of_its_own(wanted):
    files = ["cat.jpg", "in/dog.jpg", "in/ab12cd34-cat.jpg"]
    found = ids(files, wanted)
    assert len(set(found)) == 3


def test_names_of_uploads_follow_the_rule_of_label_studio():
    """The pairs are names before and after the functions of Django 5.2 that Label Studio 1.23.2 uses."""
    names = {
        "digit 0.png": "digit_0.png",
        " led by a space.png": "_led_by_a_space.png",
        "john's portrait (2004).jpg": "johns_portrait_2004.jpg",
        "Käse & Brot.jpg": "Käse__Brot.jpg",
        "a#b%20c.png": "ab20c.png",
        "x-y_z.1.png": "x-y_z.1.png",
        "tab\there.png": "tabhere.png",
    }
    assert {name: stored_name(name) for name in names} == names
    addresses = [f"/data/upload/2/911f96{n:02d}-{quote(name)}" for n, name in enumerate(names.values())]
    found = image_ids(FOLDER, [FOLDER / name for name in names], addresses)
    assert found.ids == addresses
    assert not found.unclear


def test_a_long_name_is_cut_by_label_studio():
    long, other = "a" * 120 + ".png", "b" * 120 + ".png"
    stored = "911f9667-" + "a" * (100 - len("upload/2/911f9667-_x1Y2z3A.png")) + "_x1Y2z3A.png"
    assert len("upload/2/" + stored) == 100
    address = f"/data/upload/2/{stored}"
    assert ids([long, other], [address]) == [address, other]
    unclear = image_ids(FOLDER, [FOLDER / long, FOLDER / ("a" * 110 + ".png")], [address]).unclear
    assert unclear == {address: [long, "a" * 110 + ".png"]}


def test_two_pictures_with_the_same_stored_name_are_not_guessed():
    two = ["/data/upload/1/ab12cd34-digit_0.png", "/data/upload/1/99999999-digit_0.png"]
    clear = "/data/upload/1/12345678-digit_1.png"
    files = ["digit 0.png", "digit_0.png", "digit 1.png"]
    for wanted in ([*two, clear], [two[0], clear]):
        names = image_ids(FOLDER, [FOLDER / name for name in files], wanted)
        assert names.ids == ["digit 0.png", "digit_0.png", clear]
        assert names.unclear == {item: files[:2] for item in wanted if item != clear}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/data/upload/1/ab12cd34-digit_0.png", "digit 0.PNG"),
        ("photos/Cat-7.jpeg", "cat 7.jpg"),
        ("007", "7"),
        ("Käse", "kase"),
    ],
)
def test_similar_names_are_alike(one, other):
    assert plain_name(one) == plain_name(other) != ""
