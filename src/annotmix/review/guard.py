"""Who may talk to the review server: only its own page, opened with the token, on this machine."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Bytes of a request that are read.
LARGEST = 1 << 16
#: Said of every answer.
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """Refuses requests of others, and gives every answer the headers of safety.

    The token is the first part of every address. A cookie would reach every server on this machine, whatever
    its port.

    Parameters
    ----------
    app : ASGI application
        Its addresses begin after the token.
    token : str
    port : int
    policy : str
        The content security policy of answers that have none.
    """

    def __init__(self, app: ASGIApp, token: str, port: int, policy: str):
        self.app, self.token, self.policy = app, token, policy
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no other kind is served

        async def careful(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Content-Security-Policy", self.policy)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await PlainTextResponse(refusal[1] + "\n", refusal[0])(scope, receive, careful)
            return
        path = scope["path"][len(self.token) + 1 :]
        await self.app({**scope, "path": path, "raw_path": path.encode()}, receive, careful)

    def _refusal(self, scope: Mapping[str, Any]) -> tuple[int, str] | None:
        """Status and reason where a request is refused."""
        headers, path = Headers(raw=scope["headers"]), scope["path"]
        host = headers.get("host", "")
        if host not in self.hosts:
            return 421, "This server answers at 127.0.0.1 and localhost only."
        token, slash, _ = path[1:].partition("/")
        if not slash or not secrets.compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            return 403, "Open the address that annotmix review has printed: it contains a token."
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "Requests from other pages are refused."
        if scope["method"] in ("GET", "HEAD"):
            return None
        if headers.get("origin") != f"http://{host}":
            return 403, "Requests from other pages are refused."
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "Send JSON."
        if not headers.get("content-length", "").isdigit() or int(headers["content-length"]) > LARGEST:
            return 413, f"Send at most {LARGEST} bytes, and their number."
        return None
