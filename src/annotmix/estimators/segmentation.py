"""The scikit-learn-like estimator for masks: many masks per image in, one mask per image out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import assert_all_finite, check_is_fitted
from torch import Tensor

from annotmix._common.seeds import seed_of
from annotmix.estimators.masks import Masks, read_masks
from annotmix.estimators.parameters import check_parameters, training_settings
from annotmix.estimators.persistence import fingerprint, save
from annotmix.estimators.pixels import AnnotMixPixels, PixelClassifier, make_pixel_backbone
from annotmix.labels.named import annotator_columns, confusion_table
from annotmix.networks.devices import pick_device
from annotmix.networks.features import Features
from annotmix.training.inference import mean_confusion
from annotmix.training.loop import INITIALISATION, REFERENCE, randomness, train

#: Pixels per chunk of computation, in whole images; at least one image.
PIECE = 1 << 16
#: Images, and pixels of each, that `annotator_confusion` averages over.
REFERENCE_IMAGES, REFERENCE_PIXELS = 64, 256


class AnnotMixSegmenter(BaseEstimator):  # type: ignore[misc]
    """Learns to segment images from the masks of many annotators, and how reliable they are where.

    Every pixel is an item of annot-mix: the annotators have a confusion matrix at every pixel, which
    depends on the features of the pixel.

    Parameters
    ----------
    backbone : "unet-small" or torch.nn.Module, default="unet-small"
        A module of your own maps images (n, channels, height, width) to features (n, d, height, width).
    alpha : float, default=1.0
        λ ~ Beta(alpha, alpha) is the share of the first triple (image, annotator, mask) in a mix; 0 switches
        mixing off.
    eta : float, default=0.9
        Chance of a right pixel that the annotators start with; between 1/C and 1.
    prior : float, default=1.0
        How strongly an annotator's confusion matrix at a pixel is held near its start, in labels per pixel.
        Without it (0, annot-mix as it is) the network tends to take every marked pixel for the object.
    pixels : int or None, default=4096
        Pixels in the loss of a step, drawn anew from all pixels of the batch's masks. The backbone
        sees every pixel. Bounds the memory of the annotator model, some 2 kB per pixel; None takes all.
    max_epochs : int, default=50
    batch_size : int, default=8
        Images in a batch; they bring all their masks, and every mask is a mixed image for the backbone.
    lr : float, default=0.01
        Learning rate of RAdam at the start; it falls to 0 along a cosine.
    weight_decay : float, default=0.0001
        L2 penalty on the classification model.
    classes : sequence of int, optional
        All values of masks; by default those that occur.
    random_state : int, RandomState instance or None, default=None
        The same integer gives the same weights.
    device, precision, checkpoint, checkpoint_every, progress
        As for `AnnotMixClassifier`.
    """

    _approach: ClassVar[type[AnnotMixPixels]] = AnnotMixPixels
    # parameters and attributes that only classifiers have, for the code that serves both
    encoder, select, dropout, best_epoch_, annotator_preparation_ = None, "last", 0.0, None, None
    devices = 1

    def __init__(
        self,
        *,
        backbone: str | torch.nn.Module = "unet-small",
        alpha: float = 1.0,
        eta: float = 0.9,
        prior: float = 1.0,
        pixels: int | None = 4096,
        max_epochs: int = 50,
        batch_size: int = 8,
        lr: float = 1e-2,
        weight_decay: float = 1e-4,
        classes: Iterable[int] | None = None,
        random_state: Any = None,
        device: str = "auto",
        precision: str = "32-true",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 10,
        progress: bool = True,
    ):
        self.backbone = backbone
        self.alpha = alpha
        self.eta = eta
        self.prior = prior
        self.pixels = pixels
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.classes = classes
        self.random_state = random_state
        self.device = device
        self.precision = precision
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.progress = progress

    # ---------------------------------------------------------------- training

    def fit(
        self, X: Any, masks: Any, *, annotators: Iterable[Any] | None = None, images: Any = None
    ) -> AnnotMixSegmenter:
        """Train on images and the masks that annotators drew.

        Parameters
        ----------
        X : array-like or memory-mapped array, shape (n, channels, height, width) or (n, height, width)
            Images of dtype uint8 stay bytes in memory and reach the backbone divided by 255.
        masks : array-like of int or bool, shape (n, M, height, width) or (P, height, width)
            The class of every pixel, -1 where an annotator marked nothing: all of a mask where there is none.
            One column per annotator; or, with `images`, one entry per mask.
        annotators : iterable, optional
            Names of the M annotators; with `images` the annotator of every mask, P of them.
        images : array-like of int, shape (P,), optional
            The row of X that every mask belongs to.
        """
        check_parameters(self, has_validation=False)
        if self.pixels is not None and not self.pixels >= 1:
            raise ValueError(
                f"pixels must be a positive integer or None (all of them), found {self.pixels!r}."
            )
        rows = _images(X)
        shape = (len(rows), *rows.shape[2:])
        drawn = read_masks(masks, shape, images=images, annotators=annotators, classes=self.classes)
        if len(drawn.item) == 0 or len(drawn.classes) < 2:
            raise ValueError(
                f"masks hold {len(drawn.item)} marked masks of {len(drawn.classes)} classes; training needs "
                "at least one mask, and two classes (name them with classes= where only one was marked)."
            )
        self.seed_, device = seed_of(self.random_state), pick_device(self.device)
        self.classes_, self.annotators_, self._shape = drawn.classes, drawn.annotators, rows.shape[1:]
        with randomness(self.seed_, INITIALISATION):
            self.module_ = self._make_module(len(self.annotators_)).to(device)
        self.module_.see(torch.as_tensor(drawn.codes, device=device))
        annotations = drawn.annotations(len(rows))
        self.labels_per_annotator_ = np.array(annotations.labels_per_annotator)
        mark = ""
        if self.checkpoint is not None:
            mark = fingerprint(self, rows, annotations) + hashlib.sha256(drawn.codes.tobytes()).hexdigest()
        settings = training_settings(self, weight_decay=self.weight_decay)
        run = train(self.module_, Features(rows, device), annotations, settings, fingerprint=mark)
        self.module_.finish()
        self.history_, self.n_iter_ = pd.DataFrame(run.history).set_index("epoch"), run.epoch
        self._reference = self._some_features(rows)
        return self

    # ---------------------------------------------------------------- masks

    @torch.inference_mode()
    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Class probabilities of every pixel, shape (n, C, height, width)."""
        rows = self._check(X)
        result = np.empty((len(rows), len(self.classes_), *rows.shape[2:]), dtype=np.float32)
        for part, _, log_p in self._pieces(rows):
            result[part] = _as_images(log_p.exp(), rows.shape)
        return result

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every pixel, shape (n, height, width)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def consensus(
        self, X: Any, masks: Any, *, annotators: Iterable[Any] | None = None, images: Any = None
    ) -> NDArray[Any]:
        """The most probable class of every pixel given network and masks, shape (n, height, width)."""
        proba = self.consensus_proba(X, masks, annotators=annotators, images=images)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    @torch.inference_mode()
    def consensus_proba(
        self, X: Any, masks: Any, *, annotators: Iterable[Any] | None = None, images: Any = None
    ) -> NDArray[np.float32]:
        """Class probabilities of every pixel given the network and the masks, shape (n, C, height, width).

        Masks are taken as in `fit`, from annotators of the training data; an image without a mask gets
        `predict_proba`. The annotators are independent given the class and the image.
        """
        rows = self._check(X)
        drawn = self._masks(rows, masks, images, annotators)
        result = np.empty((len(rows), len(self.classes_), *rows.shape[2:]), dtype=np.float32)
        for part, h, log_q in self._pieces(rows):
            n_pixels = len(h) // (part.stop - part.start)
            for p in np.flatnonzero((drawn.item >= part.start) & (drawn.item < part.stop)):
                first = (int(drawn.item[p]) - part.start) * n_pixels
                own = slice(first, first + n_pixels)
                code = torch.as_tensor(drawn.codes[p], device=h.device).flatten().long()
                confusion = self.module_.log_confusion(h[own], torch.full_like(code, int(drawn.annotator[p])))
                column = code.clamp(min=0).view(-1, 1, 1).expand(-1, confusion.shape[1], 1)
                log_q[own] += confusion.gather(2, column).squeeze(2) * (code >= 0).unsqueeze(1)
            result[part] = _as_images(torch.softmax(log_q, dim=-1), rows.shape)
        return result

    # ---------------------------------------------------------------- annotators

    @torch.inference_mode()
    def predict_annotator_perf(self, X: Any) -> pd.DataFrame:
        """Share of an image's pixels that an annotator would mark right, one row per image."""
        rows = self._check(X)
        result = np.empty((len(rows), len(self.annotators_)))
        for part, h, _ in self._pieces(rows):
            for m in range(len(self.annotators_)):
                perf = self.module_.annotator_perf(h, torch.full((len(h),), m, device=h.device))
                result[part, m] = perf.view(part.stop - part.start, -1).double().mean(dim=1).cpu().numpy()
        return annotator_columns(result, range(len(rows)), self.annotators_)

    def annotator_confusion(self, X: Any = None) -> pd.DataFrame:
        """Confusion matrices P(marked as a label | true class) of a pixel.

        Averaged over 256 pixels of each of up to 64 images of X, without X of the training images. The row of
        a class weighs the pixels by their probability of that class.

        Returns
        -------
        DataFrame, one row per `annotator` and true `class`, one column per `label`
            `table.loc[annotator]` is the matrix of one annotator. Of the classes 0 and 1, `.loc[1, 1]` in it
            is the sensitivity and `.loc[0, 0]` the specificity.
        """
        check_is_fitted(self)
        h = self._reference if X is None else self._some_features(self._check(X))
        matrices = mean_confusion(self.module_, h, np.arange(len(self.annotators_)))
        return confusion_table(matrices, self.annotators_, self.classes_)

    # ---------------------------------------------------------------- files

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the model as safetensors and JSON; read it with `annotmix.load`.

        A backbone of your own is not saved as code: `annotmix.load` takes it again.
        """
        check_is_fitted(self)
        save(self, folder)

    # ---------------------------------------------------------------- inside

    @property
    def _device(self) -> torch.device:
        return next(self.module_.parameters()).device

    def _make_module(self, n_annotators: int, described: None = None) -> AnnotMixPixels:
        backbone, n_hidden = make_pixel_backbone(self.backbone, self._shape)
        classifier = PixelClassifier(backbone, n_hidden, len(self.classes_))
        own = {name: getattr(self, name) for name in self._approach.hyper_parameters()}
        return self._approach(classifier, n_annotators, **own)

    def _check(self, X: Any) -> NDArray[Any]:
        """Images that the model can take, shape (n, channels, height, width); of any size."""
        check_is_fitted(self)
        rows = _images(X)
        if rows.shape[1] != self._shape[0]:
            raise ValueError(
                f"X has images of {rows.shape[1]} channels, but AnnotMixSegmenter was trained on images of "
                f"{self._shape[0]}."
            )
        return rows

    def _masks(self, rows: NDArray[Any], masks: Any, images: Any, annotators: Iterable[Any] | None) -> Masks:
        shape = (len(rows), *rows.shape[2:])
        return read_masks(
            masks, shape, images=images, annotators=annotators, classes=self.classes_, known=self.annotators_
        )

    @torch.inference_mode()
    def _pieces(self, rows: NDArray[Any]) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Chunks of images: their slice, h and log p of their pixels."""
        self.module_.eval()
        data = Features(rows, self._device)
        step = max(1, PIECE // int(np.prod(rows.shape[2:])))
        for first in range(0, len(rows), step):
            part = slice(first, min(first + step, len(rows)))
            h = self.module_.classifier.features(data.take(part)).float()
            yield part, h, self.module_.classifier.log_proba(h)

    @torch.inference_mode()
    def _some_features(self, rows: NDArray[Any]) -> Tensor:
        """h of some pixels of some images, shape (n, d)."""
        with randomness(self.seed_, REFERENCE) as rng:
            some = rows[np.sort(rng.permutation(len(rows))[:REFERENCE_IMAGES])]
            n_pixels = int(np.prod(rows.shape[2:]))
            pixel = torch.from_numpy(rng.integers(n_pixels, size=(len(some), REFERENCE_PIXELS)))
        sampled = [
            h.view(-1, n_pixels, h.shape[1])[torch.arange(part.stop - part.start).unsqueeze(1), pixel[part]]
            for part, h, _ in self._pieces(some)
        ]
        return torch.cat(sampled).flatten(0, 1).clone()


def _images(X: Any) -> NDArray[Any]:
    """X as an array, shape (n, channels, height, width); grey images may lack the channels."""
    rows = X if isinstance(X, np.ndarray) else np.asarray(X)
    if rows.ndim == 3:
        rows = rows[:, None]
    if rows.ndim != 4 or rows.dtype.kind not in "biuf" or 0 in rows.shape:
        raise ValueError(
            "X must be numbers of shape (images, channels, height, width) or (images, height, width), found "
            f"{rows.dtype} of shape {rows.shape}."
        )
    for image in rows if rows.dtype.kind == "f" else ():
        assert_all_finite(image[0] if len(image) == 1 else image.reshape(len(image), -1), input_name="X")
    return rows


def _as_images(values: Tensor, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Values of pixels, shape (n · height · width, C), as images, shape (n, C, height, width)."""
    return values.view(-1, *shape[2:], values.shape[-1]).movedim(-1, 1).float().cpu().numpy()
