"""What a notebook shows of a job, by a real kernel."""

from __future__ import annotations

import os

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

CODE = """
from annotmix._common import progress

class Clock:
    now = 0.0
    def monotonic(self):
        return self.now

clock = progress.time = Clock()
with progress.Progress("train <b>", 400) as shown:
    for step in range(400):
        clock.now += 0.1
        shown.advance(f"loss {step}")
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A notebook with a job of forty seconds, and all messages about its output."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE)])
    messages = []

    class Client(nbclient.NotebookClient):
        def process_message(self, message, cell, index):
            messages.append(message["msg_type"])
            return super().process_message(message, cell, index)

    environment = {**os.environ, "IPYTHONDIR": str(folder)}
    Client(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute(env=environment)
    return notebook.cells[0].outputs, messages


def test_one_bar_that_ends_at_the_end(executed):
    outputs, _ = executed
    assert [output.output_type for output in outputs] == ["display_data"]
    data = outputs[0].data
    assert data["text/plain"] == "train <b>: 400/400  loss 399"
    assert '<progress value="400" max="400"' in data["text/html"]
    assert "train &lt;b&gt;" in data["text/html"]


def test_it_changes_twice_a_second_at_most(executed):
    _, messages = executed
    assert messages.count("display_data") == 1
    assert messages.count("stream") == 0
    assert 70 <= messages.count("update_display_data") <= 80  # of 38 seconds after the first two
