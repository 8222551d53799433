"""The models that `annotmix fit` can train: a network, or a classifier of scikit-learn."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix.estimators.crowd import CrowdClassifier
from annotmix.runs.folder import RunFolder
from annotmix.runs.inputs import Inputs, Say
from annotmix.runs.request import MODELS, Request
from annotmix.training.tensor_files import ModelFileError

if TYPE_CHECKING:  # imported where a network is trained: it needs torch
    from annotmix.estimators import MultiAnnotatorClassifier

    Model = MultiAnnotatorClassifier | CrowdClassifier

Floats = NDArray[np.float32]

#: Parameters of every network that the report shows.
SHOWN = ("hidden", "dropout", "max_epochs", "batch_size", "lr", "weight_decay", "select")
NAMES = {"logistic": "logistic regression", "boosting": "gradient boosting"}


def train(request: Request, folder: RunFolder, inputs: Inputs, X: Floats, say: Say, progress: bool) -> Model:
    """The model that the request names, trained; of "auto", the one that predicts held-out labels best."""
    if request.model == "network":
        return _network(request, folder, inputs, X, say, progress)
    if request.model in NAMES:
        return _crowd(request, request.model, inputs, X, say, progress)
    if request.model != "auto":
        raise ValueError(f"--model must be one of {', '.join(MODELS)}, found {request.model!r}.")
    models: list[Model] = [_network(request, folder, inputs, X, say, progress)]
    models += [_crowd(request, kind, inputs, X, say, progress) for kind in NAMES]
    likelihood = [float(np.exp(np.mean(model.posterior_.likelihood["with classifier"]))) for model in models]
    best = models[int(np.argmax(likelihood))]
    shown = ", ".join(f"{model_name(m)} {value:.3f}" for m, value in zip(models, likelihood, strict=True))
    note = f"Chose {model_name(best)}: it predicts a label given the others of its item best ({shown})."
    inputs.notes.append(note)
    say(note)
    return best


def model_name(model: Model) -> str:
    """What the report calls a model."""
    if isinstance(model, CrowdClassifier):
        return NAMES[model.estimator]
    return model._approach.name


def history(model: Model) -> pd.DataFrame:
    """Losses and scores by epoch; empty for a model without epochs."""
    if isinstance(model, CrowdClassifier):
        return pd.DataFrame({"loss": np.zeros(0)}, index=pd.Index(np.zeros(0, np.int64), name="epoch"))
    return model.history_.drop(columns=["lr", "seconds"], errors="ignore")


def parameters(model: Model) -> dict[str, Any]:
    """The parameters that the report shows."""
    params = model.get_params(deep=False)
    if isinstance(model, CrowdClassifier):
        own = (
            {"C": model.estimator_[-1].C} if model.estimator == "logistic" and not model._learnt_sets else {}
        )
        return {"estimator": model.estimator, **own, "cv": model.cv, "rounds": model.n_rounds_}
    from annotmix.estimators.parameters import Network

    params |= {name: getattr(model, f"{name}_") for name in Network._fields}
    return {name: params[name] for name in [*SHOWN, *model._approach.hyper_parameters()]}


def _crowd(
    request: Request, kind: str, inputs: Inputs, X: Floats, say: Say, progress: bool
) -> CrowdClassifier:
    say(f"Training {NAMES[kind]} …")
    model = CrowdClassifier(kind, random_state=request.seed, progress=progress)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*items have no labels.*")  # said already
        labels = inputs.annotations if inputs.sets is None else inputs.sets
        return model.fit(X, labels, items=inputs.items.ids, gold=inputs.gold or None)


def _network(
    request: Request, folder: RunFolder, inputs: Inputs, X: Floats, say: Say, progress: bool
) -> MultiAnnotatorClassifier:
    from annotmix.estimators import make_classifier
    from annotmix.estimators.parameters import resolve_network

    ids, truth = inputs.items.ids, inputs.truth
    row = {item: n for n, item in enumerate(ids)}
    known = [item for item in truth if item in row]
    if truth and not known:
        raise ValueError(f"None of the {len(truth)} items in --valid is among the {len(row)} items.")
    validation = (X[[row[item] for item in known]], [truth[item] for item in known]) if known else None
    if inputs.sets is not None and known:
        validation, known = None, []
        inputs.notes.append("With --multi-label, --valid gives scores and does not choose the epoch.")
    model = make_classifier(
        request.approach,
        max_epochs=request.epochs,
        random_state=request.seed,
        select="best" if known else "last",
        devices=request.devices,
        checkpoint=folder.checkpoint,
        checkpoint_every=1,
        progress=progress,
    )
    network = resolve_network(model, X.shape[1:], inputs.annotations)
    layers = " and ".join(map(str, network.hidden))
    say(
        f"Training {request.approach} for {request.epochs} epochs (layers of {layers}, dropout "
        f"{network.dropout:g}) …"
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*items have no labels.*")  # said already
        try:
            labels = inputs.annotations if inputs.sets is None else inputs.sets
            model.fit(X, labels, items=ids, gold=inputs.gold or None, validation=validation)
        except ModelFileError as error:
            raise ValueError(
                f"The unfinished run in {str(folder.path)!r} cannot be resumed: its files or options were "
                f"others, or it is damaged. Start again with --overwrite. ({error})"
            ) from None
        except ChildProcessError as error:
            raise ChildProcessError(f"{error} Continue with: {request.command('--resume')}") from None
    model.set_params(checkpoint=None, devices=None)
    return model
