"""Tasks for Label Studio: the questions of a run, with what is known about their items.

A task has the item as annotators see it (`data`), and the label found for it as a prediction. Fields of the
data that begin with `annotmix_` name the item, so that answers find it again, the annotators who are asked,
and, for reviews, the votes so far.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import numpy as np
import pandas as pd

import annotmix
from annotmix._common.files import to_json
from annotmix._common.words import some
from annotmix.reading.formats.label_studio_tables import ITEM_FIELD, OWN_FIELDS
from annotmix.runs.findings import Findings
from annotmix.runs.folder import RunFolder
from annotmix.runs.inputs import read_inputs
from annotmix.runs.request import Request

ASKED_FIELD, QUESTION_FIELD, VOTES_FIELD = (f"{OWN_FIELDS}{name}" for name in ("asked", "question", "votes"))
#: Label Studio's tag that shows an item, by the kind of the items.
_TAGS = {"text": "Text", "image": "Image", "features": "Table"}
_SHORTENED = "…"
#: Addresses that a browser can load, or that Label Studio makes loadable.
_ADDRESSES = ("http://", "https://", "/data/", "s3://", "gs://", "azure-blob://", "data:image/")


@dataclass(frozen=True)
class TaskForm:
    """How a project of Label Studio names the parts of a task.

    Parameters
    ----------
    question : str, optional
        The name of the choices (`from_name` of an answer); by default "label".
    shown : str, optional
        The name of the tag that shows the item (`to_name`); by default the field.
    field : str, optional
        The field of the data that the tag shows; by default "text", "image" or "features".
    image_url : str, optional
        Where images lie: the beginning of their addresses, before their names.
    votes : bool, default=False
        Whether annotators see the votes so far, as in a review.
    """

    question: str | None = None
    shown: str | None = None
    field: str | None = None
    image_url: str | None = None
    votes: bool = False


@dataclass(frozen=True, eq=False)
class Tasks:
    """Tasks of a run.

    Attributes
    ----------
    tasks : list of dict
        As Label Studio imports them, one per item, most useful first.
    kind : {"text", "image", "features"}
    form : TaskForm
        With all its names.
    classes : list of str
    several : bool
        Whether an item may have several of them.
    most_asked : int
        The largest number of annotators who are asked about one item.
    notes : list of str
        Notes about what annotators will not see.
    """

    tasks: list[dict[str, Any]]
    kind: str
    form: TaskForm
    classes: list[str]
    several: bool
    most_asked: int
    notes: list[str]

    def config(self) -> str:
        """The labelling configuration of a project for these tasks."""
        shown, field = quoteattr(str(self.form.shown)), quoteattr(f"${self.form.field}")
        choices = "".join(f"\n    <Choice value={quoteattr(name)}/>" for name in self.classes)
        votes = f'\n  <Text name="{VOTES_FIELD}" value="${VOTES_FIELD}"/>' if self.form.votes else ""
        return (
            f'<View>\n  <Header value="${QUESTION_FIELD}"/>\n'
            f"  <{_TAGS[self.kind]} name={shown} value={field}/>{votes}\n"
            f"  <Choices name={quoteattr(str(self.form.question))} toName={shown} "
            f'choice="{"multiple" if self.several else "single"}" '
            f'showInline="true">{choices}\n  </Choices>\n</View>'
        )


def make_tasks(
    run: Path, suggestions: pd.DataFrame, form: TaskForm | None = None, progress: bool = False
) -> Tasks:
    """Tasks about the items of `suggestions`, which has the columns `item` and `annotator`, best first.

    Texts, features and the names of images are those of the files that the run was made of, where these are
    unchanged; else the shortened texts of the report.
    """
    findings: Findings = RunFolder(run).read("findings")[0]
    asked: dict[str, list[str]] = {}
    for item, annotator in zip(suggestions["item"], suggestions["annotator"], strict=True):
        asked.setdefault(str(item), []).append(str(annotator))
    kind, contents, notes = _contents(run, findings, list(asked), progress)
    given = form or TaskForm()
    field = given.field or kind
    form = replace(given, question=given.question or "label", field=field, shown=given.shown or field)
    if kind == "image":
        contents, said = _addresses(contents, form.image_url)
        notes += said
    voted = _votes(findings, list(asked)) if form.votes else {}
    several = findings.several
    classes = [str(name) for name in findings.classes] if several is None else several.names
    which = "Which class is right" if several is None else "Which of the classes are right"
    question = f"{which}: {_or(classes)}?" if len(classes) <= 12 else f"{which}?"
    tasks = []
    for item, annotators in asked.items():
        data = {
            field: contents.get(item, item),
            QUESTION_FIELD: question,
            ITEM_FIELD: item,
            ASKED_FIELD: ", ".join(annotators),
        }
        if form.votes:
            data[VOTES_FIELD] = voted.get(item, "no votes so far")
        tasks.append({"data": to_json(data), "predictions": [_prediction(findings, item, form)]})
    most = max(map(len, asked.values()), default=1)
    return Tasks(tasks, kind, form, classes, several is not None, most, notes)


def as_text(tasks: Sequence[Mapping[str, Any]]) -> str:
    """Tasks as a file that Label Studio imports, or that `annotmix fit` reads."""
    return json.dumps(tasks, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _prediction(findings: Findings, item: str, form: TaskForm) -> dict[str, Any]:
    """The label found for an item, as Label Studio shows it to annotators."""
    row = findings.items.loc[item]
    label, several = str(row["label"]), findings.several
    choices = [label]
    if several is not None:
        choices = [name for name, own in zip(several.names, several.members([label])[0], strict=True) if own]
    return {
        "model_version": f"annotmix {annotmix.__version__}",
        "score": round(float(np.clip(row["probability"], 0, 1)), 6),
        "result": [
            {
                "id": "annotmix",
                "from_name": form.question,
                "to_name": form.shown,
                "type": "choices",
                "value": {"choices": choices},
            }
        ],
    }


def _votes(findings: Findings, items: Sequence[str]) -> dict[str, str]:
    """The votes on items with their annotators and chances, most likely right first, in words."""
    labels = findings.labels[findings.labels["item"].isin(items)]
    labels = labels.sort_values("probability", ascending=False, kind="stable")
    return {
        str(item): "; ".join(
            f"{row.annotator}: {row.label} ({row.probability:.0%} likely right)" for row in own.itertuples()
        )
        for item, own in labels.groupby("item", sort=False)
    }


def _contents(
    run: Path, findings: Findings, items: Sequence[str], progress: bool
) -> tuple[str, dict[str, Any], list[str]]:
    """The kind of the items, their contents as far as they are known, and notes."""
    whole = _read_again(run, findings, set(items), progress)
    if whole is not None:
        return *whole, []
    why = (
        "the files that the run was made of are not where they were, or have changed; run this command in "
        "the folder where annotmix fit was run"
    )
    previews = {item: findings.previews[item] for item in items if item in findings.previews}
    if not findings.previews:
        return "features", {item: {} for item in items}, [f"Tasks have no features, as {why}."]
    if any(preview.image is not None for preview in findings.previews.values()):
        return "image", {item: previews[item].text if item in previews else item for item in items}, []
    texts = {item: preview.text for item, preview in previews.items()}
    cut = [item for item, text in texts.items() if text.endswith(_SHORTENED)]
    if not cut:
        return "text", texts, []
    return "text", texts, [f"The texts of {len(cut)} tasks are shortened ({some(cut)}), as {why}."]


def _read_again(
    run: Path, findings: Findings, items: set[str], progress: bool
) -> tuple[str, dict[str, Any]] | None:
    """The kind and the contents of items from the files that the run was made of; None where these differ."""
    try:
        request = _request(json.loads((run / "run.json").read_text("utf-8"))["request"])
        inputs = read_inputs(request, progress)
    except (OSError, ValueError, KeyError, TypeError, ImportError):
        return None
    sums = {(own["role"], own["name"]): own["sha256"] for own in findings.inputs}
    # no file whose content the run does not know is shown to anybody
    if any(sums.get((own.role, own.name)) != own.sha256 for own in inputs.items.sources):
        return None
    if not inputs.items.sources and any(
        sums.get((own.role, own.name)) != own.sha256 for own in inputs.sources if own.role == "labels"
    ):
        return None
    X, ids = inputs.items.X, inputs.items.ids
    if inputs.items.kind == "features":
        places = [n for n, item in enumerate(ids) if item in items]
        rows = X.iloc[places].to_dict("records") if isinstance(X, pd.DataFrame) else X[places].tolist()
        rows = [row if isinstance(row, Mapping) else dict(enumerate(row)) for row in rows]
        return "features", {
            ids[n]: {str(name): _cell(value) for name, value in row.items()}
            for n, row in zip(places, rows, strict=True)
        }
    if inputs.items.kind == "images":
        folder = request.images
        return "image", {
            item: path.relative_to(folder).as_posix()
            for item, path in zip(ids, X, strict=True)
            if item in items
        }
    return "text", {item: text for item, text in zip(ids, X, strict=True) if item in items}


def _request(saved: Mapping[str, Any]) -> Request:
    """The options of a run as `Request.settings` wrote them."""
    paths = ("features", "ids", "text", "images", "rename_classes", "out")
    values: dict[str, Any] = {
        name: Path(value) if name in paths else tuple(value) if isinstance(value, list) else value
        for name, value in saved.items()
        if name not in ("labels", "gold", "valid")  # what is true has nothing to do with what is shown
    }
    return Request(tuple(Path(path) for path in saved["labels"]), **values)


def _cell(value: Any) -> Any:
    """A cell of a table as JSON holds it; a missing number is a dash."""
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or plain != plain or plain in (float("inf"), float("-inf")):
        return "–"
    return plain if isinstance(plain, (bool, int, float, str)) else str(plain)


def _addresses(names: Mapping[str, str], prefix: str | None) -> tuple[dict[str, str], list[str]]:
    """The address of every image (its own one, or its name in its folder after `prefix`), and a note."""
    addresses, missing = dict[str, str](), []
    for item, name in names.items():
        if prefix is not None:
            separator = "" if prefix.endswith(("/", "=")) else "/"
            addresses[item] = f"{prefix}{separator}{quote(name)}"
        else:
            addresses[item] = item if item.startswith(_ADDRESSES) else name
            missing += [] if item.startswith(_ADDRESSES) else [item]
    if not missing:
        return addresses, []
    return addresses, [
        f"{len(missing)} images have a name and no address ({some(missing)}); Label Studio cannot load them. "
        "--image-url says where they lie, such as https://example.org/photos/ or "
        "/data/local-files/?d=photos/."
    ]


def _or(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
