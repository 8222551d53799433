"""Loading of what `save` wrote: a classifier or segmenter, or the posterior of its training items alone.

Without a network nothing here needs torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from annotmix._common.schema import decode, read_json
from annotmix.estimators.learnt_items import LEARNT, UNSEEN_NAME, LearntItems
from annotmix.estimators.model_facts import CROWD, CrowdFacts, ModelFacts
from annotmix.labels.posterior import Posterior
from annotmix.training.tensor_files import ModelFile, ModelFileError, Read, load_arrays, load_model
from annotmix.training.tensor_layout import Layout

if TYPE_CHECKING:
    import torch

    from annotmix.encoders import Encoder
    from annotmix.estimators.crowd import CrowdClassifier
    from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier
    from annotmix.estimators.segmentation import AnnotMixSegmenter


def load(
    folder: str | os.PathLike[str],
    *,
    backbone: torch.nn.Module | None = None,
    encoder: str | Encoder | None = None,
    device: str = "auto",
) -> MultiAnnotatorClassifier | AnnotMixSegmenter | CrowdClassifier:
    """Read a classifier or segmenter that `save` wrote. Nothing in the files is executed.

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
    prepared: list[Callable[[dict[str, Any]], Any]] = []

    def check(facts: dict[str, Any], layout: Layout) -> Read | None:
        # the classes themselves save through these modules, and a crowd classifier needs no torch
        if facts.get("approach") == CROWD:
            from annotmix.estimators import crowd_files

            prepared.append(crowd_files.restorer(facts, layout))
            return load_arrays
        from annotmix.estimators import persistence

        network = decode(facts, ModelFacts)
        prepared.append(persistence.restorer(network, layout, backbone, encoder, device))
        return None

    with _understood(folder):
        tensors, _ = load_model(folder, check)
        return prepared[-1](tensors)  # type: ignore[no-any-return]


def holds_network(folder: str | os.PathLike[str]) -> bool:
    """Whether a saved classifier is a network and not one of scikit-learn; only `model.json` is read."""
    saved = read_json(Path(folder) / "model.json", ModelFile, ModelFileError)
    return saved.model.get("approach") != CROWD


def load_posterior(folder: str | os.PathLike[str]) -> Posterior:
    """The posterior of the training items of a saved classifier, as its `posterior_`; no network is read."""
    about: list[CrowdFacts | ModelFacts] = []

    def check(facts: dict[str, Any], layout: Layout) -> Read:
        crowd = facts.get("approach") == CROWD
        saved = decode(facts, CrowdFacts) if crowd else decode(facts, ModelFacts)
        about.append(saved)
        rest = dict(layout)
        n_items = LearntItems.require_layout(rest, None if saved.items is None else len(saved.items.values))
        shape = [n_items, len(saved.classes.values)]
        if UNSEEN_NAME not in rest or rest[UNSEEN_NAME].shape != shape:
            raise ValueError(f"the class probabilities of {n_items} learnt items are absent.")
        return partial(load_arrays, prefixes=(LEARNT, UNSEEN_NAME))

    with _understood(folder):
        arrays, _ = load_model(folder, check)
        facts = about[-1]
        items = None if facts.items is None else facts.items.to_array()
        learnt = LearntItems.from_arrays(arrays, items, facts.annotators.to_array(), facts.classes.to_array())
        if learnt is None:
            raise ValueError("the labels are absent.")
        return learnt.posterior(np.asarray(arrays[UNSEEN_NAME]))


@contextmanager
def _understood(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever is wrong with the content of a model's files, as a `ModelFileError`."""
    try:
        yield
    except ModelFileError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RuntimeError,
        ArithmeticError,
        MemoryError,
    ) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelFileError(
            f"{os.fspath(folder)!r} does not hold a model that this version of annotmix understands: "
            f"{reason:.500}"
        ) from error
