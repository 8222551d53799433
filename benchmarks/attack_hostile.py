"""Campaigns with crafted files: models larger than any machine, checkpoints that point elsewhere."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from attack_files import clear_command, replace_weights
from attack_mutations import NPY_HEADERS, npy, safetensors
from attack_tools import Trials, fitted, in_children, write_problem

HUGE = 20 << 30
Case = tuple[str, list[str], Callable[[Path], Any]]

# ---------------------------------------------------------------- hostile files


def hostile(trials: Trials) -> None:
    """Use files that claim more than any machine has."""
    write_problem(trials.folder)
    run = fitted(trials.folder / "whole")
    trials.count, trials.deadline = min(trials.count, len(_hostile_cases())), float("inf")
    in_children(trials, _hostile, str(run), str(trials.folder), most=1)


def _hostile(number: int, folder: Path, run: str, problem: str) -> str:
    name, words, change = _hostile_cases()[number]
    target = folder / "run"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(run, target)
    change(target)
    arguments = [word.format(run=target, problem=problem, folder=folder) for word in words]
    failure, _ = clear_command(*arguments, codes=(1,))
    return f"{name}: {failure}" if failure else ""


def _hostile_cases() -> list[Case]:
    """What it is, the command that reads it, and how a run is changed."""
    predict, report, items = (
        ["predict", "{run}", "{problem}/items.csv"],
        ["report", "{run}"],
        "{folder}/x.npy",
    )
    fit = ["fit", "{problem}/labels.csv", "--features", items, "--out", "{folder}/out", "--quiet"]
    header = HUGE.to_bytes(8, "little") + b"{}"
    cases: list[Case] = [
        ("layers of 30,000", predict, lambda run: _set_model(run, hidden=[30000, 30000])),
        ("200,000 layers", predict, lambda run: _set_model(run, hidden=[1] * 200_000)),
        ("a layer of 10 ** 30", predict, lambda run: _set_model(run, hidden=[10**30])),
        ("10 ** 9 annotators", predict, lambda run: _set_model(run, n_modelled=10**9)),
        ("10 ** 9 features", predict, lambda run: _set_model(run, shape=[10**9])),
        ("no shape", predict, lambda run: _set_model(run, shape=[])),
        ("a sparse file of 20 GB", predict, _sparse),
        ("a header of 20 GB", predict, lambda run: replace_weights(run / "model", header)),
        (
            "tensors of 20 GB",
            predict,
            lambda run: replace_weights(run / "model", safetensors(_TENSORS, b"0")),
        ),
        ("the same class twice", predict, _same_class),
        ("a mean of length one", predict, _short_mean),
    ]
    for words, name in (
        (predict, "model/model.json"),
        (predict, "model/preparation.json"),
        (report, "findings/findings.json"),
    ):
        cases.append(
            (f"a deep {name}", words, lambda run, name=name: (run / name).write_text('{"a":[' * 200_000))
        )
    for text in NPY_HEADERS:
        label, data = f"an array with the header {text.strip()[:60]!r}", npy(text, b"0" * 64)
        cases.append((f"{label}, fit", fit, lambda run, data=data: (run.parent / "x.npy").write_bytes(data)))
        cases.append((f"{label}, report", report, lambda run, data=data: _confusion(run, data)))
    return cases


def _confusion(run: Path, data: bytes) -> None:
    (run / "findings" / "confusion.npy").write_bytes(data)


_TENSORS = {"a": {"dtype": "F32", "shape": [HUGE // 4], "data_offsets": [0, HUGE]}}


def _set_model(run: Path, **facts: Any) -> None:
    """Give facts of a saved model other values, wherever they are."""
    path = run / "model" / "model.json"
    saved = json.loads(path.read_text("utf-8"))
    for place in (saved["model"], saved["model"].get("params", {}), saved["model"].get("network", {})):
        place.update({key: value for key, value in facts.items() if key in place})
    path.write_text(json.dumps(saved), "utf-8")


def _sparse(run: Path) -> None:
    for path in (run / "model").glob("*.safetensors"):
        with open(path, "r+b") as file:
            file.truncate(HUGE)


def _same_class(run: Path) -> None:
    path = run / "model" / "model.json"
    path.write_text(path.read_text("utf-8").replace('"no"', '"yes"'), "utf-8")


def _short_mean(run: Path) -> None:
    path = run / "model" / "preparation.json"
    saved = json.loads(path.read_text("utf-8"))
    saved["preparation"]["mean"] = saved["preparation"]["mean"][:1]
    path.write_text(json.dumps(saved), "utf-8")


# ---------------------------------------------------------------- encoders


def encoders(trials: Trials) -> None:
    """Load checkpoints whose index points elsewhere, and predict with runs that name a cache folder."""
    try:
        import transformers  # noqa: F401
    except ImportError:
        trials.note = "skipped: transformers is not installed"
        return
    trials.count, trials.deadline = min(trials.count, len(_POINTERS) + len(_CACHES)), float("inf")
    in_children(trials, _encoder, memory=6 << 30, patience=180.0)


#: Files that the index of a checkpoint may name, relative to its folder.
_POINTERS = (
    "pytorch_model.bin", "../outside.safetensors", "../../outside.safetensors", "{root}/outside.safetensors",
    "./../outside.safetensors", "inner/../../outside.safetensors", "model.bin",
)  # fmt: skip
#: Places that a run may name for its cache.
_CACHES = ("{root}/elsewhere", "elsewhere")


class _Mark:
    """A pickle of it makes a file when it is read."""

    def __init__(self, path: str):
        self.path = path

    def __reduce__(self) -> Any:
        return (open, (self.path, "w"))


def _encoder(number: int, folder: Path) -> str:
    root = folder / f"encoder-{number}"
    good = _checkpoint(root / "good")
    if number >= len(_POINTERS):
        return _cache(root, good, _CACHES[number - len(_POINTERS)])
    from annotmix.encoders import make_encoder

    pointer = _POINTERS[number].format(root=root)
    weights = good / "model.safetensors"
    shutil.copy(weights, root / "outside.safetensors")
    shutil.copy(weights, folder / "outside.safetensors")
    bad = Path(shutil.copytree(good, root / "bad"))
    (bad / "model.safetensors").unlink()
    (bad / "inner").mkdir()
    for name in ("pytorch_model.bin", "model.bin"):
        (bad / name).write_bytes(pickle.dumps(_Mark(str(root / "run-by-pickle"))))
    from safetensors import safe_open

    with safe_open(weights, "pt") as file:
        names = list(file.keys())
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, pointer)}
    (bad / "model.safetensors.index.json").write_text(json.dumps(index))
    try:
        make_encoder(f"text:{bad}", cache=False, progress=False).encode(["the cat"])
    except (ValueError, OSError) as error:
        if (root / "run-by-pickle").exists():
            return f"{pointer}: the pickle was run before {error}"
        return "" if str(error) else f"{pointer}: an error without words"
    return f"{pointer}: weights outside of the checkpoint, or of another kind, were read"


def _cache(root: Path, checkpoint: Path, place: str) -> str:
    """Predict with a run of texts whose preparation names a cache folder."""
    words = ["the big cat sat", "a dog ran", "red mat and rug", "very happy dog"]
    texts = pd.DataFrame({"item": range(12), "text": [words[n % 4] for n in range(12)]})
    texts.to_csv(root / "texts.csv", index=False)
    labels = pd.DataFrame(
        {"item": range(12), "annotator": [f"w{n % 2}" for n in range(12)], "label": list("ab") * 6}
    )
    labels.to_csv(root / "labels.csv", index=False)
    files = [root / "labels.csv", "--text", root / "texts.csv", "--encoder", f"text:{checkpoint}"]
    failure, _ = clear_command("fit", *files, "--out", root / "run", "--epochs", 1, "--quiet", codes=(0,))
    if failure:
        return f"the run failed: {failure}"
    path = root / "run" / "model" / "preparation.json"
    saved = json.loads(path.read_text("utf-8"))
    named = place.format(root=root)
    saved["items"]["encoder"]["params"]["cache"] = named
    path.write_text(json.dumps(saved))
    failure, _ = clear_command("predict", root / "run", root / "texts.csv")
    written = [place for place in (Path(named), root / "run" / named) if place.exists()]
    return failure or (f"it wrote into {written[0]}" if written else "")


def _checkpoint(folder: Path) -> Path:
    """A tiny text encoder with random weights."""
    import torch
    import transformers

    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "the",
        "big",
        "cat",
        "a",
        "dog",
        "sat",
        "ran",
        "happy",
    ]
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 32}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder
