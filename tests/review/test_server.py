"""The server: what it answers, and whom it refuses."""

import base64
import hashlib
import io
import json
import re
import subprocess
import sys

import pandas as pd
import pytest
from helpers import some_findings
from helpers.review_run import TOKEN, write_run
from starlette.testclient import TestClient

from annotmix._common.spreadsheet import unguard_table
from annotmix.reading.decisions import Decisions
from annotmix.review.server import review_app
from annotmix.review.session import Session
from annotmix.runs.folder import RunFolder

DECISION = {
    "item": 3,
    "verdict": "class",
    "label": "class 1",
    "reviewer": "ann",
    "note": "why",
    "filters": {},
}


def test_the_page_has_only_its_own_script_and_style(client):
    answer = client.get("")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "{{" not in answer.text
    for tag in ('<script type="module">(.*?)</script>', "<style>(.*?)</style>"):
        (text,) = re.findall(tag, answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", answer.text)


@pytest.mark.parametrize("path", ["", "api/run", "api/item?item=0&reviewer=a", "decisions.csv", "nowhere"])
def test_every_answer_has_the_headers(client, path):
    headers = client.get(path).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "path", ["/", "/api/run", "/wrong/api/run", f"/{TOKEN}", f"/{TOKEN}x/", "/sécret/", "//"]
)
def test_refused_without_the_token(client, path):
    assert client.get(f"http://127.0.0.1:8000{path}").status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:8001", "localhost.evil:8000", ""])
def test_refused_with_a_foreign_host(client, host):
    assert client.get("api/run", headers={"Host": host}).status_code == 421
    assert client.post("api/decide", json=DECISION, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:8001", "null", ""])
def test_refused_from_another_origin(client, session, origin):
    for path in ("api/decide", "api/undo", "api/train"):
        assert client.post(path, json=DECISION, headers={"Origin": origin}).status_code == 403
    assert client.get("api/run", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert session.decisions.current() == []


def test_refused_where_it_is_no_json(client):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("api/decide", content=json.dumps(DECISION), headers=form).status_code == 415
    own = {"Content-Type": "application/json"}
    for content in ("{", "[]", "[" * 30_000):
        answer = client.post("api/decide", content=content, headers=own)
        assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert client.post("api/decide", content="x" * 70_000, headers=own).status_code == 413
    assert client.get("api/decide").status_code == 405


def test_localhost_is_this_machine(client):
    assert client.get(f"http://localhost:8000/{TOKEN}/api/run").status_code == 200


def test_a_decision_is_on_the_disk_when_the_answer_comes(client, run):
    answer = client.post("api/decide", json=DECISION).json()
    assert answer["status"] == "decided"
    with Decisions(run / "review.db") as other:
        (kept,) = other.current()
    assert (kept.item, kept.reviewer, kept.label, kept.note) == ("item 3", "ann", "class 1", "why")
    assert kept.shown["consensus"] == some_findings.small().items["label"]["item 3"]
    assert (
        client.get("api/item", params={"item": 3, "reviewer": "ann"}).json()["decisions"][0]["note"] == "why"
    )
    assert client.post("api/undo", json={"reviewer": "bob"}).json() == {"item": None}
    assert client.post("api/undo", json={"reviewer": "ann"}).json()["item"]["row"] == 3
    assert client.get("api/item", params={"item": 3, "reviewer": "ann"}).json()["status"] == "open"


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"item": 200}, "item"),
        ({"item": "../x"}, "item"),
        ({"label": "dog"}, "class 'dog'"),
        ({"verdict": "maybe"}, "verdict"),
        ({"reviewer": "  "}, "reviewer"),
        ({"reviewer": "x" * 101}, "reviewer"),
        ({"note": "x" * 2001}, "note"),
        ({"note": None}, "note"),
        ({"filters": {"order": "best"}}, "order"),
        ({"filters": [1]}, "filters"),
        ({"note": "\ud800"}, "half a character"),
    ],
)
def test_a_wrong_decision_is_refused_by_name(client, session, wrong, word):
    headers = {"Content-Type": "application/json"}
    answer = client.post("api/decide", content=json.dumps({**DECISION, **wrong}), headers=headers)
    assert answer.status_code == 400
    assert word in answer.json()["error"]
    assert session.decisions.current() == []


def test_queries_that_make_no_sense_are_refused(client):
    for path in (
        "queue?order=x",
        "queue?status=x",
        "queue?annotator=x",
        "queue?page=x",
        "item?item=-1&reviewer=a",
    ):
        assert client.get(f"api/{path}").status_code == 400
    assert client.get("api/progress?target=2").status_code == 400
    assert client.get("picture/5").status_code == 404
    assert client.get("picture/5000").status_code == 404
    assert client.get("report/new").status_code == 404
    report = client.get("report/run")
    assert report.status_code == 200
    assert "Annotators and how far to trust" in report.text
    assert "alert(1)" not in report.text
    assert client.get("report/..%2Frun.json").status_code == 404


def test_hostile_names_come_back_as_they_were(tmp_path):
    names = some_findings.HOSTILE
    run = write_run(tmp_path / "run", some_findings.invented(60, 20, 8, 200, names))
    session = Session(RunFolder(run), reviewer="ann")
    origin = "http://127.0.0.1:8000"
    app = review_app(session, TOKEN, 8000)
    with TestClient(app, base_url=f"{origin}/{TOKEN}/", headers={"Origin": origin}) as client:
        assert client.get("api/run").json()["classes"][:8] == names
        for row, name in enumerate(names):
            assert client.get("api/item", params={"item": row, "reviewer": name[:100]}).json()["name"] == name
            told = {
                "item": row,
                "verdict": "class",
                "label": name,
                "reviewer": name[:100].strip(),
                "note": name[:2000],
            }
            assert client.post("api/decide", json=told).status_code == 200
        assert client.get("api/queue", params={"search": "<IMG", "status": "all"}).json()["total"] == 1
        table = pd.read_csv(io.BytesIO(client.get("decisions.csv").content), dtype=str, keep_default_na=False)
        table = unguard_table(table)[0]
        assert table["item"].tolist() == names
        assert table["label"].tolist() == names
        labels = client.get("labels-reviewed.csv").content
        labels = unguard_table(pd.read_csv(io.BytesIO(labels), dtype=str, keep_default_na=False))[0]
        assert labels["label"].tolist()[:8] == names


def test_the_server_needs_no_torch():
    code = "import sys, annotmix.review.server; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
