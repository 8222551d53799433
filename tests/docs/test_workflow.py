"""The workflow of the public CI service runs `.ci/run` for every Python version that the package claims."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_every_claimed_version_is_checked():
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["check"]
    checked = job["strategy"]["matrix"]["python-version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert checked == claimed
    assert project["requires-python"] == f">={checked[0]}"
    assert any(step.get("run") == ".ci/run" for step in job["steps"])
