"""Campaigns with hostile and strange names: in the report in a browser, and through the files of runs."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from attack_files import clear_command
from attack_tools import Trials, in_children

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

# ---------------------------------------------------------------- the report

#: Ways to run a script from a name; each would set `window.ran`.
_SCRIPTS = (
    "<script>window.ran=1</script>",
    "</script><script>window.ran=1</script>",
    "<img src=x onerror=window.ran=1>",
    '"><svg onload=window.ran=1>',
    "' onmouseover='window.ran=1",
    "javascript:window.ran=1",
    "{{window.ran=1}}",
    "<iframe srcdoc='<script>parent.ran=1</script>'>",
    "<style>@import 'http://127.0.0.1:9/x'</style>",
    "<a href='javascript:window.ran=1'>x</a>",
    "<base href=http://127.0.0.1:9/>",
    "<!--<script>window.ran=1//",
    "]]><script>window.ran=1</script>",
    "\\u003cscript>window.ran=1</script>",
    "&lt;script&gt;window.ran=1",
    "<link rel=stylesheet href=http://127.0.0.1:9/x>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9'>",
    "${window.ran=1}",
    "`;window.ran=1;`",
    "__proto__",
    "constructor",
    "toString",
    "\u202egnirts",
    "</title><script>ran=1",
)


#: Point at and click on everything that reacts.
_TOUCH = """
    for (const element of document.querySelectorAll("summary, button, th, td, a[href^='#'], svg *")) {
        for (const kind of ["mouseover", "focus", "click"]) {
            element.dispatchEvent(new MouseEvent(kind, {bubbles: true}));
        }
    }
"""


def report(trials: Trials) -> None:
    """Open the report of a run with hostile names; no script runs, nothing is requested."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    try:
        from helpers.browser import Browser
    except ImportError:
        chromium = None
    if not chromium or not driver:
        trials.note = "skipped: needs Chromium, its driver and selenium"
        return
    rng = np.random.default_rng(0)
    rows = [
        {
            "item": f"{name} {part}",
            "annotator": _SCRIPTS[(n + k) % len(_SCRIPTS)],
            "label": _SCRIPTS[int(rng.integers(len(_SCRIPTS)))],
        }
        for n, name in enumerate(_SCRIPTS)
        for part in range(2)
        for k in range(3)
    ]
    labels, texts = trials.folder / "<img src=x onerror=ran=1>.jsonl", trials.folder / "items.jsonl"
    labels.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    items = sorted({row["item"] for row in rows})
    texts.write_text(
        "\n".join(json.dumps({"item": i, "x": float(rng.normal()), "c": i[:9]}) for i in items), "utf-8"
    )
    out = trials.folder / "run"
    failure, _ = clear_command(
        "fit", labels, "--features", texts, "--out", out, "--epochs", 1, "--quiet", codes=(0,)
    )
    if failure:
        raise RuntimeError(failure)
    browser = Browser(chromium, driver, trials.folder / "profile")
    try:
        browser.start()
        browser.open(out / "report.html")
        browser.script(_TOUCH)
        ran, requests = browser.script("return window.ran ?? null"), browser.requests()
        shown = sorted({(kind, row[kind]) for row in rows for kind in ("item", "annotator", "label")})
        for kind, name in shown:
            trials.record(
                f"a script ran ({kind} {name})" if ran else f"requests: {requests[:3]}" if requests else ""
            )
    finally:
        browser.quit()


# ---------------------------------------------------------------- names


def names(trials: Trials) -> None:
    """Random names through the tables of a run into another run."""
    in_children(trials, _names, memory=6 << 30)


def _random_name(rng: np.random.Generator) -> str:
    signs = [
        *"'=+-@\t\r\n ,;|\"\\/<>&%#.:!?()[]{}0179aZäß–→🙂",
        "''",
        "=1+1",
        "-->",
        "NULL",
        "nan ",
        "\u200b",
    ]
    return "".join(signs[n] for n in rng.integers(len(signs), size=rng.integers(1, 7)))


def _names(number: int, folder: Path) -> str:
    from annotmix.runs.folder import RunFolder

    rng = np.random.default_rng([number, 4])
    drawn = [name.strip() for name in (_random_name(rng) for _ in range(60))]
    items = list(dict.fromkeys(name for name in drawn if name and name.casefold() not in ("nan", "null")))
    people, classes = [f"-{n}{name}" for n, name in enumerate(items[:3])], items[3:6]
    rows = [
        {"item": item, "annotator": people[(n + k) % 3], "label": classes[int(rng.integers(len(classes)))]}
        for n, item in enumerate(items)
        for k in range(2)
    ]
    found = []
    for turn in ("first", "second"):
        root = folder / f"{number}-{turn}"
        root.mkdir()
        labels, features = root / "labels.jsonl", root / "items.jsonl"
        labels.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        features.write_text("\n".join(json.dumps({"item": i, "x": n}) for n, i in enumerate(items)), "utf-8")
        if turn == "second":
            before = folder / f"{number}-first" / "run"
            labels, features = before / "labels.csv", root / "items.csv"
            written = pd.read_csv(before / "items.csv", dtype=str, keep_default_na=False)["item"]
            table = pd.DataFrame({"item": written, "x": range(len(written))})
            table.to_csv(features, index=False, quoting=csv.QUOTE_ALL)
        words = ["fit", labels, "--features", features, "--out", root / "run", "--epochs", 1, "--quiet"]
        failure, _ = clear_command(*words, codes=(0,))
        if failure:
            return f"trial {number}, {turn} fit: {failure}"
        result = RunFolder(root / "run").findings()
        triples = result.labels[["item", "annotator", "label"]].sort_values(["item", "annotator"])
        found.append([list(result.items.index), list(result.classes), triples.to_numpy().tolist()])
    return (
        ""
        if found[0] == found[1] and found[0][0] == items
        else f"trial {number}: other names in the second run"
    )
