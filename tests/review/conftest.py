"""A run to review, and its session."""

from __future__ import annotations

import pytest
from helpers import some_findings
from helpers.review_run import TOKEN, write_run
from starlette.testclient import TestClient

from annotmix.review.server import review_app
from annotmix.review.session import Session
from annotmix.runs.folder import RunFolder


@pytest.fixture
def run(tmp_path):
    """A run of 200 items and four classes."""
    return write_run(tmp_path / "run", some_findings.small())


@pytest.fixture
def session(run):
    made = Session(RunFolder(run), reviewer="ann")
    yield made
    made.close()


@pytest.fixture
def client(session):
    """A page that was opened with the token."""
    origin = "http://127.0.0.1:8000"
    app = review_app(session, TOKEN, 8000)
    with TestClient(app, base_url=f"{origin}/{TOKEN}/", headers={"Origin": origin}) as made:
        yield made
