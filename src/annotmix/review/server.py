"""The web page of a review: a small server on this machine."""

from __future__ import annotations

import json
import secrets
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from annotmix._common.spreadsheet import to_csv
from annotmix.review.export import corrected_labels
from annotmix.review.guard import Guard
from annotmix.review.page import policy, review_page
from annotmix.review.session import Session
from annotmix.runs.folder import RunFolder

Reply = dict[str, Any]


def review_app(session: Session, token: str, port: int) -> Guard:
    """The application of a review.

    Parameters
    ----------
    session : Session
    token : str
        The first part of every address.
    port : int
        Where the server listens.
    """
    html = review_page()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        session.close()

    def asked(answer: Callable[[Any], Reply]) -> Callable[[Request], Any]:
        """Reply to a GET request with JSON, of its query."""
        return _answered(answer, _query)

    def told(answer: Callable[[Any], Reply]) -> Callable[[Request], Any]:
        """Reply to a POST request with JSON, of its JSON."""
        return _answered(answer, _content)

    async def page(_: Request) -> Response:
        return HTMLResponse(html)

    async def picture(request: Request) -> Response:
        shown = await run_in_threadpool(session.picture, request.path_params["row"])
        if shown is None:
            return PlainTextResponse("There is no picture of this item.\n", 404)
        return Response(shown[0], media_type=shown[1])

    async def report(request: Request) -> Response:
        content = await run_in_threadpool(session.report, request.path_params["which"])
        if content is None:
            return PlainTextResponse("There is no report.\n", 404)
        # the page has a stricter policy of its own
        own = {"Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}
        return HTMLResponse(content.encode("utf-8", "replace"), headers=own)

    async def decisions(_: Request) -> Response:
        return _csv(await run_in_threadpool(session.decisions.table), "decisions.csv")

    async def labels(_: Request) -> Response:
        made = await run_in_threadpool(corrected_labels, session.index, session.board)
        return _csv(made, "labels-reviewed.csv")

    routes = [
        Route("/", page),
        Route("/api/run", asked(session.about)),
        Route("/api/queue", asked(session.queue)),
        Route("/api/next", asked(session.following)),
        Route("/api/item", asked(session.item)),
        Route("/api/progress", asked(session.progress)),
        Route("/api/training", asked(lambda _: session.training.answer())),
        Route("/api/decide", told(session.decide), methods=["POST"]),
        Route("/api/undo", told(session.undo), methods=["POST"]),
        Route("/api/train", told(lambda _: session.train()), methods=["POST"]),
        Route("/picture/{row:int}", picture),
        Route("/report/{which}", report),
        Route("/decisions.csv", decisions),
        Route("/labels-reviewed.csv", labels),
    ]
    return Guard(Starlette(routes=routes, lifespan=lifespan), token, port, policy(html))


def _answered(answer: Callable[[Any], Reply], read: Callable[[Request], Any]) -> Callable[[Request], Any]:
    async def reply(request: Request) -> Response:
        try:
            return _json(await run_in_threadpool(answer, await read(request)))
        except ValueError as error:
            return _json({"error": str(error)}, 400)
        except OSError as error:
            return _json({"error": str(error)}, 500)

    return reply


async def _query(request: Request) -> dict[str, str]:
    return dict(request.query_params)


async def _content(request: Request) -> dict[str, Any]:
    try:
        content = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise ValueError("The request is no JSON.") from None
    if not isinstance(content, dict):
        raise ValueError("The request is no JSON object.")
    return content


def _json(content: Reply, status: int = 200) -> Response:
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))  # ASCII: half a character passes, too
    return Response(text, status, media_type="application/json")


def _csv(table: Any, name: str) -> Response:
    content = to_csv(table).encode("utf-8", "replace")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="text/csv", headers=headers)


def serve(
    run: Path,
    say: Callable[[str], None],
    port: int = 0,
    browser: bool = True,
    images: Path | None = None,
    reviewer: str = "",
) -> None:
    """Serve the review of a run until Ctrl-C.

    Parameters
    ----------
    run : Path
    say : callable
        Called with every line of output.
    port : int, default=0
        0 takes any free one.
    browser : bool, default=True
        Open the page in a browser.
    images : Path, optional
        A folder with the whole pictures of the items.
    reviewer : str
        The name that the page proposes.
    """
    import uvicorn

    say(f"Reading {run} …")
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise OSError(
            f"Port {port} cannot be used ({error.strerror}); choose another one with --port."
        ) from None
    session = Session(RunFolder(run), images, reviewer)
    token, port = secrets.token_urlsafe(24), listener.getsockname()[1]
    address = f"http://127.0.0.1:{port}/{token}/"
    server = uvicorn.Server(
        uvicorn.Config(
            review_app(session, token, port),
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=3,
        )
    )
    listener.listen(128)
    say(f"{len(session.index.items)} items of {run}. Decisions are kept in {session.decisions.path}.")
    say(f"Review: {address}")
    say("The address lets everyone on this machine who knows it decide. Ctrl-C ends the server.")
    if browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        session.close()
        listener.close()
    say(f"\nAll decisions are in {session.decisions.path}.")
