"""A classifier in facts: what is saved of it, and what identifies a run of it."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import annotmix
from annotmix.labels.annotations import Annotations
from annotmix.training import persistence

#: Name under which features of some training instances are kept beside the weights.
REFERENCE_NAME = "reference"
#: Parameters that have no influence on the weights.
_NEUTRAL = {"select", "device", "devices", "progress", "checkpoint", "checkpoint_every"}
_NEUTRAL |= {"backbone", "encoder"}  # they show in the module and in X


def describe(clf: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights of a fitted classifier, and everything else that is needed to use it, as JSON."""
    custom, known = isinstance(clf.backbone, torch.nn.Module), clf.annotator_preparation_
    params = clf.get_params(deep=False) | {
        "encoder": None if clf.encoder is None else clf.encoder_.to_dict(),
        "backbone": None if custom else clf.backbone,
        "random_state": clf.seed_,
        "classes": None if clf.classes is None else list(np.asarray(clf.classes).tolist()),
        "checkpoint": None if clf.checkpoint is None else os.fspath(clf.checkpoint),
    }
    facts = {
        "approach": clf._approach.name,
        "annotmix": annotmix.__version__,
        "params": params,
        "shape": list(clf._shape),
        "backbone_class": type(clf.backbone).__qualname__ if custom else None,
        "classes": persistence.names_to_json(clf.classes_),
        "annotators": persistence.names_to_json(clf.annotators_),
        "labels_per_annotator": clf.labels_per_annotator_.tolist(),
        "annotator_features": known and known.to_dict(),
        "n_modelled": clf.module_.n_annotators,
        "feature_names": getattr(clf, "feature_names_in_", np.zeros(0)).tolist(),
        "history": clf.history_.reset_index().to_dict("list"),
        "best_epoch": clf.best_epoch_,
        "seed": clf.seed_,
    }
    tensors = {name: t.contiguous() for name, t in clf.module_.state_dict().items()}
    tensors[REFERENCE_NAME] = clf._reference.contiguous()
    try:
        json.dumps(facts)
    except TypeError as error:
        raise TypeError(f"A parameter cannot be saved as JSON: {error}.") from error
    return tensors, facts


def fingerprint(
    clf: Any, rows: NDArray[Any], annotations: Annotations, described: NDArray[Any] | None = None
) -> str:
    """Identifies parameters and data: labels in full, X by its shape and up to 1024 of its rows."""
    params = {k: repr(v) for k, v in clf.get_params(deep=False).items() if k not in _NEUTRAL}
    digest = hashlib.sha256(json.dumps([clf._approach.name, params, rows.shape]).encode())
    digest.update(repr(clf.module_).encode())
    for part in (annotations.item, annotations.annotator, annotations.label):
        digest.update(part.tobytes())
    if described is not None:
        digest.update(described.tobytes())
    if annotations.weight is not None:
        digest.update(annotations.weight.tobytes())
    step = max(1, len(rows) // 1024)
    digest.update(np.ascontiguousarray(rows[::step]).tobytes())
    return digest.hexdigest()
