"""One scikit-learn classifier an approach, made from the approach.

Shared parameters come from `MultiAnnotatorClassifier`, the approach's own from the keyword-only arguments of
its `__init__`. So an approach that is added is an estimator at once, with explicit and documented parameters.
"""

from __future__ import annotations

import inspect
import os
from typing import Any

import numpy as np
import pandas as pd
import torch

from annotmix._common.words import some
from annotmix.approaches import Approach, get_approach, list_approaches
from annotmix.encoders import Encoder, encoder_from_dict, make_encoder
from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier
from annotmix.estimators.pixels import AnnotMixPixels
from annotmix.estimators.preparation import Preparation
from annotmix.networks.devices import pick_device
from annotmix.training import persistence
from annotmix.training.loop import INITIALISATION, randomness


def classifier_class(approach: type[Approach]) -> type[MultiAnnotatorClassifier]:
    """The estimator of an approach, for example `AnnotMixClassifier` of annot-mix."""
    name = class_name(approach.name)
    known = globals().get(name)
    if known is not None and known._approach is approach:
        return known  # type: ignore[no-any-return]
    shared = inspect.signature(MultiAnnotatorClassifier.__init__).parameters
    own = approach.hyper_parameters()
    at = list(shared).index("max_epochs")  # architecture, then the approach's own, then training
    order = [*list(shared)[:at], *own, *list(shared)[at:]]
    signature = inspect.Signature([own.get(key) or shared[key] for key in order])

    def __init__(self: MultiAnnotatorClassifier, **params: Any) -> None:
        for key, parameter in signature.parameters.items():
            if key != "self":
                setattr(self, key, params.pop(key, parameter.default))
        if params:
            raise TypeError(f"{name} has no parameter {some(list(params))}. It has {', '.join(order[1:])}.")

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    made = type(
        name,
        (MultiAnnotatorClassifier,),
        {"__init__": __init__, "__doc__": _doc(approach), "__module__": __name__, "_approach": approach},
    )
    globals()[name] = made
    return made


def class_name(name: str) -> str:
    """The name of an approach's estimator class: "annot-mix" is `AnnotMixClassifier`."""
    return "".join(part.capitalize() for part in name.split("-")) + "Classifier"


def make_classifier(approach: str, **params: Any) -> MultiAnnotatorClassifier:
    """The estimator of an approach by the paper's name, for example "annot-mix"."""
    return classifier_class(get_approach(approach))(**params)


def load(
    folder: str | os.PathLike[str],
    *,
    backbone: torch.nn.Module | None = None,
    encoder: str | Encoder | None = None,
    device: str = "auto",
) -> MultiAnnotatorClassifier:
    """Read a model that `save` wrote. Nothing in the files is executed.

    Parameters
    ----------
    folder : path
    backbone : torch.nn.Module, optional
        The backbone, where the model was trained with one of your own.
    encoder : str or encoder, optional
        In place of the encoder that the model names, for example where its folder has moved. An encoder's
        weights are read when they are first needed.
    device : str, default="auto"
    """
    tensors, facts = persistence.load_model(folder)
    try:
        if facts["approach"] == AnnotMixPixels.name:
            raise persistence.ModelFileError(
                f"{os.fspath(folder)!r} holds a segmenter: use annotmix.AnnotMixSegmenter.load."
            )
        if facts["backbone_class"] is not None and backbone is None:
            raise persistence.ModelFileError(
                f"The model was trained with a backbone of its own ({facts['backbone_class']}), which is not "
                "saved as code: pass an instance, annotmix.load(folder, backbone=…)."
            )
        clf = make_classifier(facts["approach"], **_tuples(facts["params"]))
        clf.set_params(device=device)
        if (found := _encoder(encoder, facts["params"].get("encoder"), device)) is not None:
            clf.encoder = clf.encoder_ = found
        if backbone is not None:
            clf.set_params(backbone=backbone)
        clf.classes_ = persistence.names_from_json(facts["classes"])
        clf.annotators_ = persistence.names_from_json(facts["annotators"])
        clf._shape = tuple(facts["shape"])
        clf.n_features_in_ = clf._shape[0]
        if facts["feature_names"]:
            clf.feature_names_in_ = np.array(facts["feature_names"], dtype=object)
        clf.history_ = pd.DataFrame(facts["history"]).set_index("epoch")
        clf.n_iter_, clf.best_epoch_, clf.seed_ = len(clf.history_), facts["best_epoch"], facts["seed"]
        # models of older versions lack both
        counts = facts.get("labels_per_annotator") or [1] * len(clf.annotators_)
        clf.labels_per_annotator_ = np.array(counts, dtype=np.int64)
        saved, described, clf.annotator_preparation_ = facts.get("annotator_features"), None, None
        if saved is not None:
            clf.annotator_preparation_ = Preparation.from_dict(saved)
            width = len(clf.annotator_preparation_.feature_names)
            described = np.zeros((facts["n_modelled"], width), dtype=np.float32)  # the weights hold it
        with randomness(clf.seed_, INITIALISATION):
            clf.module_ = clf._make_module(facts["n_modelled"], described).to(pick_device(device))
        clf.module_.finish()
        # copies: results depend on the alignment of memory, and a file has its own
        clf.states_ = {clf.select: {name: t.to(clf._device, copy=True) for name, t in tensors.items()}}
        return clf.use(clf.select)
    except persistence.ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise persistence.ModelFileError(
            f"{os.fspath(folder)!r} does not hold a model that this version of annotmix understands: {error}"
        ) from error


def _encoder(given: str | Encoder | None, saved: dict[str, Any] | None, device: str) -> Encoder | None:
    if saved is not None:
        return (
            encoder_from_dict(saved, device=device) if given is None else make_encoder(given, device=device)
        )
    if given is not None:
        raise persistence.ModelFileError("encoder= is given, but the model was trained without one.")
    return None


def _tuples(params: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in params.items()}


def _doc(approach: type[Approach]) -> str:
    """The approach's documentation, with the shared parameters after its own."""
    text = inspect.getdoc(approach) or approach.name
    shared = inspect.cleandoc(MultiAnnotatorClassifier.__doc__ or "").split("----------\n", 1)[1]
    if "----------\n" not in text:
        text += "\n\nParameters\n----------\n"
    return f"{text.rstrip()}\n{shared}"


def __getattr__(name: str) -> Any:
    for approach in list_approaches():
        if class_name(approach) == name:
            return classifier_class(get_approach(approach))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["MultiAnnotatorClassifier", "classifier_class", "load", "make_classifier"]
