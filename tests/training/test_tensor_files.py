"""Saved models: there and back, and every way in which a file can be broken."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.interrupted import as_nobody, exit_code, fork, public_folder
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from annotmix._common.files import write_atomically
from annotmix._common.locks import hold
from annotmix.training import tensor_files
from annotmix.training.tensor_files import (
    ModelFileError,
    load_model,
    load_tensors,
    save_model,
    save_tensors,
)

FACTS = {
    "approach": "annot-mix",
    "classes": ["Katze", "собака", "🐟"],
    "lr": 0.1,
    "none": None,
    "nested": {"a": [1]},
}


def tensors(seed: int = 0) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    return {
        "w": torch.randn(3, 4, generator=g),
        "double": torch.randn(2, generator=g, dtype=torch.float64),
        "steps": torch.tensor(7 + seed),
        "empty": torch.zeros(0, 5),
    }


def assert_holds(folder: Path, seed: int, facts: dict = FACTS) -> None:
    found, read = load_model(folder)
    assert read == facts
    expected = tensors(seed)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def meta(folder: Path) -> dict:
    return json.loads((folder / "model.json").read_text("utf-8"))


def rewrite(folder: Path, **changes) -> None:
    (folder / "model.json").write_text(json.dumps(meta(folder) | changes), "utf-8")


@pytest.fixture
def model(tmp_path) -> Path:
    folder = tmp_path / "model"
    save_model(folder, tensors(0), FACTS)
    return folder


# ---------------------------------------------------------------- there and back


def test_round_trip(model):
    assert_holds(model, 0)
    assert files(model) == sorted(["model.json", meta(model)["weights"]])


def test_saving_again_replaces_the_model_and_leaves_nothing_behind(model):
    save_model(model, tensors(1), {"other": 1})
    assert_holds(model, 1, {"other": 1})
    assert len(files(model)) == 2


def test_saving_the_same_model_again(model):
    before = files(model)
    save_model(model, tensors(0), FACTS)
    assert files(model) == before
    assert_holds(model, 0)


def test_folders_are_made(tmp_path):
    save_model(str(tmp_path / "a" / "b"), tensors(), FACTS)
    assert_holds(tmp_path / "a" / "b", 0)


def test_other_files_in_the_folder_are_left_alone(model):
    (model / "notes.txt").write_text("mine")
    (model / "weights.bin").write_text("mine too")
    save_model(model, tensors(1), FACTS)
    assert {"notes.txt", "weights.bin"} <= set(files(model))


def test_weights_that_are_shared_or_views(tmp_path):
    layer = nn.Linear(3, 3)
    tied = nn.ModuleDict({"a": layer, "b": layer})
    states = {**tied.state_dict(), "view": layer.weight.detach().T}
    save_model(tmp_path / "m", states, {})
    save_tensors(tmp_path / "t", states, {})
    for found in (load_model(tmp_path / "m")[0], load_tensors(tmp_path / "t")[0]):
        assert all(torch.equal(found[name], tensor) for name, tensor in states.items())
        assert found.keys() == states.keys()


def test_a_lone_surrogate_from_a_file_name_survives(tmp_path):
    facts = {"classes": ["caf\udce9", "\ud83d", "é"]}
    save_model(tmp_path / "m", tensors(), facts)
    assert load_model(tmp_path / "m")[1] == facts


def test_numbers_that_json_does_not_know_survive(tmp_path):
    save_model(tmp_path / "m", tensors(), {"nan": float("nan"), "inf": float("inf")})
    facts = load_model(tmp_path / "m")[1]
    assert np.isnan(facts["nan"])
    assert facts["inf"] == float("inf")


def test_files_can_be_read_by_those_the_umask_lets(model):
    umask = os.umask(0o027)
    try:
        save_model(model, tensors(1), FACTS)
        assert os.umask(0o027) == 0o027  # left as it was
    finally:
        os.umask(umask)
    assert {path.stat().st_mode & 0o777 for path in model.iterdir()} == {0o640}


# ---------------------------------------------------------------- broken models


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"3",
        b'"text"',
        b"{}",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"format": 2, "weights": "w", "sha256": "0"}',
        b'{"format": 2, "weights": 3, "sha256": "0", "model": {}}',
        b'{"format": 2, "weights": "w", "sha256": "0", "model": []}',
        b'{"format": ' + b"9" * 5000 + b"}",
    ],
)
def test_damaged_json(model, content):
    (model / "model.json").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model\.json' is damaged or not written by annotmix"):
        load_model(model)


def test_json_cut_anywhere(model):
    whole = (model / "model.json").read_bytes()
    for length in range(0, len(whole), 7):
        (model / "model.json").write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match="damaged"):
            load_model(model)


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir, lambda path: path.write_text("a file")])
def test_a_folder_that_is_no_model(tmp_path, make):
    make(tmp_path / "other")
    with pytest.raises(ModelFileError, match=r"other' holds no saved model: there is no model\.json"):
        load_model(tmp_path / "other")


@pytest.mark.parametrize("version", [0, 1, "2", None, [2]])
def test_another_format(model, version):
    rewrite(model, format=version)
    with pytest.raises(ModelFileError, match=r"has format .* annotmix reads 2"):
        load_model(model)


def test_missing_weights(model):
    name = meta(model)["weights"]
    (model / name).unlink()
    with pytest.raises(ModelFileError, match=f"names the weights file '{name}', which is not in the folder"):
        load_model(model)


def test_weights_outside_the_folder_are_not_read(model, tmp_path):
    whole = meta(model)
    outside = tmp_path / "x"
    outside.write_bytes((model / whole["weights"]).read_bytes())
    (model / "sub").mkdir()
    (model / "sub" / "x").write_bytes(outside.read_bytes())
    for name in ("../x", str(outside), "sub/x", "./../x", "", ".", "..", "sub", "x\0", "x" * 5000, "\udcff"):
        rewrite(model, weights=name)
        with pytest.raises(ModelFileError, match="which is not in the folder"):
            load_model(model)


@pytest.mark.parametrize("damage", ["bit", "cut", "longer", "empty"])
def test_damaged_weights(model, damage):
    path = model / meta(model)["weights"]
    content = bytearray(path.read_bytes())
    if damage == "bit":
        content[-3] ^= 1
    path.write_bytes({"cut": content[:-5], "longer": content + b"0", "empty": b""}.get(damage, content))
    with pytest.raises(ModelFileError, match="is damaged or truncated"):
        load_model(model)


@pytest.mark.parametrize("checksum", [None, 0, "", "0" * 64])
def test_another_checksum(model, checksum):
    rewrite(model, sha256=checksum)
    with pytest.raises(ModelFileError, match="checksum"):
        load_model(model)


class Explosive:
    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def test_a_pickle_is_never_read(model, tmp_path):
    bomb = Explosive()
    bomb.path = str(tmp_path / "exploded")
    for content in (pickle.dumps(bomb), b"", b"text"):
        (model / "bomb").write_bytes(content)
        rewrite(model, weights="bomb", sha256=hashlib.sha256(content).hexdigest())
        with pytest.raises(ModelFileError, match="not a safetensors file"):
            load_model(model)
    (tmp_path / "bomb").write_bytes(pickle.dumps(bomb))
    with pytest.raises(ModelFileError):
        load_tensors(tmp_path / "bomb")
    assert not (tmp_path / "exploded").exists()
    pickle.loads(pickle.dumps(bomb))  # it would have
    assert (tmp_path / "exploded").exists()


# ---------------------------------------------------------------- saving that fails


def no_space(*arguments, **more):
    raise OSError(28, "No space left on device")


def half_then_fail(error):
    def write(states, path, *arguments, **more):
        Path(path).write_bytes(b"half a fi")
        raise error

    return write


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SafetensorError("I/O error")])
def test_a_full_disk_while_writing_weights(model, monkeypatch, error):
    before = files(model)
    monkeypatch.setattr(tensor_files, "save_file", half_then_fail(error))
    with pytest.raises(
        OSError, match=rf"Could not save the model in '{model}': .*{error.args[-1]}.* untouched"
    ):
        save_model(model, tensors(1), {})
    assert files(model) == before
    assert_holds(model, 0)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_full_disk_while_writing_json(model, monkeypatch, seed):
    before = files(model)
    monkeypatch.setattr(Path, "write_bytes", no_space)
    with pytest.raises(OSError, match="No space left on device"):
        save_model(model, tensors(seed), {})
    monkeypatch.undo()
    assert files(model) == before
    assert_holds(model, 0)


@pytest.mark.parametrize("call", ["replace", "fsync", "chmod"])
def test_a_failing_system_call(model, monkeypatch, call):
    before = files(model)
    monkeypatch.setattr(tensor_files.os, call, no_space)
    with pytest.raises(OSError, match="No space left on device"):
        save_model(model, tensors(1), {})
    monkeypatch.undo()
    assert files(model) == before
    assert_holds(model, 0)


def test_facts_that_cannot_be_written_touch_nothing(model, tmp_path):
    before = files(model)
    with pytest.raises(TypeError):
        save_model(model, tensors(1), {"bad": object()})
    assert files(model) == before
    assert_holds(model, 0)
    with pytest.raises(TypeError):
        save_model(tmp_path / "new", tensors(1), {"bad": {1, 2}})
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_folder_that_cannot_be_made(tmp_path, below):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match=r"Could not save the model in .*file"):
        save_model(tmp_path / "file" / below, tensors(), {})
    assert (tmp_path / "file").read_text() == "mine"


def interrupt_call(monkeypatch, number: int) -> None:
    """Interrupted when a file is put in place: the weights written, the weights named, the JSON."""
    calls, replace = [], tensor_files.os.replace

    def interrupted(source, target):
        calls.append(target)
        if len(calls) == number:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(tensor_files.os, "replace", interrupted)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_an_interrupted_save_leaves_the_old_model_whole(model, monkeypatch, number, seed):
    interrupt_call(monkeypatch, number)
    with pytest.raises(KeyboardInterrupt):
        save_model(model, tensors(seed), {"new": 1})
    monkeypatch.undo()
    assert_holds(model, 0)
    assert not [name for name in files(model) if name.startswith(".") or "tmp" in name]
    save_model(model, tensors(2), {"newest": 2})
    assert_holds(model, 2, {"newest": 2})
    assert len(files(model)) == 2


def test_a_kill_right_after_the_weights_leaves_the_old_model_whole(model, monkeypatch):
    # as a kill does it: nothing is cleaned up any more
    new = model / "weights-0123456789abcdef.safetensors"
    save_file(tensors(1), new)
    for name in ("weights-0123.tmp", ".weights-0123.tmp.x1", ".model.json.x1", ".save.lock"):
        (model / name).write_text("{")
    assert_holds(model, 0)
    save_model(model, tensors(1), FACTS)
    assert_holds(model, 1)
    assert files(model) == sorted(["model.json", meta(model)["weights"]])


# ---------------------------------------------------------------- several at once


def save_often(folder: Path, seed: int, times: int) -> None:
    for _ in range(times):
        save_model(folder, tensors(seed), {"seed": seed})


def test_several_that_save_into_one_folder(tmp_path):
    folder = tmp_path / "model"
    children = [fork(save_often, folder, seed, 20) for seed in range(3)]
    assert [exit_code(child) for child in children] == [0] * 3
    facts = load_model(folder)[1]
    assert_holds(folder, facts["seed"], facts)
    assert files(folder) == sorted(["model.json", meta(folder)["weights"]])


def test_loading_beside_a_process_that_saves(model):
    save_model(model, tensors(0), {"seed": 0})
    child = fork(lambda: [save_often(model, number % 3, 1) for number in range(100)])
    seen = []
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        weights, facts = load_model(model)
        seen.append(facts["seed"])
        assert torch.equal(weights["steps"], tensors(facts["seed"])["steps"])
    assert len(set(seen)) > 1


def test_weights_that_are_replaced_while_they_are_read(model, monkeypatch):
    checksum, calls = tensor_files._sha256, []

    def replaced(path):
        calls.append(path)
        if len(calls) == 1:
            save_model(model, tensors(1), FACTS)
        return checksum(path)

    monkeypatch.setattr(tensor_files, "_sha256", replaced)
    assert_holds(model, 1)


def test_who_waits_too_long_is_told(model, monkeypatch):
    monkeypatch.setattr(tensor_files, "SAVING", 0.01)
    with (
        hold(model / ".save.lock", 0, "", ""),
        pytest.raises(OSError, match=rf"Could not save .* Another process is saving .*process {os.getpid()}"),
    ):
        save_model(model, tensors(1), {})
    assert_holds(model, 0)


def test_a_folder_that_may_not_be_written_can_be_loaded():
    def work():
        assert_holds(folder / "model", 0)
        with pytest.raises(OSError, match=r"Could not save the model .* Permission denied"):
            save_model(folder / "model", tensors(1), {})

    with public_folder() as folder:
        save_model(folder / "model", tensors(0), FACTS)
        (folder / "model").chmod(0o555)
        assert as_nobody(folder, work)


def test_write_atomically_leaves_the_umask_alone(tmp_path, monkeypatch):
    def forbidden(mask):
        raise AssertionError("other threads would write with another umask")

    monkeypatch.setattr(os, "umask", forbidden)
    write_atomically(tmp_path / "file", lambda path: Path(path).write_text("new"))
    assert (tmp_path / "file").stat().st_mode & 0o600 == 0o600


def test_write_atomically_cleans_up(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")
    for error in (ValueError("no"), KeyboardInterrupt()):

        def write(path, error=error):
            Path(path).write_text("half")
            raise error

        with pytest.raises(type(error)):
            write_atomically(target, write)
        assert files(tmp_path) == ["file"]
        assert target.read_text() == "old"
    write_atomically(target, lambda path: Path(path).write_text("new"))
    assert files(tmp_path) == ["file"]
    assert target.read_text() == "new"


# ---------------------------------------------------------------- one file


def test_tensors_and_facts_in_one_file(tmp_path):
    save_tensors(tmp_path / "c.safetensors", tensors(), {"epoch": 3, "name": "é"})
    found, facts = load_tensors(tmp_path / "c.safetensors")
    assert facts == {"epoch": 3, "name": "é"}
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors().items())
    assert files(tmp_path) == ["c.safetensors"]


def foreign(path: Path, metadata: dict | None) -> None:
    save_file({"w": torch.zeros(1)}, path, metadata)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\x80\x04junk" * 9),
        lambda path: foreign(path, None),
        lambda path: foreign(path, {"other": "{}"}),
        lambda path: foreign(path, {"annotmix": "{"}),
        lambda path: foreign(path, {"annotmix": "[1]"}),
        lambda path: foreign(path, {"annotmix": "[" * 100_000}),
    ],
)
def test_a_file_that_is_not_ours(tmp_path, make):
    make(tmp_path / "c")
    with pytest.raises(
        ModelFileError, match=r"c' is damaged or not written by annotmix .* Remove it to start again"
    ):
        load_tensors(tmp_path / "c")


def test_a_file_cut_short(tmp_path):
    save_tensors(tmp_path / "c", tensors(), {})
    whole = (tmp_path / "c").read_bytes()
    for length in (1, 8, 40, len(whole) // 2, len(whole) - 1):
        (tmp_path / "c").write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match="damaged"):
            load_tensors(tmp_path / "c")


def test_a_failing_save_keeps_the_old_file(tmp_path, monkeypatch):
    save_tensors(tmp_path / "c", tensors(0), {"epoch": 1})
    monkeypatch.setattr(tensor_files, "save_file", half_then_fail(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left on device"):
        save_tensors(tmp_path / "c", tensors(1), {"epoch": 2})
    assert load_tensors(tmp_path / "c")[1] == {"epoch": 1}
    assert torch.equal(load_file(tmp_path / "c")["w"], tensors(0)["w"])
    assert files(tmp_path) == ["c"]
