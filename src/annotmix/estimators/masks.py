"""Masks in the accepted formats, as class codes with the image and the annotator of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotmix._common.words import show, some
from annotmix.labels.annotations import Annotations
from annotmix.labels.names import Index, Names, as_names, encode, plain


class Masks(NamedTuple):
    """P masks of n images.

    Parameters
    ----------
    item, annotator : array of int, shape (P,)
        The image and the annotator of every mask; no pair is repeated.
    codes : array of int8 or int16, shape (P, height, width)
        Position of every pixel's class in `classes`; -1 where nothing was marked.
    annotators, classes : array, shapes (M,), (C,)
        Names.
    """

    item: Index
    annotator: Index
    codes: NDArray[np.signedinteger[Any]]
    annotators: Names
    classes: Names

    def annotations(self, n_images: int) -> Annotations:
        """The masks as labels for training: a label is the position of a mask."""
        position = np.arange(len(self.item))
        return Annotations(
            self.item, self.annotator, position, np.arange(n_images), self.annotators, position
        )


def read_masks(
    masks: Any,
    shape: tuple[int, int, int],
    *,
    images: Any = None,
    annotators: Iterable[Any] | None = None,
    classes: Iterable[Any] | None = None,
    known: Names | None = None,
) -> Masks:
    """Masks in one of two forms; masks without a marked pixel are left out.

    Parameters
    ----------
    masks : array-like of int or bool, shape (n, M, height, width) or (P, height, width)
        One column per annotator, or with `images` one entry per mask. -1 or nan: not marked.
    shape : (n, height, width)
        Height and width of the images.
    images : array-like of int, shape (P,), optional
        The image of every mask.
    annotators : iterable, optional
        Names of the M annotators; with `images` the annotator of every mask, P of them.
    classes : iterable, optional
        All classes; by default the sorted values that occur.
    known : array, optional
        The only annotators that may occur, in their order.
    """
    values = _integers(masks)
    n, *size = shape
    if images is None:
        if values.ndim != 4 or (len(values), *values.shape[2:]) != (n, *size):
            raise ValueError(
                f"masks must have shape (n, annotators, height, width) = ({n}, M, {size[0]}, {size[1]}), "
                f"found {values.shape}. For a list of masks, say with images= which image each belongs to."
            )
        default = range(values.shape[1]) if known is None else known
        names = as_names(default if annotators is None else annotators, values.shape[1], "annotators")
        item, column = np.nonzero((values != -1).any(axis=(2, 3)))
        values, who = values[item, column], names[column]
        everyone = names if known is None else known
    else:
        item, who = np.asarray(images), plain([] if annotators is None else list(annotators))
        if values.shape != (len(item), *size) or who.shape != item.shape or item.ndim != 1:
            raise ValueError(
                "With images=, masks, images and annotators have one entry per mask, and masks the size "
                f"of the images, {size[0]} × {size[1]}; found shapes "
                f"{values.shape}, {item.shape} and {who.shape}."
            )
        if len(item) and (item.dtype.kind not in "iu" or item.min() < 0 or item.max() >= n):
            raise ValueError(f"images must be positions in X, 0 to {n - 1}, found {some(np.unique(item))}.")
        marked = (values != -1).any(axis=(1, 2))
        everyone = encode(who, None, "annotator")[1] if known is None else known
        item, who, values = item[marked].astype(np.int64), who[marked], values[marked]
    annotator, everyone = encode(who, everyone, "annotator")
    if (annotator < 0).any():
        raise ValueError(f"Unknown annotators {some(who[annotator < 0])}; known are {some(everyone)}.")
    _, first = np.unique(item * max(1, len(everyone)) + annotator, return_index=True)
    if len(first) < len(item):
        p = np.setdiff1d(np.arange(len(item)), first)[0]
        raise ValueError(
            f"annotator {show(who[p])} has more than one mask for image {item[p]}; keep one of them."
        )
    codes, class_names = _codes(values, item, who, classes)
    return Masks(item, annotator, codes, everyone, class_names)


def _integers(masks: Any) -> NDArray[np.signedinteger[Any]]:
    """Masks as signed integers; nan becomes -1."""
    values = np.asarray(masks)
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        values = np.where(missing, -1, values)
        if not (values == np.rint(values)).all():
            raise ValueError(
                "masks must hold whole numbers, the class of every pixel; found "
                f"{show(values[values != np.rint(values)][0])}. Threshold probabilities first."
            )
    elif values.dtype.kind not in "biu":
        raise ValueError(
            f"masks must be an array of integers, the class of every pixel, found dtype {values.dtype}."
        )
    return values.astype(np.int16 if values.itemsize == 1 else np.int64)


def _codes(
    values: NDArray[np.signedinteger[Any]], item: Index, who: Names, classes: Iterable[Any] | None
) -> tuple[NDArray[np.signedinteger[Any]], Names]:
    """Positions of the values among the classes, and the classes."""
    present = np.unique(values)
    names = as_names(present[present != -1] if classes is None else classes, None, "classes")
    codes = np.full(values.shape, -1, dtype=np.min_scalar_type(-max(1, len(names))))
    for code, name in enumerate(names):
        codes[values == name] = code
    unknown = ((codes < 0) & (values != -1)).any(axis=(1, 2))
    if unknown.any():
        p = int(np.flatnonzero(unknown)[0])
        odd = values[p][(codes[p] < 0) & (values[p] != -1)][0]
        raise ValueError(
            f"Value {show(odd)} in the mask of image {item[p]} by annotator {show(who[p])} is not among the "
            f"classes {some(names)}."
        )
    return codes, names
