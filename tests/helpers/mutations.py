"""Random changes of JSON documents: keys are lost, types change, lists shrink, numbers grow."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


VALUES: list[Any] = [
    None, True, False, 0, -1, 3, 2**40, 2**70, 10**400, 0.5, -0.5, 1e308, float("nan"), float("inf"), "", "x",
    "text",
    "../../x", "\ud800", "a\0b", [], [1], ["a"], [None], {}, {"a": 1}, deep(200), {"x": {"y": [{"z": 1}]}},
]  # fmt: skip


def mutate(document: Any, rng: np.random.Generator) -> tuple[Any, str]:
    """A copy with one change, and what the change was."""
    document = copy.deepcopy(document)
    holder, key, path = {"$": document}, "$", "$"
    while rng.random() > 0.15 or key == "$":
        value: Any = holder[key]
        if not isinstance(value, dict | list) or not value:
            break
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        holder, key = value, keys[int(rng.integers(len(keys)))]
        path += f"[{key!r}]"
    what = int(rng.integers(6))
    value = holder[key]
    if what == 0:
        del holder[key]
        return document, f"{path} deleted"
    if what == 1 and isinstance(value, list) and value:
        holder[key] = value[: int(rng.integers(len(value)))]
        return document, f"{path} shortened"
    if what == 2 and isinstance(value, list) and value:
        value.append(copy.deepcopy(value[0]))
        return document, f"{path} with its first entry twice"
    if what == 3 and isinstance(value, dict):
        value["unknown"] = VALUES[int(rng.integers(len(VALUES)))]
        return document, f"{path} with an unknown key"
    new = VALUES[int(rng.integers(len(VALUES)))]
    holder[key] = new
    return document, f"{path} = {new!r:.60}"
