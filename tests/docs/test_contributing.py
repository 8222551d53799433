"""CONTRIBUTING describes the packages as they are."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "annotmix"
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def layers(lines):
    """Sets of packages that share a layer, the highest layer first."""
    return [
        set(re.findall(r"\w+", line.replace("annotmix.", ""))) for line in lines.splitlines() if line.strip()
    ]


def test_the_diagram_is_the_import_rule():
    rules = configparser.ConfigParser()
    rules.read(ROOT / ".importlinter")
    checked = layers(rules["importlinter:contract:layers"]["layers"])
    diagram = re.search(r"<!-- packages -->\n```\n(.*?)```", TEXT, re.DOTALL).group(1)
    assert layers(diagram) == checked
    assert set().union(*checked) == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_the_table_has_every_package():
    table = re.search(r"\| package \| content \|\n(.*?)\n\n", TEXT, re.DOTALL).group(1)
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }


def test_the_walk_names_files_that_exist():
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", TEXT)
    inside = [name for name in named if (PACKAGE / name.split("/")[0]).is_dir()]
    assert len(inside) > 20
    assert not [name for name in inside if not (PACKAGE / name).exists()]
