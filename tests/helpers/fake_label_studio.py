"""A small Label Studio on loopback that answers as a real one did (`tests/runs/samples`)."""

from __future__ import annotations

import copy
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

ANSWERS = json.loads(
    (Path(__file__).parents[1] / "runs" / "samples" / "label_studio_answers.json").read_text("utf-8")
)
TOKEN = "5ec7e7" * 6 + "abcd"
PERSONAL = "eyJhbGciOi.eyJ0b2tlbl9.c2lnbmF0dXJl"


class Studio:
    """The state of the server.

    Attributes
    ----------
    projects, tasks : dict
    requests : list of (method, path, body)
    failures : list
        What happens to the next requests whose path ends as named, in order: (ending, status) refuses one,
        (ending, "lose") does what is asked and closes the connection without an answer.
    """

    def __init__(self):
        self.projects, self.tasks, self.requests, self.failures = {}, {}, [], []
        self.access: list[str] = []
        self.authorisations: list[str] = []

    def answer(self, method, path, query, body):
        """Status and content."""
        if path == "/api/token/refresh":
            if body != {"refresh": PERSONAL}:
                return 401, {"detail": f"Token is invalid: {body['refresh']}"}
            self.access.append(f"access{len(self.access)}")
            return 200, {"access": self.access[-1]}
        allowed = [f"Token {TOKEN}", *(f"Bearer {own}" for own in self.access[-1:])]
        if self.authorisations[-1] not in allowed:
            refused = ANSWERS["401 GET /api/projects/N"]
            return 401, refused | {"detail": f"Invalid token {self.authorisations[-1]}"}
        if path == "/api/projects/" and method == "GET":
            found = [own for own in self.projects.values() if own["title"] == query["title"][0]]
            return 200, ANSWERS["GET /api/projects/"] | {"results": found, "count": len(found)}
        if path == "/api/projects/":
            return 201, self.add_project(body["title"], body["label_config"])
        if path == "/api/tasks/":
            return self._page(int(query["project"][0]), int(query["page"][0]), int(query["page_size"][0]))
        if path == "/api/users/":
            return 200, ANSWERS["GET /api/users/"]
        number, action = re.fullmatch(r"/api/projects/(\d+)(?:/(\w+))?", path).groups()
        if int(number) not in self.projects:
            return 404, ANSWERS["404 GET /api/projects/N"]
        if action is None:
            return 200, self.projects[int(number)]
        if action == "import":
            self.add_tasks(int(number), body)
            return 201, ANSWERS["POST /api/projects/N/import"] | {"task_count": len(body)}
        wanted = set(map(int, query["ids[]"]))
        return 200, [self._exported(own) for own in self.tasks[int(number)] if own["id"] in wanted]

    def add_project(self, title="given", config=None):
        """A project as the recorded one, with choices and names of its configuration."""
        own = copy.deepcopy(ANSWERS["GET /api/projects/N"])
        own |= {"id": len(self.projects) + 1, "title": title}
        if config is not None:
            shown, field = re.search(r'<(?:Text|Table|Image) name="(\w+)" value="\$(\w+)"', config).groups()
            question = re.search(r'<Choices name="(\w+)"', config).group(1)
            tag = next(iter(own["parsed_label_config"].values()))
            tag |= {"to_name": [shown], "inputs": [{"type": "Text", "valueType": None, "value": field}]}
            tag["labels"] = re.findall(r'<Choice value="([^"]*)"', config)
            own |= {"label_config": config, "parsed_label_config": {question: tag}}
        self.projects[own["id"]], self.tasks[own["id"]] = own, []
        return own

    def add_tasks(self, project, tasks):
        """Tasks as in the recorded list, with the data of `tasks`."""
        template = ANSWERS["GET /api/tasks/"]["tasks"][0]
        for task in tasks:
            own = template | {"id": sum(map(len, self.tasks.values())) + 1, "data": task["data"]}
            self.tasks[project].append(own | {"annotations": []})

    def annotate(self, project, choice, user, time="2026-11-18T21:36:13.830347Z", question="label"):
        """One annotation of every task."""
        for task in self.tasks[project]:
            own = copy.deepcopy(ANSWERS["GET /api/projects/N/export"][0]["annotations"][0])
            own |= {"id": 1000 * user + task["id"], "completed_by": user, "updated_at": time}
            own["result"][0] |= {"from_name": question, "value": {"choices": [choice]}}
            task["annotations"].append(own)

    def items(self, project):
        """The items of a project's tasks, in their order."""
        return [own["data"]["annotmix_item"] for own in self.tasks[project]]

    def _page(self, project, page, size):
        tasks = self.tasks[project]
        part = tasks[(page - 1) * size : page * size]
        if page > 1 and not part:
            return 404, {"detail": "Invalid page.", "status_code": 404}
        shown = [
            {key: value for key, value in own.items() if key != "annotations"}
            | {"total_annotations": len(own["annotations"])}
            for own in part
        ]
        return 200, ANSWERS["GET /api/tasks/"] | {"tasks": shown, "total": len(tasks)}

    def _exported(self, task):
        recorded = ANSWERS["GET /api/projects/N/export"][0]
        return recorded | {key: task[key] for key in ("id", "data", "annotations")}


@contextmanager
def running():
    """The address of a fake server, and its state."""
    studio = Studio()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            parts = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(content) if content else None
            studio.requests.append((self.command, self.path, body))
            studio.authorisations.append(self.headers.get("Authorization", ""))
            failure = next((own for own in studio.failures if parts.path.endswith(own[0])), None)
            if failure is not None:
                studio.failures.remove(failure)
                if failure[1] != "lose":
                    headers = failure[2] if len(failure) > 2 else {}
                    return self.reply(failure[1], {"detail": f"no: {self.headers['Authorization']}"}, headers)
            status, answer = studio.answer(self.command, parts.path, parse_qs(parts.query), body)
            if failure is not None:
                self.connection.close()
                return None
            return self.reply(status, answer)

        do_POST = do_GET

        def reply(self, status, answer, headers=()):
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            for name, value in dict(headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", studio
    finally:
        server.shutdown()
        server.server_close()
