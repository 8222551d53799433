"""Headers of safetensors files: sizes that do not fit are found before any tensor is read."""

from __future__ import annotations

import json
import struct

import pytest
import torch
from safetensors.torch import save_file

from annotmix.training import checkpoints
from annotmix.training.tensor_files import ModelFileError, load_tensors, save_tensors
from annotmix.training.tensor_layout import read_layout, require_layout

ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def write(path, header, n_bytes):
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(content)) + content)
    with open(path, "r+b") as file:
        file.truncate(8 + len(content) + n_bytes)
    return path


def test_the_layout_of_a_file_of_the_library(tmp_path):
    tensors = {
        "a": torch.zeros(2, 3), "b": torch.zeros((), dtype=torch.int64),
        "c": torch.zeros(0, 4, dtype=torch.bool),
        "d": torch.zeros(5, dtype=torch.bfloat16),
    }  # fmt: skip
    save_file(tensors, tmp_path / "x", {"facts": "{}"})
    layout, metadata = read_layout(tmp_path / "x")
    assert metadata == {"facts": "{}"}
    assert {name: tuple(entry.shape) for name, entry in layout.items()} == {
        name: tuple(tensor.shape) for name, tensor in tensors.items()
    }
    require_layout(layout, tensors)
    require_layout(layout, tensors | {"a": torch.zeros(0, 3)})  # grows with the labels
    for wrong in (
        {"a": torch.zeros(2, 4)},
        {"a": torch.zeros(0, 4)},
        {"b": torch.zeros(())},
        {"e": torch.zeros(1)},
    ):
        with pytest.raises(ValueError, match=r"tensor '[abe]'"):
            require_layout(layout, tensors | wrong)
    del tensors["d"]
    with pytest.raises(ValueError, match="an unknown tensor 'd'"):
        require_layout(layout, tensors)


@pytest.mark.parametrize(
    ("header", "n_bytes"),
    [
        ({"a": ONE}, 7),
        ({"a": ONE}, 20 << 30),
        ({}, 20 << 30),
        ({"a": {**ONE, "shape": [1 << 40]}}, 8),
        ({"a": {**ONE, "data_offsets": [0, 4]}}, 8),
        ({"a": ONE, "b": ONE}, 8),
        ({"a": {**ONE, "data_offsets": [8, 16]}}, 16),
        ({"a": {**ONE, "shape": [-2]}}, 8),
        ({"a": {**ONE, "shape": [2**53, 2**53]}}, 8),
        ({"a": {**ONE, "dtype": "PTR"}}, 8),
        ({"a": {**ONE, "more": 1}}, 8),
        ({"__metadata__": {"x": 1}}, 0),
        ([], 0),
        (b"{", 0),
        (b"[" * 100_000, 0),
        (b"\xff", 0),
    ],
)
def test_headers_that_do_not_fit_the_file(tmp_path, header, n_bytes):
    path = write(tmp_path / "x", header, n_bytes)
    with pytest.raises((ValueError, RecursionError)):
        read_layout(path)
    with pytest.raises(ModelFileError, match="is damaged or not written by annotmix"):
        load_tensors(path)


def test_a_checkpoint_whose_facts_make_no_sense(tmp_path):
    model = torch.nn.Linear(2, 1)
    optimizer = checkpoints.RAdam(model, 0.0)
    run = checkpoints.Training(1, [{"epoch": 1, "loss": 0.5}], None)
    checkpoints.save_checkpoint(tmp_path, model, optimizer, run, "same")
    assert checkpoints.resume(tmp_path, model, optimizer, "same").history == run.history
    tensors, facts = load_tensors(tmp_path / checkpoints.FILE)
    for wrong in (
        {"epoch": -1},
        {"epoch": "1"},
        {"history": [1]},
        {"best_epoch": 1},
        {"best_score": None},
        {"x": 1},
    ):
        save_tensors(tmp_path / checkpoints.FILE, tensors, facts | wrong)
        with pytest.raises(ModelFileError, match=r"damaged .* Remove it to start again"):
            checkpoints.resume(tmp_path, model, optimizer, "same")
    save_tensors(tmp_path / checkpoints.FILE, tensors | {"huge": torch.zeros(9)}, facts)
    with pytest.raises(ModelFileError, match="an unknown tensor 'huge'"):
        checkpoints.resume(tmp_path, model, optimizer, "same")
