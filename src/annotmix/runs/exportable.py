"""Whether the classifier of a run can become ONNX, said before anything is loaded or computed.

Nothing here needs torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotmix.runs.folder import RunFolder
from annotmix.runs.prepare import ENCODERS, ItemPreparation

#: The one encoder that an ONNX file can include, and its name without the kind.
INCLUDED = ENCODERS["images"]
INCLUDED_NAME = INCLUDED.partition(":")[2]


def require_exportable(run: Path, with_encoder: bool) -> None:
    """Refuse runs without a network, and encoders that a file cannot hold.

    Parameters
    ----------
    run : Path
    with_encoder : bool
        Whether the file is to include the encoder.
    """
    network, items = RunFolder(run).read("is network", "preparation")
    if not network:
        raise ValueError(f"{str(run)!r} holds no network: only runs with --model network can be exported.")
    if with_encoder:
        require_includable(items)


def require_includable(items: ItemPreparation) -> None:
    """Refuse to include an encoder that an ONNX file cannot hold, with the reason."""
    if items.encoder is None:
        raise ValueError("--with-encoder is for runs on texts or images; the items of this run are features.")
    if items.encoder["kind"] == "text":
        raise ValueError(
            f"{items.encoder_name} cannot be part of the ONNX file: its tokenizer, which splits a text into "
            "numbered tokens, is no network. Export without --with-encoder, and compute the features of new "
            f"texts with {in_python(items.encoder)}."
        )
    if items.encoder_name != INCLUDED:
        raise ValueError(
            f"{items.encoder_name} cannot be part of the ONNX file: only {INCLUDED} can, as the pixels of "
            "others are prepared by code of their own. Export without --with-encoder, and compute the "
            f"features of new images with {in_python(items.encoder)}."
        )


def in_python(encoder: dict[str, Any]) -> str:
    """How an encoder is called in Python, by what `Encoder.to_dict` says."""
    kind, params = encoder["kind"], encoder["params"]
    what = {"text": "texts", "image": "images"}[kind]
    more = "" if params["model"] == INCLUDED_NAME else f", pooling={params['pooling']!r}"
    return f"annotmix.{kind.title()}Encoder({params['model']!r}{more}).encode({what})"
