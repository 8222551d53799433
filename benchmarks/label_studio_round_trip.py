"""A round trip with a real Label Studio: push questions, annotate as two users, pull, fit.

    python -m venv build/label-studio-env && build/label-studio-env/bin/pip install label-studio==1.23.2
    python benchmarks/label_studio_round_trip.py [--record FILE]

The server runs on loopback in a folder of its own, which is removed at the end. Two users answer through its
interface: one is right on nine of ten items, one on eight; both correct a few answers afterwards. The script
stops with an error where a task arrives twice, an answer is lost, or the newest one does not count.
`--record` writes the server's answers to a file, shortened, as the tests have one.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener, urlopen
from urllib.request import Request as HttpRequest

import numpy as np
import pandas as pd

from annotmix.datasets.simulation import hammer, simulate
from annotmix.reading import read_labels
from annotmix.runs.fit import fit
from annotmix.runs.label_studio_api import LabelStudio
from annotmix.runs.label_studio_exchange import pull, push
from annotmix.runs.request import Request
from annotmix.runs.suggest import suggest

PROGRAM = Path("build/label-studio-env/bin/label-studio")
CLASSES = ["cat", "dog", "owl"]
ITEMS, QUESTIONS, CHANGED = 200, 60, 5


@contextmanager
def server(port: int, token: str) -> Iterator[str]:
    """A Label Studio on loopback with one user."""
    folder = Path(tempfile.mkdtemp(prefix="label-studio-"))
    options = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "COLLECT_ANALYTICS": "0",
        "LATEST_VERSION_CHECK": "0",
    }
    command = [
        str(PROGRAM.resolve()), "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port),
        "--username", "lead@example.org", "--password", secrets.token_hex(12), "--user-token", token,
    ]  # fmt: skip
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=os.environ | options, stdout=log, stderr=log, start_new_session=True
        )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            if process.poll() is not None:
                raise SystemExit((folder / "log").read_text()[-2000:])
            try:
                urlopen(f"{url}/api/version", timeout=5).close()
                break
            except OSError:
                time.sleep(1)
        yield url
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


class Recording(LabelStudio):
    """Keeps the first answer to every kind of request; with `killed`, the first import loses its answer."""

    killed = False

    def __init__(self, url: str, token: str):
        super().__init__(url, token)
        self.seen: dict[str, Any] = {}

    def _once(self, method: str, address: str, body: Any, authorisation: str | None) -> Any:
        path = re.sub(r"\d+", "N", address.removeprefix(self.url).partition("?")[0])
        try:
            answer = super()._once(method, address, body, authorisation)
        except HTTPError as error:
            content = error.read()
            self.seen.setdefault(f"{error.code} {method} {path}", json.loads(content))
            error.fp = io.BytesIO(content)
            raise
        self.seen.setdefault(f"{method} {path}", answer)
        if self.killed and path.endswith("/import"):
            raise KeyboardInterrupt
        return answer


def sign_up(url: str, email: str) -> str:
    """Make a user as the page for it does; returns a personal access token."""
    jar = CookieJar()
    browser = build_opener(ProxyHandler({}), HTTPCookieProcessor(jar))
    page = f"{url}/user/signup/"
    browser.open(page).read()
    form = {"email": email, "password": secrets.token_hex(12), "allow_newsletters": "false"}
    form["csrfmiddlewaretoken"] = _csrf(jar)
    browser.open(HttpRequest(page, urlencode(form).encode(), {"Referer": page})).read()
    headers = {"X-CSRFToken": _csrf(jar), "Content-Type": "application/json", "Referer": url}
    answer = browser.open(HttpRequest(f"{url}/api/token/", b"{}", headers, method="POST"))
    return str(json.loads(answer.read())["token"])


def _csrf(jar: CookieJar) -> str:
    return next(str(cookie.value) for cookie in jar if cookie.name == "csrftoken")


def annotate(user: LabelStudio, task: dict[str, Any], choice: str, newer: int | None = None) -> int:
    """Answer a task, or change an answer; returns the number of the annotation."""
    value = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [choice]}}
    path = f"/api/tasks/{task['id']}/annotations/" if newer is None else f"/api/annotations/{newer}/"
    return int(user._send("POST" if newer is None else "PATCH", path, {"result": [value]})["id"])


def problem(folder: Path) -> pd.Series:
    """Texts with labels of a first crowd, as files; returns the true classes by item."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=ITEMS)
    words = [["purr", "whisker", "paw"], ["bark", "fetch", "paw"], ["hoot", "feather", "night"]]
    texts = [" ".join(rng.choice(words[c] + ["the", "and", "big"], 12)) for c in y]
    names = [f"animal {n}" for n in range(ITEMS)]
    crowd = {name: hammer(3, chance) for name, chance in (("ann", 0.7), ("ben", 0.6), ("cem", 0.5))}
    labels = simulate(y, crowd, classes=CLASSES, random_state=0).to_long()
    labels["item"] = [names[n] for n in labels["item"]]
    labels.sample(frac=0.6, random_state=0).to_csv(folder / "labels.csv", index=False)
    pd.DataFrame({"item": names, "text": texts}).to_csv(folder / "texts.csv", index=False)
    return pd.Series(np.array(CLASSES)[y], index=names)


def learn(folder: Path, *labels: Path) -> pd.DataFrame:
    """Fit on label files; returns the table of items."""
    request = Request(labels, folder / "run", text=folder / "texts.csv", model="logistic", overwrite=True)
    return fit(request, lambda line: None, progress=False).items


def round_trip(url: str, token: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Push, annotate, pull and fit; returns figures and the server's answers."""
    truth = problem(folder)
    before = learn(folder, folder / "labels.csv")
    asked, _ = suggest(folder / "run", QUESTIONS)

    lost = Recording(url, token)
    lost.killed = True
    with suppress(KeyboardInterrupt):
        push(folder / "run", lost, asked)
    lead = Recording(url, token)
    pushed = push(folder / "run", lead, asked)
    tasks = list(lead.tasks(pushed.project))
    items = [task["data"]["annotmix_item"] for task in tasks]
    assert sorted(items) == sorted(set(asked["item"])), "every question arrives once"
    assert pushed.known > 0, "the batch whose answer was lost is found"

    rng = np.random.default_rng(1)
    expected: dict[tuple[str, int], str] = {}
    users = [Recording(url, sign_up(url, f"{name}@example.org")) for name in ("ann", "bea")]
    for number, (user, right) in enumerate(zip(users, (0.9, 0.8), strict=True), start=2):
        first: dict[str, int] = {}
        for task, item in zip(tasks, items, strict=True):
            choice = str(truth[item] if rng.random() < right else rng.choice(CLASSES))
            first[item] = annotate(user, task, choice)
            expected[item, number] = choice
        for task, item in list(zip(tasks, items, strict=True))[:CHANGED]:
            annotate(
                user, task, str(truth[item]), first[item] if number == 2 else None
            )  # corrected, or again
            expected[item, number] = str(truth[item])

    n_tasks, n_annotations = pull(lead, pushed.project, folder / "new.json", progress=False)
    found = read_labels([folder / "new.json"]).annotations.to_long()
    got = {(row.item, int(row.annotator)): row.label for row in found.itertuples()}
    assert got == expected, "every newest answer comes back"
    pull(lead, pushed.project, folder / "named.json", emails=True)
    assert set(read_labels([folder / "named.json"]).annotations.annotators) == {
        "ann@example.org",
        "bea@example.org",
    }

    after = learn(folder, folder / "labels.csv", folder / "new.json")
    strange = Recording(url, "0" * 40)
    with suppress(ValueError):
        strange.project(pushed.project)
    with suppress(ValueError):
        lead.project(10_000)
    figures = {
        "questions": len(asked),
        "tasks in the project": len(tasks),
        "found after a lost answer": pushed.known,
        "annotations": n_annotations,
        "tasks pulled": n_tasks,
        "labels read": len(got),
        "right before": float((before["label"] == truth[before.index]).mean()),
        "right after": float((after["label"] == truth[after.index]).mean()),
    }
    return figures, users[0].seen | lost.seen | lead.seen | strange.seen


def shortened(answers: dict[str, Any]) -> dict[str, Any]:
    """Answers without long lists and without tokens."""

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: "***" if key in ("token", "access") else cut(own) for key, own in value.items()}
        return [cut(own) for own in value[:3]] if isinstance(value, list) else value

    return {key: cut(own) for key, own in sorted(answers.items())}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=18080)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    token = secrets.token_hex(20)
    started = time.monotonic()
    with server(options.port, token) as url, tempfile.TemporaryDirectory() as folder:
        print(f"Label Studio is ready after {time.monotonic() - started:.0f} s")
        started = time.monotonic()
        figures, answers = round_trip(url, token, Path(folder))
    for name, value in figures.items():
        print(f"{name}: {value:.3f}" if isinstance(value, float) else f"{name}: {value}")
    print(f"round trip: {time.monotonic() - started:.0f} s")
    if options.record:
        options.record.write_text(json.dumps(shortened(answers), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
