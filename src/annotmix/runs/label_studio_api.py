"""A small client of Label Studio's interface over HTTP: projects, tasks and exports.

The token comes from the environment and goes into one header. It is sent to the address that the user named
and to no other (redirects are refused), over https or on this machine, and no message contains it.
"""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.message import Message
from ipaddress import ip_address
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

#: The environment variable of the token.
TOKEN = "LABEL_STUDIO_API_KEY"
TIMEOUT = 60.0
#: How often a request is sent, and the longest wait before the next time, in seconds.
ATTEMPTS, LONGEST_WAIT = 5, 60.0
#: Tasks of one answer when they are listed or exported.
PAGE = 100
#: Bytes of an answer that are read.
_LARGEST = 1 << 30
_BUSY = 429
_UNAUTHORISED = 401

Record = dict[str, Any]


class UncertainError(OSError):
    """A request that changes something failed, and the server may have done it or not."""


class RefusedError(ValueError):
    """The server has refused a request, with the status of its answer."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


class _NoRedirects(HTTPRedirectHandler):
    """Leaves redirects to the caller, as another address must not get the token."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


class LabelStudio:
    """A server of Label Studio.

    Parameters
    ----------
    url : str
        Its address, as in a browser: https://labels.example.org
    token : str
        An access token of a user: a legacy token, or a personal one, which is exchanged for short-lived ones.
    insecure : bool, default=False
        Send the token over plain http to other machines, too.
    timeout : float
        Seconds to wait for an answer.
    wait : callable, optional
        Waits for a number of seconds; by default `time.sleep`.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        insecure: bool = False,
        timeout: float = TIMEOUT,
        wait: Callable[[float], None] | None = None,
    ):
        self.url, local = _checked_url(url, insecure)
        self._token = token.strip()
        if not self._token or not self._token.isascii() or any(sign.isspace() for sign in self._token):
            raise ValueError(f"The token in {TOKEN} is empty, or has signs that no token has.")
        self._timeout, self.wait = timeout, wait or time.sleep
        self._access: str | None = None
        # a proxy is no part of this machine
        self._opener = build_opener(_NoRedirects, *([ProxyHandler({})] if local else []))

    # ---------------------------------------------------------------- projects and tasks

    def project(self, number: int) -> Record:
        """A project: `title`, `label_config`, `parsed_label_config` and more."""
        try:
            return _record(self._send("GET", f"/api/projects/{number}"), "a project")
        except RefusedError as error:
            if error.status == 404:
                raise ValueError(
                    f"{self.url} has no project {number} that this user may see. Name another with --project."
                ) from None
            raise

    def create_project(self, title: str, config: str, per_task: int = 1, prelabel: bool = False) -> int:
        """Make a project, or find the one of this title; returns its number.

        Parameters
        ----------
        title, config : str
        per_task : int
            Annotations after which a task is done.
        prelabel : bool
            Whether annotators get the prediction as their first answer.
        """
        listed = self._send("GET", "/api/projects/", query={"title": title, "page_size": PAGE})
        for own in _records(listed.get("results") if isinstance(listed, dict) else listed, "projects"):
            if own.get("title") == title:
                return _number(own, "id", "a project")
        body = {
            "title": title,
            "label_config": config,
            "maximum_annotations": per_task,
            "show_collab_predictions": prelabel,
        }
        return _number(_record(self._send("POST", "/api/projects/", body), "a project"), "id", "a project")

    def tasks(self, project: int) -> Iterator[Record]:
        """The tasks of a project, with `id` and `data`, without annotations."""
        page, seen = 1, 0
        while True:
            query = {"project": project, "page": page, "page_size": PAGE, "fields": "task_only"}
            try:
                answer = _record(self._send("GET", "/api/tasks/", query=query), "a list of tasks")
            except RefusedError as error:
                if error.status == 404 and page > 1:
                    return  # tasks were removed meanwhile
                raise
            tasks = _records(answer.get("tasks"), "tasks")
            yield from tasks
            seen += len(tasks)
            if not tasks or seen >= _number(answer, "total", "a list of tasks"):
                return
            page += 1

    def import_tasks(self, project: int, tasks: Sequence[Record]) -> None:
        """Add tasks to a project.

        Raises
        ------
        UncertainError
            Where the server may have added them, some of them or none.
        """
        answer = _record(self._send("POST", f"/api/projects/{project}/import", list(tasks)), "an import")
        if "task_count" in answer or "import" not in answer:
            return
        number = _number(answer, "import", "an import")
        for attempt in range(100):
            state = _record(self._send("GET", f"/api/projects/{project}/imports/{number}/"), "an import")
            if state.get("status") == "completed":
                return
            if state.get("status") == "failed":
                raise ValueError(self._clean(f"Label Studio could not import tasks: {state.get('error')}"))
            self.wait(min(1.0 + attempt, 10.0))
        raise UncertainError(f"{self.url} is still importing tasks (import {number}).")

    def export(self, project: int, tasks: Sequence[int]) -> list[Record]:
        """Tasks of these numbers with their annotations, as in a JSON export."""
        query = [("exportType", "JSON"), *(("ids[]", str(number)) for number in tasks)]
        return _records(self._send("GET", f"/api/projects/{project}/export", query=query), "an export")

    def emails(self) -> dict[int, str]:
        """The e-mail address of every user, by number."""
        users = _records(self._send("GET", "/api/users/"), "users")
        return {_number(own, "id", "a user"): str(own["email"]) for own in users if own.get("email")}

    # ---------------------------------------------------------------- requests

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | Sequence[tuple[str, Any]] = (),
    ) -> Any:
        """The answer to a request.

        Reading is tried again after a failure. A request that changes something is tried again only where the
        server says that it did nothing.
        """
        address = f"{self.url}{path}" + (f"?{urlencode(query)}" if query else "")
        renewed = False
        for attempt in range(ATTEMPTS):
            last = attempt == ATTEMPTS - 1
            delay = 2.0**attempt
            try:
                return self._once(method, address, body, self._authorisation())
            except HTTPError as error:
                status, delay = error.code, _retry_after(error.headers, delay)
                detail = _detail(error)
                if status == _UNAUTHORISED and self._access is not None and not (renewed or last):
                    self._access, delay, renewed = None, 0.0, True  # a short-lived token has expired
                elif status == _BUSY and not last:
                    pass
                elif status >= 500 and method != "GET":
                    raise UncertainError(self._message(path, status, detail)) from None
                elif status < 500 or last:
                    raise self._refusal(path, status, detail) from None
            except (OSError, http.client.HTTPException) as error:
                reason = self._clean(str(error.reason if isinstance(error, URLError) else error))
                message = (
                    f"No answer from {self.url} ({reason or type(error).__name__}). Is it running there?"
                )
                if method != "GET":
                    raise UncertainError(message) from None
                if last:
                    raise OSError(message) from None
            self.wait(delay)
        raise AssertionError("unreachable")

    def _once(self, method: str, address: str, body: Any, authorisation: str | None) -> Any:
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        request = Request(address, data, headers, method=method)
        if authorisation is not None:
            request.add_unredirected_header("Authorization", authorisation)
        with self._opener.open(request, timeout=self._timeout) as answer:
            content = answer.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueError(f"The answer of {self.url} is larger than {_LARGEST} bytes.")
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise ValueError(
                f"{self.url} answers with something else than JSON. Is this the address of Label Studio?"
            ) from None

    def _authorisation(self) -> str:
        """The header of a request; a personal token, which has three parts, gets a short-lived one."""
        if self._token.count(".") != 2:
            return f"Token {self._token}"
        if self._access is None:
            address = f"{self.url}/api/token/refresh"
            answer = _record(self._once("POST", address, {"refresh": self._token}, None), "a token")
            access = answer.get("access")
            if not isinstance(access, str) or not access.isascii() or any(map(str.isspace, access)):
                raise ValueError(f"{self.url} gives no access for the personal token in {TOKEN}.")
            self._access = access
        return f"Bearer {self._access}"

    def _refusal(self, path: str, status: int, detail: str) -> Exception:
        if status in (_UNAUTHORISED, 403):
            return RefusedError(
                f"{self.url} does not accept the token in {TOKEN} ({status}: {self._clean(detail)}). Copy "
                "it from Account & Settings in Label Studio; its organisation may have disabled the kind.",
                status,
            )
        if 300 <= status < 400:
            return RefusedError(
                f"{self.url} refers to another address ({status}); give the final address with --url.", status
            )
        return RefusedError(self._message(path, status, detail), status)

    def _message(self, path: str, status: int, detail: str) -> str:
        return f"{self.url}{path} answers {status}: {self._clean(detail) or 'no reason given'}."

    def _clean(self, text: str) -> str:
        """A text for a message, without tokens."""
        for secret in (self._token, self._access):
            if secret:
                text = text.replace(secret, "***")
        return " ".join(text.split())[:300]


def connect(url: str, insecure: bool = False) -> LabelStudio:
    """A server, with the token of the environment."""
    token = os.environ.get(TOKEN, "")
    if not token.strip():
        raise ValueError(
            f"There is no token. Copy one from Account & Settings in Label Studio into the environment "
            f"variable {TOKEN}."
        )
    return LabelStudio(url, token, insecure=insecure)


def _checked_url(url: str, insecure: bool) -> tuple[str, bool]:
    """The address without a slash at its end, and whether it is on this machine."""
    text = url if "://" in url else f"https://{url}"
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise ValueError("--url: expected an address such as https://labels.example.org.")
    if parts.username or parts.password:
        raise ValueError(
            f"--url: expected an address without a name and a password; the token goes into {TOKEN}."
        )
    if parts.query or parts.fragment:
        raise ValueError("--url: expected the address of the server alone, without ? and #.")
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if parts.scheme == "http" and not local and not insecure:
        raise ValueError(
            f"--url: http would send the token to {host} in the clear. Use https, or --insecure in a network "
            "that you trust."
        )
    return text.rstrip("/"), local


def _retry_after(headers: Message | None, default: float) -> float:
    """The seconds that the server asks to wait."""
    try:
        return min(max(float(str(headers and headers["Retry-After"])), 0.0), LONGEST_WAIT)
    except ValueError:
        return default


def _detail(error: HTTPError) -> str:
    """The reason in the answer of a server."""
    try:
        content = error.read(10_000).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return ""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return "" if content.lstrip().startswith("<") else content
    if isinstance(answer, dict):
        parts = [answer.get("detail"), answer.get("validation_errors")]
        return " ".join(str(part) for part in parts if part) or content
    return content


def _record(answer: Any, what: str) -> Record:
    if not isinstance(answer, dict):
        raise ValueError(f"Label Studio's answer is not {what}, but {type(answer).__name__}.")
    return answer


def _records(answer: Any, what: str) -> list[Record]:
    if not isinstance(answer, list) or not all(isinstance(own, dict) for own in answer):
        raise ValueError(f"Label Studio's answer holds no list of {what}.")
    return answer


def _number(record: Record, key: str, what: str) -> int:
    value = record.get(key)
    if not isinstance(value, int):
        raise ValueError(f"Label Studio's answer about {what} lacks the number {key!r}.")
    return value
