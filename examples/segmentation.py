"""Masks of many annotators: digits on a cluttered ground, marked too wide, too narrow or beside.

    python examples/segmentation.py FOLDER --seeds 3

Annotators of different habits mark 150 images, each of which gets two masks. One mask an image is made of
them by majority vote, by STAPLE, by Dawid–Skene per pixel and by `AnnotMixSegmenter`, and a network is
trained on each. Prints Dice and pixel accuracy, and writes `segmentation.csv` and `segmentation.png` into
FOLDER. SimpleITK has STAPLE.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import ndimage
from sklearn.datasets import load_digits

from annotmix import Annotations, AnnotMixSegmenter, dawid_skene
from annotmix.estimators.pixels import AnnotMixPixels

SIZE = 32
#: In the first crowd no two share an error; in the second one two of five mark too much.
CROWDS = {
    "balanced": ["exact", "wide", "narrow", "shifted"],
    "wide": ["exact", "wide", "wider", "narrow", "shifted"],
}


# ---------------------------------------------------------------- data


def make_images(digits, rng):
    """Digits somewhere on a textured ground with strokes that are no digits: images and true masks.

    Both have shape (n, 32, 32). Strokes are as bright as digits, so no threshold finds the digit.
    """
    images, truth = [], []
    for digit in digits:
        drawn = ndimage.zoom(digit / 16, rng.uniform(2.4, 3.0), order=1)
        place = np.zeros((SIZE, SIZE))
        top, left = rng.integers(1, SIZE - np.array(drawn.shape))
        place[top : top + drawn.shape[0], left : left + drawn.shape[1]] = drawn
        mask = place > 0.45
        ground = 5 * ndimage.gaussian_filter(rng.normal(size=mask.shape), 3)
        clutter = np.zeros(mask.shape)
        for _ in range(4):  # short straight strokes, as bright as a digit
            row, column, angle = rng.uniform(0, SIZE), rng.uniform(0, SIZE), rng.uniform(0, np.pi)
            along = np.linspace(-4, 4, 40)
            at = np.rint([row + along * np.sin(angle), column + along * np.cos(angle)]).astype(int)
            at = at[:, ((at >= 0) & (at < SIZE)).all(axis=0)]
            clutter[at[0], at[1]] = 1
        image = ground + rng.uniform(1.5, 2.5) * np.maximum(mask, ndimage.grey_dilation(clutter, (2, 2)))
        images.append(ndimage.gaussian_filter(image, 0.6) + rng.normal(scale=0.4, size=mask.shape))
        truth.append(mask)
    return np.array(images, dtype=np.float32), np.array(truth, dtype=np.int8)


def mark(mask, annotator, rng):
    """The mask that an annotator draws: a habit, and a shaky hand."""
    if annotator == "shifted":
        marked = ndimage.shift(mask, rng.choice([-2, -1, 1, 2], size=2), order=0) > 0
    elif annotator == "narrow":
        marked = ndimage.binary_erosion(mask)
    else:
        width = {"exact": 0, "wide": rng.integers(1, 3), "wider": rng.integers(1, 4)}[annotator]
        marked = ndimage.binary_dilation(mask, iterations=width) if width else mask > 0
    edge = ndimage.binary_dilation(marked) ^ ndimage.binary_erosion(marked)
    return np.where(edge & (rng.random(mask.shape) < 0.1), ~marked, marked).astype(np.int8)


def make_masks(truth, crowd, n_masks, rng):
    """`n_masks` masks an image by annotators drawn at random, shape (n, M, 32, 32); -1 where none is."""
    masks = np.full((len(truth), len(crowd), SIZE, SIZE), -1, dtype=np.int8)
    for n, mask in enumerate(truth):
        for m in rng.permutation(len(crowd))[:n_masks]:
            masks[n, m] = mark(mask, crowd[m], rng)
    return masks


# ---------------------------------------------------------------- one mask of many


def majority(masks, rng):
    """The class that most annotators gave to a pixel; ties at random."""
    votes = np.stack([(masks == c).sum(axis=1) for c in (0, 1)], axis=-1)
    return (votes + rng.uniform(0, 0.5, size=votes.shape)).argmax(axis=-1)


def staple(masks):
    """STAPLE (Warfield et al. 2004), image by image, as SimpleITK has it."""
    import SimpleITK as sitk

    found = []
    for own in masks:
        given = [sitk.GetImageFromArray(mask.astype(np.uint8)) for mask in own if mask.max() >= 0]
        found.append(sitk.GetArrayFromImage(sitk.STAPLE(given, 1.0)) > 0.5)
    return np.array(found, dtype=np.int8)


def dawid_skene_pixels(masks):
    """Dawid–Skene with a pixel an item: STAPLE whose annotators are the same in all images."""
    by_pixel = np.moveaxis(masks, 1, -1).reshape(-1, masks.shape[1])
    found = dawid_skene(Annotations.from_matrix(by_pixel, classes=[0, 1])).labels
    return np.asarray(found).reshape(len(masks), SIZE, SIZE)


class TrustingPixels(AnnotMixPixels):
    """The same network, mixing and training without annotators: the masks are taken for the truth."""

    def said(self, h, e_a, labels):
        """Log-probability of the labels, shape (n, J)."""
        return self.classifier.log_proba(h).gather(1, labels)


class TrustingSegmenter(AnnotMixSegmenter):
    """mv-mixup and its like for masks: learns from one mask an image."""

    _approach = TrustingPixels


# ---------------------------------------------------------------- the comparison


def scores(found, truth):
    """Mean Dice of the digit over the images, and the share of right pixels."""
    both = (found * truth).sum(axis=(1, 2))
    dice = 2 * both / np.maximum(found.sum(axis=(1, 2)) + truth.sum(axis=(1, 2)), 1)
    return dice.mean(), (found == truth).mean()


def compare(seed, crowd, n_masks, n_images, n_new, epochs):
    """Scores of one seed, annotators' qualities, and what is needed for the picture."""
    rng = np.random.default_rng(seed)
    digits = load_digits().images
    order = rng.permutation(len(digits))
    X, truth = make_images(digits[order[:n_images]], rng)
    X_new, truth_new = make_images(digits[order[n_images : n_images + n_new]], rng)
    masks = make_masks(truth, crowd, n_masks, rng)
    shared = {"max_epochs": epochs, "random_state": seed}
    ours = AnnotMixSegmenter(**shared).fit(X, masks, annotators=crowd)
    found = {
        "majority vote": majority(masks, rng),
        "STAPLE": staple(masks),
        "Dawid–Skene per pixel": dawid_skene_pixels(masks),
        "annot-mix": ours.consensus(X, masks),
        "true masks": truth,
    }
    rows = []
    for name, one in found.items():
        network = ours if name == "annot-mix" else TrustingSegmenter(**shared).fit(X, one[:, None])
        rows.append([name, seed, *scores(one, truth), *scores(network.predict(X_new), truth_new)])
    table = pd.DataFrame(rows, columns=["approach", "seed", "dice", "acc", "new dice", "new acc"])
    confusion = ours.annotator_confusion().to_numpy().reshape(len(crowd), 2, 2)
    marked = masks >= 0
    quality = {"annotator": crowd}
    for c, rate in ((1, "sensitivity"), (0, "specificity")):
        at = marked & (truth[:, None] == c)
        quality[rate] = ((masks == c) & at).sum(axis=(0, 2, 3)) / at.sum(axis=(0, 2, 3))
        quality[f"{rate}, learnt"] = confusion[:, c, c]
    return table, pd.DataFrame(quality), (X, truth, masks, crowd, found)


def draw(path, X, truth, masks, crowd, found, n=5):
    """A row an image: what was seen, the truth, what was marked, and what was made of it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    made = {name: mask for name, mask in found.items() if name != "true masks"}
    titles = ["image", "truth", *crowd, *(name.replace(" per pixel", "") for name in made)]
    figure, axes = plt.subplots(n, len(titles), figsize=(1.15 * len(titles), 1.2 * n), squeeze=False)
    for i, row in enumerate(axes):
        pictures = [X[i], truth[i], *masks[i], *(mask[i] for mask in made.values())]
        for j, (axis, picture) in enumerate(zip(row, pictures, strict=True)):
            axis.set_axis_off()
            if i == 0:
                axis.set_title(titles[j], fontsize=8)
            if picture.min() < 0 and j > 0:
                axis.text(0.5, 0.5, "–", ha="center", va="center", transform=axis.transAxes)
            elif j < 2:
                axis.imshow(picture, cmap="gray")
            else:  # right pixels white, too much red, too little blue
                wrong = picture.astype(int) - truth[i]
                colours = np.array([[0.1, 0.35, 0.9], [0.0, 0.0, 0.0], [0.9, 0.2, 0.1]])[wrong + 1]
                colours[(wrong == 0) & (truth[i] == 1)] = 1
                axis.imshow(colours)
    figure.tight_layout(pad=0.3)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(arguments=None):
    """Compare for every seed; print, and write the scores and the picture of the first seed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=Path("annotmix-segmentation"))
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--crowd", choices=CROWDS, default="balanced")
    parser.add_argument("--masks", type=int, default=2, help="masks an image")
    parser.add_argument("--images", type=int, default=150)
    parser.add_argument("--new", type=int, default=100, help="images without masks")
    parser.add_argument("--epochs", type=int, default=20)
    chosen = parser.parse_args(arguments)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    tables = []
    for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
        table, quality, shown = compare(
            seed, CROWDS[chosen.crowd], chosen.masks, chosen.images, chosen.new, chosen.epochs
        )
        tables.append(table)
        if len(tables) == 1:
            draw(chosen.folder / "segmentation.png", *shown)
            print(quality.round(3).to_string(index=False), "\n")
    table = pd.concat(tables)
    table.to_csv(chosen.folder / "segmentation.csv", index=False)
    by_approach = table.drop(columns="seed").groupby("approach", sort=False)
    print(f"{chosen.crowd} crowd, {chosen.masks} masks an image: mean over {chosen.seeds} seeds, in %")
    print((100 * by_approach.mean()).round(1).to_string())
    if chosen.seeds > 1:
        print("standard deviation over seeds")
        print((100 * by_approach.std()).round(1).to_string())
    return table


if __name__ == "__main__":
    main()
