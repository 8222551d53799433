"""Model selection without clean labels: some of the noisy labels are held out, and a model is judged by how
well it predicts them, log p_annot(z | x, a).

The score is marginal, with the true class summed out: every approach with an annotator model defines it, and
it does not use other labels of the item, which the classifier may have memorised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from annotmix.labels.annotations import Annotations
from annotmix.labels.metrics import label_ll

if TYPE_CHECKING:
    from annotmix.labels.confusion import Floats
    from annotmix.labels.label_sets import LabelSets
    from annotmix.labels.posterior import Posterior
    from annotmix.labels.set_posterior import MultiLabelPosterior


def hold_out(
    annotations: Annotations, share: float = 0.1, *, by: Literal["item", "label"] = "item", rng: Any = None
) -> tuple[Annotations, Annotations]:
    """Split the labels into a training part and a held-out part.

    Parameters
    ----------
    annotations : Annotations
    share : float, default=0.1
        Share of the labelled items, or of the labels, that is held out; at least one is, and one stays.
    by : {"item", "label"}, default="item"
        Hold out all labels of some items, or single labels of any items. A classifier that has
        memorised the other labels of an item predicts a single one well, so whole items are a stricter test.
    rng : int, Generator or None
        Draws them.

    Returns
    -------
    kept, held : Annotations
        Items, annotators and classes are in both. Soft labels stay whole.
    """
    if not 0 < share < 1:
        raise ValueError(f"share, the held-out part, must lie between 0 and 1, found {share!r}.")
    if by not in ("item", "label"):
        raise ValueError(f'by must be "item" or "label", found {by!r}.')
    units, unit = np.unique(annotations.item if by == "item" else annotations.pair, return_inverse=True)
    if len(units) < 2:
        raise ValueError(f"To hold out some there must be two {by}s with labels or more, found {len(units)}.")
    n = min(max(round(share * len(units)), 1), len(units) - 1)
    held = np.isin(unit, np.random.default_rng(rng).permutation(len(units))[:n])
    return annotations.keep(~held), annotations.keep(held)


def label_likelihood(annotations: Annotations, p: Floats, posterior: Posterior) -> float:
    """Mean log Σ_c p_nc θ_m[c, z] of labels z, by a classifier and the confusion matrices of a posterior.

    Parameters
    ----------
    annotations : Annotations
        Labels of n items by annotators of the posterior, with its classes.
    p : array, shape (n, C)
        Class probabilities of the items.
    posterior : Posterior
        Of other items, so that the labels are not among its counts.
    """
    if not len(annotations):
        raise ValueError("There are no labels to score: every label is missing.")
    who, place = np.unique(annotations.annotator, return_inverse=True)
    theta = posterior.counted.matrices(who)[place, :, annotations.label]  # (P, C)
    return label_ll(np.log(np.einsum("pc,pc->p", p[annotations.item], theta)), annotations.weight)


def set_likelihood(sets: LabelSets, p: Floats, posterior: MultiLabelPosterior) -> float:
    """Mean log-likelihood of answers about one class; parameters as in `label_likelihood`.

    `p` are probabilities of the classes, shape (n, C).
    """
    parts = [
        label_likelihood(sets.binary(name), np.stack([1 - own, own], axis=1), of_class)
        for name, own, of_class in zip(sets.classes.tolist(), p.T, posterior.by_class, strict=True)
    ]
    return float(np.mean(parts))
