"""Writes what type checkers and editors know about the classifiers: run it after a parameter has changed.

`estimators/classifiers.pyi` gets one class per approach with its parameters, and `__init__.pyi` a line that
makes each of them public.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from annotmix.approaches import Approach, get_approach, list_approaches
from annotmix.estimators import class_name, classifier_class

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "annotmix"
HEAD = '''"""The classifiers with their parameters; written by tools/write_stubs.py."""

import os
from collections.abc import Iterable
from typing import Any, Literal

import torch

from annotmix.encoders import Encoder
from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier
'''


def stubs() -> dict[Path, str]:
    """The files and what they should hold."""
    approaches = [get_approach(name) for name in list_approaches() if _is_ours(get_approach(name))]
    public = PACKAGE / "__init__.pyi"
    names = "".join(
        f"from annotmix.estimators.classifiers import {name} as {name}\n"
        for name in (class_name(approach.name) for approach in approaches)
    )
    line = r"(from annotmix\.estimators\.classifiers import \w+ as \w+\n)+"
    return {
        PACKAGE / "estimators" / "classifiers.pyi": HEAD + "".join(map(_class, approaches)),
        public: re.sub(line, names, public.read_text("utf-8")),
    }


def _is_ours(approach: type[Approach]) -> bool:
    return approach.__module__.startswith("annotmix.")


def _class(approach: type[Approach]) -> str:
    parameters = inspect.signature(classifier_class(approach).__init__).parameters.values()
    lines = [f"{p.name}: {p.annotation} = {p.default!r}" for p in parameters if p.name != "self"]
    summary = (inspect.getdoc(approach) or "").partition("\n")[0]
    return (
        f'\nclass {class_name(approach.name)}(MultiAnnotatorClassifier):\n    """{summary}"""\n\n'
        "    def __init__(\n        self,\n        *,\n"
        + "".join(f"        {line},\n" for line in lines).replace("'", '"')
        + "    ) -> None: ...\n"
    )


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, "utf-8")
