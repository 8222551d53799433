"""What `import annotmix` offers: names that are there, lazy, and known to type checkers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import annotmix

REPOSITORY = Path(__file__).resolve().parents[1]
#: A user's file: what mypy is to say about a line stands behind it.
USER = """\
import annotmix
from annotmix import AnnotMixPlusClassifier
from annotmix import NoSuchClassifier  # Module "annotmix" has no attribute "NoSuchClassifier"

clf = AnnotMixPlusClassifier(alpha=0.4, max_epochs=3)
reveal_type(clf.fit([[0.0]], [[0]]))  # "annotmix.estimators.classifiers.AnnotMixPlusClassifier"
reveal_type(clf.predict_proba([[0.0]]))  # numpy.dtype[numpy.float64]
reveal_type(annotmix.Annotations.from_matrix([[0, 1]]))  # "annotmix.labels.annotations.Annotations"
reveal_type(annotmix.load)  # MultiAnnotatorClassifier | annotmix.estimators.segmentation.AnnotMixSegmenter
reveal_type(annotmix.make_classifier("madl"))  # MultiAnnotatorClassifier
reveal_type(annotmix.list_datasets())  # "list[str]"
annotmix.MadlClassifier(eta="a")  # "MadlClassifier" has incompatible type "str"; expected "float"
annotmix.AnnotMixClassifier(alfa=1.0)  # Unexpected keyword argument "alfa" for "AnnotMixClassifier"
annotmix.agregate  # Module has no attribute "agregate"; maybe "aggregate"
"""
#: Torch takes mypy half a minute and is not what is tested.
CONFIGURATION = """\
[mypy]
strict = True
follow_imports = silent
pretty = False
[mypy-torch.*]
follow_imports = skip
"""


def test_mypy_knows_every_name_and_parameter(tmp_path):
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "mypy.ini").write_text(CONFIGURATION)
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache", "user.py"]
    package = Path(annotmix.__file__).parents[1]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"MYPYPATH": str(package), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if "defined in" not in line]
    expected = {
        number: line.partition("  # ")[2]
        for number, line in enumerate(USER.splitlines(), 1)
        if "  # " in line
    }
    assert [int(line.split(":")[1]) for line in said[:-1]] == list(expected), done.stdout + done.stderr
    for line, message in zip(said, expected.values(), strict=False):
        assert message in line


def test_every_public_name_resolves():
    assert "AnnotMixPlusClassifier" in annotmix.__all__
    assert {*annotmix.__all__, "__version__"} == set(dir(annotmix))
    for name in annotmix.__all__:
        assert getattr(annotmix, name).__name__ == name


@pytest.mark.parametrize("name", ["annotations", "NoSuchClassifier", "importlib", "Path"])
def test_other_names_are_absent(name):
    with pytest.raises(AttributeError, match=f"module 'annotmix' has no attribute '{name}'"):
        getattr(annotmix, name)


def test_every_approach_is_public_with_its_parameters():
    path = REPOSITORY / "tools" / "write_stubs.py"
    spec = importlib.util.spec_from_file_location("write_stubs", path)
    write_stubs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(write_stubs)
    for path, text in write_stubs.stubs().items():
        assert path.read_text("utf-8") == text, "run: python tools/write_stubs.py"


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("annotmix", "numpy pandas torch sklearn"),
        ("annotmix.cli", "numpy pandas torch"),
        ("annotmix.labels", "torch"),
    ],
)
def test_imports_stay_light(module, absent):
    script = f"import sys, {module}; print(*sorted(set({absent.split()}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
