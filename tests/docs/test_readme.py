"""The README's example, run as it stands."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_example_runs(tmp_path, monkeypatch):
    code = re.search(r"<!-- example: readme -->\n```python\n(.*?)```", README.read_text(), re.DOTALL).group(1)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    clf, X, y, Z = (names[name] for name in ("clf", "X", "y", "Z"))
    consensus = clf.consensus(X / 16, Z)
    assert (consensus["label"].to_numpy() == y).mean() > 0.9
    assert clf.predict_annotator_perf(X / 16).mean(axis=0).argmin() == 3  # the spammer
    assert (tmp_path / "model" / "model.json").exists()
