"""`annotmix fit`: read, match, prepare, train, find out, write."""

from __future__ import annotations

import json
import platform
import warnings
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import annotmix
from annotmix.encoders import encoder_from_dict, make_encoder
from annotmix.estimators.beliefs import Beliefs, beliefs
from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier
from annotmix.estimators.preparation import Preparation, fit_preparation
from annotmix.estimators.suggestion import suggest_from
from annotmix.reading import (
    Columns,
    Instances,
    Labelled,
    read_features,
    read_images,
    read_labels,
    read_texts,
    read_truth,
)
from annotmix.reading.files import Source
from annotmix.runs import defaults, finding, spreadsheet, storage
from annotmix.runs.findings import Findings, doubts
from annotmix.runs.folder import RunFolder
from annotmix.runs.matching import Matched, Say, match, show, understood
from annotmix.runs.previews import make_previews, shown_items
from annotmix.runs.request import Request
from annotmix.runs.scoring import score
from annotmix.training.processes import by_torchrun
from annotmix.training.tensor_files import ModelFileError

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class _Prepared:
    """Instances as a matrix, and all that makes the same of new ones."""

    X: Floats
    preparation: Preparation
    encoder: dict[str, Any] | None
    notes: list[str]


def fit(request: Request, say: Say, progress: bool = True) -> Findings:
    """Learn from the files that the request names and write a run's folder.

    Parameters
    ----------
    request : Request
    say : callable
        Gets a line at a time of what was understood and is being done.
    progress : bool, default=True
        Show progress bars.
    """
    if by_torchrun():
        raise ValueError("annotmix fit starts its processes itself: use --devices in place of torchrun.")
    folder = RunFolder(request.out)
    folder.claim(request.resume, request.overwrite)
    try:
        labelled = read_labels(request.labels, request.format, _columns(request))
        instances = _instances(request, labelled, progress)
        matched = match(labelled, instances)
        truth = _truth(request)
        figures = understood(labelled, matched, instances)
        notes = [*labelled.notes, *instances.notes, *truth[1], *finding.remarks(matched.annotations)]
        if instances.kind != "features":
            show(figures, notes, say)
            say(f"Encoding {len(instances.ids)} {instances.kind} …")
        prepared = _prepare(request, instances, progress)
        if instances.kind == "features":
            notes += prepared.notes
            show(figures, notes, say)
        model = _train(request, folder, instances, matched, prepared, truth[0], say, progress)
        found = _find(request, model, instances, matched, prepared, truth, labelled, notes)
        say(f"Writing {request.out} …")
        _write(request, folder, model, found, instances, prepared, figures)
    except BaseException:
        folder.release()
        raise
    return found


def encode(instances: Instances, encoder: dict[str, Any] | None) -> pd.DataFrame:
    """Instances as a table of numbers or categories: as they are, or through the encoder."""
    if encoder is None:
        return instances.X
    return as_table(encoder_from_dict(encoder).encode(instances.X))


def as_table(features: NDArray[Any]) -> pd.DataFrame:
    """An encoder's features as a table whose columns are numbered."""
    return pd.DataFrame(features, columns=[str(n) for n in range(features.shape[1])])


def _columns(request: Request) -> Columns:
    return Columns(request.task, request.worker, request.label, request.missing, request.weight)


def _instances(request: Request, labelled: Labelled, progress: bool) -> Instances:
    given = [name for name in ("features", "text", "images") if getattr(request, name) is not None]
    if len(given) > 1:
        raise ValueError(
            "Give one of --features, --text and --images, found "
            f"{' and '.join('--' + name for name in given)}."
        )
    if request.features is not None:
        return read_features(
            request.features, request.ids, request.item_column, request.include, request.exclude
        )
    if request.text is not None:
        return read_texts(request.text, request.text_column, request.item_column)
    if request.images is not None:
        return read_images(request.images, list(labelled.annotations.items), progress)
    if not labelled.texts:
        raise ValueError(
            "Give the items that the labels are about: --features FILE, --text FILE or --images FOLDER. "
            "(For labels alone there is annotmix aggregate.)"
        )
    ids, notes = list(labelled.texts), ["The texts of the items come from the export itself."]
    return Instances("text", ids, [labelled.texts[item] for item in ids], notes, [])


def _truth(request: Request) -> tuple[dict[str, str], list[str], list[Source]]:
    if request.valid is None:
        return {}, [], []
    truth, notes, source = read_truth(request.valid, Columns(task=request.item_column), "valid")
    return truth, notes, [source]


def _prepare(request: Request, instances: Instances, progress: bool) -> _Prepared:
    table, encoder = instances.X, None
    if instances.kind != "features":
        made = make_encoder(request.encoder or defaults.ENCODERS[instances.kind], progress=progress)
        if made.kind != {"text": "text", "images": "image"}[instances.kind]:
            raise ValueError(f"--encoder {request.encoder} does not take {instances.kind}.")
        table, encoder = as_table(made.encode(instances.X)), made.to_dict()
    elif request.encoder is not None:
        raise ValueError("--encoder is for --text and --images; features are taken as they are.")
    preparation, notes = fit_preparation(table)
    return _Prepared(preparation.transform(table), preparation, encoder, notes)


def _train(
    request: Request,
    folder: RunFolder,
    instances: Instances,
    matched: Matched,
    prepared: _Prepared,
    truth: dict[str, str],
    say: Say,
    progress: bool,
) -> MultiAnnotatorClassifier:
    n_items = int((matched.annotations.labels_per_item > 0).sum())
    params = defaults.network(instances.kind, n_items, prepared.X.shape[1])
    row = {item: n for n, item in enumerate(instances.ids)}
    known = [item for item in truth if item in row]
    if truth and not known:
        raise ValueError(f"None of the {len(truth)} items in --valid is among the {len(row)} items.")
    validation = (
        (prepared.X[[row[item] for item in known]], [truth[item] for item in known]) if known else None
    )
    model = annotmix.make_classifier(
        request.approach,
        **params,
        max_epochs=request.epochs,
        random_state=request.seed,
        select="best" if known else "last",
        devices=request.devices,
        checkpoint=folder.checkpoint,
        checkpoint_every=1,
        progress=progress,
    )
    layers = " and ".join(map(str, params["hidden"]))
    say(
        f"Training {request.approach} for {request.epochs} epochs (layers of {layers}, dropout "
        f"{params['dropout']:g}) …"
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*items have no labels.*")  # said already
        try:
            model.fit(prepared.X, matched.annotations, tasks=instances.ids, validation=validation)
        except ModelFileError as error:
            raise ValueError(
                f"The unfinished run in {str(folder.path)!r} cannot be gone on with: its files or "
                "options were others, or "
                f"it is damaged. Start again with --overwrite. ({error})"
            ) from None
        except ChildProcessError as error:
            raise ChildProcessError(f"{error} Go on with: {request.command('--resume')}") from None
    return model


def _find(
    request: Request,
    model: MultiAnnotatorClassifier,
    instances: Instances,
    matched: Matched,
    prepared: _Prepared,
    truth: tuple[dict[str, str], list[str], list[Source]],
    labelled: Labelled,
    notes: list[str],
) -> Findings:
    believed = beliefs(model, prepared.X, matched.annotations, instances.ids)
    items, labels = finding.item_table(believed), finding.label_table(believed)
    suggestions = suggest_from(believed, defaults.SUGGESTIONS)
    notes = [*notes, *doubts(items)]
    if not believed.knows_annotators:
        notes.append(
            f"{request.approach} has no annotator model: labels are the classifier's alone, and "
            "annotators are judged by it."
        )
    if matched.lost:
        notes.append(f"{len(matched.lost)} labelled items had no {instances.kind} and were left out.")
    found = Findings(
        title=f"{request.approach} on {', '.join(path.name for path in request.labels[:3])}",
        classes=np.array([str(name) for name in model.classes_], dtype=object),
        items=items,
        annotators=finding.annotator_table(believed),
        confusion=believed.confusion,
        labels=labels,
        history=model.history_.drop(columns=["lr", "seconds"], errors="ignore"),
        suggestions=suggestions,
        previews=make_previews(
            instances.kind,
            dict(zip(instances.ids, instances.X, strict=True)) if instances.kind != "features" else {},
            shown_items(instances.kind, items, labels, suggestions),
        ),
        settings=_settings(request, model, prepared),
        inputs=[asdict(source) for source in (*labelled.sources, *instances.sources, *truth[2])],
        notes=notes,
    )
    return with_scores(found, believed, truth[0]) if truth[0] else found


def with_scores(found: Findings, believed: Beliefs, truth: dict[str, str]) -> Findings:
    """Findings with scores and calibration on true labels."""
    from dataclasses import replace

    predicted = found.classes[believed.p.argmax(axis=1)]
    scores, calibration, notes = score(found, predicted, truth)
    return replace(found, scores=scores, calibration=calibration, notes=[*found.notes, *notes])


def _settings(request: Request, model: MultiAnnotatorClassifier, prepared: _Prepared) -> dict[str, Any]:
    params = model.get_params(deep=False)
    shown = ("hidden", "dropout", "max_epochs", "batch_size", "lr", "weight_decay", "select")
    own = [*shown, *model._approach.hyper_parameters()]
    return {
        "approach": request.approach,
        "seed": request.seed,
        "parameters": {name: params[name] for name in own},
        "encoder": None
        if prepared.encoder is None
        else f"{prepared.encoder['kind']}:{prepared.encoder['params']['model']}",
        "interval": "95 %, Jeffreys: Beta(r + 1/2, n - r + 1/2), r of n labels expected to be right",
        "versions": _versions(),
        "command": request.command(),
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "annotmix": annotmix.__version__}
    for package in ("torch", "numpy", "pandas", "scipy", "scikit-learn", "transformers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # noqa: PERF203
            continue
    return found


def _write(
    request: Request,
    folder: RunFolder,
    model: MultiAnnotatorClassifier,
    found: Findings,
    instances: Instances,
    prepared: _Prepared,
    figures: dict[str, Any],
) -> None:
    from annotmix.runs.report.run import write_report

    model.set_params(checkpoint=None, devices=None)
    with folder.replace() as stage:
        model.save(stage / "model")
        about = {"kind": instances.kind, "id_column": instances.id_column, "encoder": prepared.encoder}
        saved = {"instances": about, "preparation": prepared.preparation.to_dict()}
        spreadsheet.write_text(stage / "model" / "preparation.json", json.dumps(saved, ensure_ascii=False))
        write_tables(stage, found)
        storage.save_findings(stage / "findings", found)
        storage.save_array(stage / "findings" / "features.npy", prepared.X)
        write_report(found, stage / "report.html")
        run = {
            "annotmix": annotmix.__version__,
            "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "request": request.settings(),
            "settings": found.settings,
            "inputs": found.inputs,
            "understood": figures,
            "notes": found.notes,
            "csv": "Texts that begin with = + - @, tab or CR got an apostrophe: no spreadsheet runs them.",
        }
        text = json.dumps(storage.plain(run), indent=1, ensure_ascii=False, allow_nan=False)
        spreadsheet.write_text(stage / "run.json", text)


def write_tables(folder: Path, found: Findings) -> None:
    """The three CSV files of a run."""
    spreadsheet.write_text(folder / "labels.csv", spreadsheet.to_csv(found.items, index=True))
    spreadsheet.write_text(folder / "annotators.csv", spreadsheet.to_csv(found.annotators, index=True))
    spreadsheet.write_text(folder / "suspicious_labels.csv", spreadsheet.to_csv(found.labels))
