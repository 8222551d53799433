"""Files in a folder, and the names that labels have for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotmix.reading.image_names import image_ids

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
