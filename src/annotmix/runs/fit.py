"""`annotmix fit`: read, prepare, train, evaluate, write."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import annotmix
from annotmix._common.files import save_array, write_json
from annotmix._common.spreadsheet import EXPLANATION
from annotmix._common.words import count
from annotmix.labels.names import locate
from annotmix.labels.posterior import Posterior
from annotmix.labels.set_posterior import MultiLabelPosterior
from annotmix.runs.crowd_agreement import crowd_agreement
from annotmix.runs.evaluate import score
from annotmix.runs.evaluate_sets import score_sets
from annotmix.runs.findings import Findings, Preview, doubts
from annotmix.runs.folder import RunFolder
from annotmix.runs.inputs import Inputs, Say, read_inputs, understood_lines
from annotmix.runs.kind_tables import kind_tables, with_kinds, with_unparsed
from annotmix.runs.leaks import leaks
from annotmix.runs.models import history, model_name, parameters, train
from annotmix.runs.prepare import ItemPreparation, fit_item_preparation
from annotmix.runs.previews import make_previews
from annotmix.runs.request import DEFAULT_APPROACH, Request
from annotmix.runs.result_columns import make_table
from annotmix.runs.result_tables import classifier_proba, make_tables, with_times
from annotmix.runs.set_tables import make_set_tables
from annotmix.runs.storage import FEATURES, write_findings
from annotmix.runs.suggest import suggest_for
from annotmix.training.torchrun import by_torchrun

if TYPE_CHECKING:
    from annotmix.runs.models import Model

Floats = NDArray[np.float32]

#: How the interval of an annotator's accuracy is made (`annotmix.labels.posterior.annotator_table`).
INTERVAL = (
    "95 % of a Beta distribution with the mean m = (r + 1/2) / (n + 1) and the variance m (1 - m) / (n + 2) "
    "+ sum p (1 - p) / (n + 1)^2; p is the chance that a label is right, r the sum of p over the n labels"
)
#: Suggestions that are made with a run.
SUGGESTIONS = 100


def fit(
    request: Request, say: Say, progress: bool = True, previews: Mapping[str, Preview] | None = None
) -> Findings:
    """Learn from the files that the request names and write a run's folder.

    Parameters
    ----------
    request : Request
    say : callable
        Called with every line of output.
    progress : bool, default=True
        Show progress bars.
    previews : mapping of item to Preview, optional
        Previews of items in the report; by default made from texts and images.
    """
    if by_torchrun():
        raise ValueError("annotmix fit starts its processes itself: use --devices in place of torchrun.")
    folder = RunFolder(request.out)
    with folder.claim(request.resume, request.overwrite):
        inputs = read_inputs(request, progress)
        encoded = inputs.items.kind != "features"
        if encoded:
            _say_all(say, understood_lines(inputs.understood, inputs.notes))
            what = "texts" if inputs.items.kind == "text" else inputs.items.kind
            say(f"Encoding {len(inputs.items.ids)} {what} …")
        preparation, X, notes = fit_item_preparation(inputs.items, request.encoder, progress)
        inputs.notes.extend(notes)
        if not encoded:
            inputs.notes.extend(leak.note for leak in leaks(inputs.items.X, inputs.annotations))
        if not encoded:
            _say_all(say, understood_lines(inputs.understood, inputs.notes))
        model = train(request, folder, inputs, X, say, progress)
        findings = _findings(request, inputs, preparation, X, model, previews)
        say(f"Writing {request.out} …")
        _write(request, folder, inputs, preparation, X, model, findings)
    return findings


def _findings(
    request: Request,
    inputs: Inputs,
    preparation: ItemPreparation,
    X: Floats,
    model: Model,
    previews: Mapping[str, Preview] | None,
) -> Findings:
    posterior: Any = model.posterior_
    proba = classifier_proba(model, X)
    tables: dict[str, Any] = {"classes": np.array([str(name) for name in model.classes_], dtype=object)}
    if inputs.sets is None:
        tables |= make_tables(posterior, proba)
    else:
        gold = locate(np.array([*inputs.gold, None], dtype=object)[:-1], inputs.sets.items)
        tables |= make_set_tables(posterior, proba, gold)
        suggested = pd.DataFrame(columns=["item", "annotator", "gain", "performance"])
    if inputs.times is not None:
        tables["labels"] = with_times(tables["labels"], inputs.times)
    if inputs.unparsed:
        tables["annotators"] = with_unparsed(tables["annotators"], inputs.unparsed)
    kinds: dict[str, pd.DataFrame] = {}
    if inputs.sets is None:
        kinds = kind_tables(posterior, inputs.annotators, inputs.unparsed)
        if kinds:
            tables["annotators"] = with_kinds(tables["annotators"], kinds["crowd"])
        suggested = suggest_for(posterior, kinds.get("crowd"), SUGGESTIONS, inputs.unmatched.items)
    suggestions = make_table("suggestions", suggested)
    unsure = doubts(tables["items"]) if inputs.sets is None else []
    notes = [*inputs.notes, *unsure, *_evidence(model_name(model), posterior)]
    if inputs.sets is None:
        notes.extend(posterior.dependence.warnings)
    if inputs.unmatched.note:
        notes.insert(0, inputs.unmatched.note)
    findings = Findings(
        title=f"{model_name(model)} on {', '.join(path.name for path in request.labels[:3])}",
        **tables,
        history=history(model),
        suggestions=suggestions,
        previews=previews or make_previews(inputs.items, tables["items"], tables["labels"], suggestions),
        settings=_settings(request, inputs, preparation, model),
        inputs=[asdict(source) for source in inputs.sources],
        notes=notes,
        unmatched=inputs.unmatched,
        kinds=kinds,
        agreement=None if inputs.sets is not None else crowd_agreement(posterior.annotations),
    )
    if not inputs.truth:
        return findings
    return score(findings, inputs.truth) if inputs.sets is None else score_sets(findings, inputs.truth)


def _evidence(approach: str, posterior: Posterior | MultiLabelPosterior) -> list[str]:
    """A note where labels are judged by the labels alone."""
    if posterior.helps:
        return []
    without, with_classifier, rise = _likelihood(posterior)
    if np.isnan(rise):
        return [
            f"{approach} has no predictions of items that it has not learnt, so labels are judged by labels "
            f"alone; {DEFAULT_APPROACH} has."
        ]
    return [
        "The features do not help: labels are judged by the labels alone (likelihood of a label given the "
        f"others {np.exp(without):.3f} without, {np.exp(with_classifier):.3f} with the classifier)."
    ]


def _settings(request: Request, inputs: Inputs, preparation: ItemPreparation, model: Model) -> dict[str, Any]:
    return {
        "approach": model_name(model),
        "seed": request.seed,
        "parameters": parameters(model),
        "encoder": preparation.encoder_name,
        **({"columns": columns} if (columns := preparation.columns(inputs.items)) else {}),
        **({"gold": f"true labels of {count(len(inputs.gold), 'item')}"} if inputs.gold else {}),
        "posterior": _weights(model.posterior_),
        "interval": INTERVAL,
        "versions": _versions(),
        "command": request.command(),
    }


def _likelihood(posterior: Posterior | MultiLabelPosterior) -> Any:
    """Log-likelihood of a label from labels alone and with the classifier, and its rise; over all classes."""
    likelihood = posterior.likelihood
    return likelihood.mean() if isinstance(likelihood, pd.DataFrame) else likelihood


def _weights(posterior: Posterior | MultiLabelPosterior) -> dict[str, Any]:
    """How much classifier, labels and class shares count, and the mean log-likelihoods that say so.

    Of several classes per item the means over classes.
    """
    each = (
        [own.weights for own in posterior.by_class]
        if isinstance(posterior, MultiLabelPosterior)
        else [posterior.weights]
    )
    without, with_classifier, rise = _likelihood(posterior)
    weights = {
        "classifier": round(float(np.mean([own.classifier for own in each])), 3),
        "correlation": round(float(np.mean([own.correlation for own in each])), 3),
        "shares": round(float(np.mean([own.shares for own in each])), 3),
        "likelihood without": float(without),
        "likelihood with": float(with_classifier),
        "helps": posterior.helps,
        "out of fold": not bool(np.isnan(rise)),
    }
    if isinstance(posterior, MultiLabelPosterior):
        return weights
    return weights | {
        "rise by votes": float(posterior.soft_labels().rise),
        "pairs judged": len(posterior.dependence.pairs),
        "votes": posterior.dependence.n_votes,
    }


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "annotmix": annotmix.__version__}
    for package in ("torch", "numpy", "pandas", "scipy", "scikit-learn", "transformers"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _write(
    request: Request,
    folder: RunFolder,
    inputs: Inputs,
    preparation: ItemPreparation,
    X: Floats,
    model: Model,
    findings: Findings,
) -> None:
    with folder.replace() as stage:
        model.save(stage / "model")
        write_json(stage / "model" / "preparation.json", preparation.to_dict())
        write_findings(stage, findings)
        save_array(stage / FEATURES, X)
        run = {
            "annotmix": annotmix.__version__,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "request": request.settings(),
            "settings": findings.settings,
            "inputs": findings.inputs,
            "understood": inputs.understood,
            "notes": findings.notes,
            "csv": EXPLANATION,
        }
        write_json(stage / "run.json", run)


def _say_all(say: Say, lines: list[str]) -> None:
    for line in lines:
        say(line)
