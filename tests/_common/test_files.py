import json
from pathlib import Path

import numpy as np
import pytest

from annotmix._common.files import (
    load_array,
    save_array,
    to_json,
    write_atomically,
    write_json,
    write_text,
)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def half(temporary: str) -> None:
        Path(temporary).write_text("ha")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, half)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_text_keeps_its_line_ends_and_its_folder_is_made(tmp_path):
    path = tmp_path / "new" / "folder" / "a.csv"
    write_text(path, "é\r\nb\n")
    assert path.read_bytes() == "é\r\nb\n".encode()


def test_json_of_numpy_values_paths_and_missing_numbers(tmp_path):
    value = {1: np.int64(3), "a": (np.float32(0.5), np.nan, np.inf), "p": Path("x"), "b": np.array([True])}
    expected = {"1": 3, "a": [0.5, None, None], "p": "x", "b": [True]}
    assert to_json(value) == expected
    write_json(tmp_path / "a.json", value)
    assert json.loads((tmp_path / "a.json").read_text()) == expected


def test_arrays_come_back_and_damage_is_named(tmp_path):
    path = tmp_path / "a.npy"
    array = np.arange(6.0).reshape(2, 3)
    save_array(path, array)
    np.testing.assert_array_equal(load_array(path), array)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="not a whole NPY file"):
        load_array(path)
    for shape in (
        "(1000000000, 14000)",
        "(9999999999999999999999,)",
        "(-1, 3)",
        "(0, -5)",
        "(((",
        "(1,) * 3",
        "3",
    ):
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(16))
        with pytest.raises(ValueError, match=r"not a whole NPY file") as error:
            load_array(path)
        assert len(str(error.value).splitlines()) == 1
    for content in (
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff{",
        b"\x93NUMPY\x07\x00\x01\x00{",
        b"junk" * 9,
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a whole NPY file"):
            load_array(path)
    with pytest.raises(ValueError, match="pickle"):
        save_array(path, [object()])
