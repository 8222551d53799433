"""Classifiers with a network and segmenters on disk, and the fingerprint of a run."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

import annotmix
from annotmix.encoders import Encoder, encoder_from_dict, make_encoder
from annotmix.estimators.learnt_items import LEARNT, MEMBERS, UNSEEN_NAME, LearntItems, require_members
from annotmix.estimators.model_facts import ModelFacts, names_or_none, names_to_json
from annotmix.estimators.parameters import Network, check_parameters
from annotmix.estimators.preparation import Preparation
from annotmix.labels.annotations import Annotations
from annotmix.networks.devices import pick_device
from annotmix.networks.generator import borrowed_generator
from annotmix.training.loop import INITIALISATION, randomness
from annotmix.training.tensor_files import ModelFileError, save_model
from annotmix.training.tensor_layout import Layout, require_layout

if TYPE_CHECKING:
    from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier
    from annotmix.estimators.segmentation import AnnotMixSegmenter

#: Name under which features of some training items are kept beside the weights.
REFERENCE_NAME = "reference"
#: Parameters that have no influence on the weights.
_NEUTRAL = {"select", "device", "devices", "progress", "checkpoint", "checkpoint_every"}
_NEUTRAL |= {"backbone", "encoder"}  # they show in the module and in X
#: How much larger networks may be in training than what is saved of them: folds are dropped.
MOST_TIMES = 128


def save(model: Any, folder: str | os.PathLike[str]) -> None:
    """Write a fitted classifier or segmenter into a folder, as safetensors and JSON."""
    custom, known = isinstance(model.backbone, torch.nn.Module), model.annotator_preparation_
    params = model.get_params(deep=False) | {
        "backbone": None if custom else model.backbone,
        "random_state": model.seed_,
        "classes": None if model.classes is None else list(np.asarray(model.classes).tolist()),
        "checkpoint": None,  # a file never says where to write
    }
    params.pop("encoder", None)
    facts = {
        "approach": model._approach.name,
        "annotmix": annotmix.__version__,
        "params": params,
        "encoder": None if model.encoder is None else model.encoder_.to_dict(),
        "network": {name: getattr(model, f"{name}_", None) for name in Network._fields},
        "shape": list(model._shape),
        "backbone_class": type(model.backbone).__qualname__ if custom else None,
        "classes": names_to_json(model.classes_),
        "annotators": names_to_json(model.annotators_),
        "labels_per_annotator": model.labels_per_annotator_.tolist(),
        "annotator_features": known and known.to_dict(),
        "n_modelled": model.module_.n_annotators,
        "feature_names": getattr(model, "feature_names_in_", np.zeros(0)).tolist(),
        "history": model.history_.reset_index().to_dict("list"),
        "best_epoch": model.best_epoch_,
        "seed": model.seed_,
    }
    tensors = {name: t.contiguous() for name, t in model.module_.state_dict().items()}
    tensors[REFERENCE_NAME] = model._reference.contiguous()
    if (learnt := getattr(model, "_learnt", None)) is not None:
        tensors |= {name: torch.tensor(array) for name, array in learnt.to_arrays().items()}
        facts["items"] = names_or_none(learnt.annotations.items)
    if getattr(model, "_learnt_sets", False):
        tensors[MEMBERS] = torch.tensor(model._members)
    if getattr(model, "unseen_proba_", None) is not None:
        tensors[UNSEEN_NAME] = torch.from_numpy(model.unseen_proba_)
    try:
        json.dumps(facts)
    except TypeError as error:
        raise TypeError(f"A parameter cannot be saved as JSON: {error}.") from error
    save_model(folder, tensors, facts)


def restorer(
    facts: ModelFacts,
    layout: Layout,
    backbone: torch.nn.Module | None,
    encoder: str | Encoder | None,
    device: str,
) -> Callable[[dict[str, Tensor]], MultiAnnotatorClassifier | AnnotMixSegmenter]:
    """A function that makes the estimator of its tensors, whose layout is compared with the facts here."""
    model, is_segmenter = _estimator(facts, backbone, encoder, device)
    described = None
    if not is_segmenter:
        model._learnt_sets = MEMBERS in layout
    if facts.annotator_features is not None:
        model.annotator_preparation_ = Preparation.from_file(facts.annotator_features)
        width = len(model.annotator_preparation_.feature_names)
        described = np.zeros((facts.n_modelled, width), dtype=np.float32)  # the weights hold it
    _require_weights(model, facts, layout, described, is_segmenter)

    def restore(tensors: dict[str, Tensor]) -> MultiAnnotatorClassifier | AnnotMixSegmenter:
        with randomness(model.seed_, INITIALISATION):
            model.module_ = model._make_module(facts.n_modelled, described).to(pick_device(device))
        model.module_.finish()
        if not is_segmenter:
            items = None if facts.items is None else facts.items.to_array()
            arrays = {
                name: tensors.pop(name).cpu().numpy() for name in list(tensors) if name.startswith(LEARNT)
            }
            names = model.classes_
            if model._learnt_sets:
                model._members = tensors.pop(MEMBERS).cpu().numpy()
                names = np.arange(len(model._members))
            model._learnt = LearntItems.from_arrays(arrays, items, model.annotators_, names)
        # copies: results depend on the alignment of memory, and a file has its own
        model.states_ = {model.select: {name: t.to(model._device, copy=True) for name, t in tensors.items()}}
        set_state(model, model.states_[model.select])
        return model  # type: ignore[no-any-return]

    return restore


def _estimator(
    facts: ModelFacts, backbone: torch.nn.Module | None, encoder: str | Encoder | None, device: str
) -> tuple[Any, bool]:
    """The estimator without its networks, and whether it is a segmenter."""
    # the classes themselves save through this module, so they cannot be imported above
    from annotmix.estimators.classifier_factory import make_classifier
    from annotmix.estimators.segmentation import AnnotMixSegmenter

    if facts.backbone_class is not None and backbone is None:
        raise ModelFileError(
            f"The model was trained with a backbone of its own ({facts.backbone_class!s:.100}), which is not "
            "saved as code: pass an instance, annotmix.load(folder, backbone=…)."
        )
    params: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in facts.params.items()
    }
    params |= {"device": device, "checkpoint": None} | ({} if backbone is None else {"backbone": backbone})
    is_segmenter = facts.approach == AnnotMixSegmenter._approach.name
    model: Any = AnnotMixSegmenter(**params) if is_segmenter else make_classifier(facts.approach, **params)
    check_parameters(model, has_validation=True)
    if facts.encoder is not None:
        model.encoder = model.encoder_ = (
            encoder_from_dict(facts.encoder, device=device)
            if encoder is None
            else make_encoder(encoder, device=device)
        )
    elif encoder is not None:
        raise ModelFileError("encoder= was passed, but the model was trained without one.")
    model.classes_, model.annotators_ = facts.classes.to_array(), facts.annotators.to_array()
    model.labels_per_annotator_ = np.array(facts.labels_per_annotator, dtype=np.int64)
    if not is_segmenter:
        model.hidden_ = None if facts.network.hidden is None else tuple(facts.network.hidden)
        model.dropout_, model.weight_decay_ = facts.network.dropout, facts.network.weight_decay
        model.annotator_preparation_ = None
    model._shape, model.seed_, model.best_epoch_ = tuple(facts.shape), facts.seed, facts.best_epoch
    model.n_features_in_ = model._shape[0]
    if facts.feature_names:
        model.feature_names_in_ = np.array(facts.feature_names, dtype=object)
    model.history_ = pd.DataFrame(facts.history).set_index("epoch")
    model.n_iter_ = len(model.history_)
    return model, is_segmenter


def _require_weights(
    model: Any, facts: ModelFacts, layout: Layout, described: NDArray[Any] | None, is_segmenter: bool
) -> None:
    """Refuse tensors that are not those of the networks that the facts describe; nothing is allocated."""
    # a backbone of the caller runs a batch when it is copied, which a module without memory may not do
    place = "cpu" if isinstance(model.backbone, torch.nn.Module) else "meta"
    with torch.device(place), borrowed_generator():
        module = model._make_module(facts.n_modelled, described)
        n_bytes = sum(t.nbytes for t in module.state_dict().values())
        module.finish()
    if n_bytes > MOST_TIMES * sum(entry.n_bytes for entry in layout.values()) + (1 << 26):
        raise ValueError(
            f"its parameters ask for networks of {n_bytes} bytes, far more than the weights have."
        )
    expected = {
        **module.state_dict(),
        REFERENCE_NAME: torch.zeros(0, module.classifier.n_hidden, device="meta"),
    }
    rest = dict(layout)
    if not is_segmenter and model._learnt_sets:
        require_members(rest, len(model.classes_))
        del rest[MEMBERS]
    if not is_segmenter:
        n_items = LearntItems.require_layout(rest, None if facts.items is None else len(facts.items.values))
        shape = (n_items, len(model.classes_))
        if UNSEEN_NAME in rest:
            expected[UNSEEN_NAME] = torch.empty(
                shape, dtype=getattr(torch, rest[UNSEEN_NAME].kind), device="meta"
            )
    require_layout(rest, expected)


def set_state(model: Any, state: dict[str, Tensor]) -> None:
    """Give an estimator the weights and the reference features of `state`."""
    weights = dict(state)
    # a copy: results depend on the alignment of memory, and a loaded file has its own
    model._reference = weights.pop(REFERENCE_NAME).to(model._device).clone()
    if UNSEEN_NAME in weights:
        model.unseen_proba_ = weights.pop(UNSEEN_NAME).cpu().numpy()
    model.__dict__.pop("posterior_", None)
    model.module_.load_state_dict(weights, assign=True)  # the module is a view of the state: no second copy
    model.module_.eval()


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
