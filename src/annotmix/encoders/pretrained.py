"""Pretrained checkpoints: finding, hashing and loading them.

Only configurations, vocabularies and safetensors in the checkpoint's own folder are read; no code of a
checkpoint is ever run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from annotmix._common import optional as extras
from annotmix._common.schema import read_json
from annotmix._common.words import did_you_mean
from annotmix.networks.generator import borrowed_generator

_READ = ("*.json", "*.txt", "*.model", "*.safetensors")
#: Encoders that packages bring, which need no hub.
OFFLINE = ("text:minilm", "image:efficientnet-lite0")
#: Seconds to wait for the hub.
_PATIENCE = 5


def require(module: str, extra: str) -> Any:
    """Import a module that an encoder needs, or say which extra brings it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")  # bars that are not shown anyway
        return extras.require(module, extra, "This encoder")


def packaged(package: str, path: str, install: str) -> Path:
    """A file or folder inside an installed package that carries a model."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"This model is the package {package}. Install it with: {install}")
    return Path(spec.origin).parent / path


def find_checkpoint(model: str, extra: str, offline: str) -> Path:
    """The folder of a checkpoint that is given as a folder or by its name on the Hugging Face hub.

    Parameters
    ----------
    model : str
    extra : str
        The extra of this package that installs the requirements.
    offline : str
        Advice for use without the hub, for the message.
    """
    if os.path.isdir(model):
        return Path(model)
    _refuse_misspelt(model, extra)
    hub = require("huggingface_hub", extra)
    try:
        return Path(
            hub.snapshot_download(
                model, allow_patterns=list(_READ), ignore_patterns=["*/*"], etag_timeout=_PATIENCE
            )
        )
    except (OSError, ValueError) as error:  # out of reach, no such model, no possible name
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileNotFoundError(
            f"The model {model!r} is no folder and could not be loaded from the Hugging Face hub ({reason}). "
            f"Pass the folder of a checkpoint as model=, or {offline}."
        ) from error


def _refuse_misspelt(model: str, kind: str) -> None:
    """Refuse a name that nearly is that of an offline encoder, before the hub is asked in vain."""
    full = {name.partition(":")[2]: name for name in OFFLINE}
    near = did_you_mean(model, full)
    for short, name in full.items():
        near = near.replace(repr(short), repr(name))
    if near and "/" not in model:
        raise ValueError(f"There is no encoder '{kind}:{model}'.{near}")


def content_hash(files: Iterable[Path]) -> str:
    """Identifies files by their names and content."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def checkpoint_files(folder: Path) -> list[Path]:
    """The files of a checkpoint that are read."""
    return [path for pattern in _READ for path in folder.glob(pattern)]


def require_own_files(folder: Path) -> None:
    """Refuse a checkpoint that names files beside its own safetensors, wherever they are."""
    for path in folder.glob("*.index.json"):
        for name in set(read_json(path, _ShardIndex).weight_map.values()):
            _require_plain(path, name, (".safetensors",))
    if (path := folder / "adapter_config.json").exists():
        raise ValueError(
            f"{str(path)!r} names a checkpoint elsewhere; merge the adapter into its own weights."
        )
    for name in ("config.json", "tokenizer_config.json"):
        if (path := folder / name).is_file():
            settings = read_json(path, dict[str, Any])
            for key in ("tokenizer_file", "vocab_file", "merges_file"):
                _require_plain(path, settings.get(key))
            _require_plain(
                path, settings.get("transformers_weights"), (".safetensors", ".safetensors.index.json")
            )


def _require_plain(path: Path, name: Any, endings: tuple[str, ...] = ("",)) -> None:
    """Refuse a name that is not the name of a file in the folder, with one of the endings."""
    if name is None:
        return
    if not isinstance(name, str) or "\\" in name or Path(name).name != name or not name.endswith(endings):
        what = " or ".join(f"*{ending}" for ending in endings)
        raise ValueError(f"{str(path)!r} names the file {name!r:.100}, expected a file {what} in its folder.")


class _ShardIndex(msgspec.Struct):
    """The part of `model.safetensors.index.json` that says which file has which weight."""

    weight_map: dict[str, str]


def load_checkpoint(folder: Path, processor: str, extra: str) -> tuple[Any, Any]:
    """The processor of the inputs, for example of the class "AutoTokenizer", and the frozen network."""
    transformers = require("transformers", extra)
    require_own_files(folder)
    safe = {"local_files_only": True, "trust_remote_code": False}
    # parts without weights in the checkpoint start at random, without the caller's random state
    with _quiet(transformers), borrowed_generator():
        try:
            inputs = getattr(transformers, processor).from_pretrained(folder, **safe)
            network = transformers.AutoModel.from_pretrained(folder, use_safetensors=True, **safe)
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise ValueError(
                f"{str(folder)!r} holds no checkpoint that transformers can load with {processor} and "
                f"AutoModel from safetensors: {error}"
            ) from error
    return inputs, network.float().eval().requires_grad_(False)


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No bars and reports about weights that are not used here."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
