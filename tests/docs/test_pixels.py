"""The code of the page about masks is run."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "beyond" / "pixels.md"


def test_the_page_about_masks_runs():
    names = {}
    for code in re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.M):
        exec(compile(code, "pixels.md", "exec"), names)
    assert names["consensus"].shape == names["truth"].shape
    assert (names["consensus"] == names["truth"]).mean() > 0.9
    assert names["perf"].shape == (60, 3)
