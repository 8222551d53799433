"""Projects of Label Studio in each form that it exports, written after the rules of its converter."""

from __future__ import annotations

import csv
import io
import json

from hypothesis import strategies as st

FORMS = ("JSON.json", "MIN.json", "CSV.csv", "TSV.tsv")
_CLASSES = st.sampled_from(["good", "bad", "so so", "42", 'ü,\n"x"'])


def _annotation(number, user, mood, tags, second, cancelled):
    answers = [("mood", mood), ("tags", tags)]
    result = [
        {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": choices}}
        for name, choices in answers
        if choices
    ]
    time = f"2026-01-01T00:{second:02d}:00.000000Z"
    return {
        "id": number, "completed_by": user, "result": result, "was_cancelled": cancelled,
        "created_at": time, "updated_at": time, "lead_time": None,
    }  # fmt: skip


@st.composite
def projects(draw):
    """Tasks with annotations of a question with one choice and one with several; users annotate again."""
    tasks, count = [], 0
    for number in range(draw(st.integers(1, 5))):
        annotations = []
        for _ in range(draw(st.integers(0, 4))):
            count += 1
            mood = draw(st.lists(_CLASSES, max_size=1))
            tags = draw(st.lists(st.sampled_from(["long", "sad"]), max_size=2))
            user, second = draw(st.integers(1, 3)), draw(st.integers(0, 59))
            annotations.append(_annotation(count, user, mood, tags, second, draw(st.booleans())))
        data = {"text": f"text {number}", "ref": f"r{number}"}
        tasks.append({"id": 10 + number, "data": data, "annotations": annotations})
    return tasks


def newest(tasks, question):
    """(task, user, choice) of the newest annotation that was not cancelled, where it has one choice."""
    labels = set()
    for task in tasks:
        for user in {own["completed_by"] for own in task["annotations"]}:
            kept = [
                own for own in task["annotations"] if own["completed_by"] == user and not own["was_cancelled"]
            ]
            if kept:
                last = max(kept, key=lambda own: (own["updated_at"], own["id"]))
                for answer in last["result"]:
                    choices = answer["value"]["choices"]
                    if answer["from_name"] == question and len(choices) == 1:
                        labels.add((str(task["id"]), str(user), choices[0].strip()))
    return labels


def kept(task):
    """Whether a form with one row per annotation has the task: not where all annotations are cancelled."""
    return not task["annotations"] or not all(own["was_cancelled"] for own in task["annotations"])


def rows(tasks):
    """One row per annotation, the newest first; one row for a task without annotations."""
    made = []
    for task in tasks:
        listed = [own for own in task["annotations"] if not own["was_cancelled"]]
        listed.sort(key=lambda own: own["created_at"], reverse=True)
        if not task["annotations"]:
            listed = [
                {"result": [], "completed_by": None, "id": None, "created_at": None, "updated_at": None}
            ]
        for own in listed:
            row = {**task["data"], "id": task["id"]}
            for answer in own["result"]:
                choices = answer["value"]["choices"]
                row[answer["from_name"]] = choices[0] if len(choices) == 1 else {"choices": choices}
            times = {key: own[key] for key in ("created_at", "updated_at")}
            made.append({**row, "annotator": own["completed_by"], "annotation_id": own["id"], **times})
            made[-1]["lead_time"] = None
    return made


def write(tasks, folder):
    """Write the four forms; returns their paths."""
    listed = rows(tasks)
    (folder / FORMS[0]).write_text(json.dumps(tasks), "utf-8")
    (folder / FORMS[1]).write_text(json.dumps(listed, indent=2), "utf-8")
    names = sorted({key for row in listed for key in row})
    for form, separator in ((FORMS[2], ","), (FORMS[3], "\t")):
        text = io.StringIO()
        writer = csv.DictWriter(text, names, quoting=csv.QUOTE_NONNUMERIC, delimiter=separator)
        writer.writeheader()
        for row in listed:
            writer.writerow({k: json.dumps(v) if isinstance(v, dict) else v for k, v in row.items()})
        (folder / form).write_text(text.getvalue(), "utf-8", newline="")
    return [folder / form for form in FORMS]
