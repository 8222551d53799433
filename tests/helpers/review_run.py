"""Folders of runs to review, made of invented findings, and a server of one."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager

import uvicorn

from annotmix._common.files import write_json, write_text
from annotmix.review.server import review_app
from annotmix.review.session import Session
from annotmix.runs.folder import RunFolder
from annotmix.runs.storage import save_findings

TOKEN = "secret"


def write_run(folder, findings, **request):
    """A run's folder, without a classifier."""
    save_findings(folder / "findings", findings)
    write_text(folder / "report.html", "<script>alert(1)</script>")  # never served
    write_json(folder / "run.json", {"request": {"labels": ["labels.csv"], **request}})
    return folder


@contextmanager
def served(folder, **more):
    """The address of the page, from a server in a thread; and its session."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    session = Session(RunFolder(folder), reviewer="ann", **more)
    config = uvicorn.Config(review_app(session, TOKEN, port), log_level="warning", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{port}/{TOKEN}/", session
    server.should_exit = True
    thread.join(10)
    listener.close()
