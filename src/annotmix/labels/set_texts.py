"""Sets of classes as people write them: "a|b", "a; b", '["a", "b"]', '{"choices": ["a"]}', and back."""

from __future__ import annotations

import ast
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

#: The empty set as text: an answer that chooses none of the classes.
NONE = "(none)"
#: Stands between classes in a text.
BETWEEN = "|"
#: Characters that may separate classes, best first. A comma may also be a part of a name.
DELIMITERS = ("|", ";", ",")
#: Longer texts are not read as lists.
LONGEST = 100_000


def read_set(cell: Any, delimiter: str | None = None) -> list[Any] | None:
    """The classes that a cell names, each once; None where it holds no answer.

    Parameters
    ----------
    cell : any
        A list, tuple, set or array of classes; `{"choices": [...]}` of Label Studio; a mapping of class to
        whether it was chosen; a text of JSON or Python with one of these; classes between delimiters; or a
        single class. An empty list and "(none)" are the empty set; `nan`, `None` and an empty text are no
        answer.
    delimiter : str, optional
        Separates classes in a text; by default a text is one class.
    """
    if isinstance(cell, str):
        chosen = _read_text(cell.strip(), delimiter)
    elif isinstance(cell, Mapping):
        chosen = _of_mapping(cell)
    elif isinstance(cell, set | frozenset):
        chosen = sorted(cell, key=str)
    elif isinstance(cell, list | tuple | np.ndarray):
        chosen = [one for part in cell for one in _part(part)]
    elif cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, float) and math.isnan(cell)):
        return None
    else:
        chosen = [cell]
    return None if chosen is None else [one for one in dict.fromkeys(chosen) if one != NONE]


def _part(part: Any) -> list[Any]:
    if isinstance(part, Mapping):
        return _of_mapping(part)
    if isinstance(part, list | tuple | np.ndarray):
        raise ValueError(f"A set of classes holds a list, {part!r:.60}; expected names of classes.")
    if part is None or (isinstance(part, float) and math.isnan(part)):
        return []
    return [part]


def _of_mapping(cell: Mapping[Any, Any]) -> list[Any]:
    """The chosen classes of `{"choices": [...]}`, or of {class: whether it was chosen}."""
    if "choices" in cell and isinstance(cell["choices"], list | tuple):
        return [one for part in cell["choices"] for one in _part(part)]
    if all(value in (True, False, 0, 1) for value in cell.values() if not isinstance(value, list | dict)):
        flags = {name: value for name, value in cell.items() if not isinstance(value, list | dict)}
        if len(flags) == len(cell):
            return [name for name, value in flags.items() if value]
    raise ValueError(
        f'{dict(cell)!r:.80} is no set of classes; expected {{"choices": [...]}} or a truth value per class.'
    )


def _read_text(text: str, delimiter: str | None) -> list[Any] | None:
    if not text:
        return None
    if text == NONE:
        return []
    if (value := _structure(text)) is not None:
        return (
            _of_mapping(value) if isinstance(value, dict) else [one for part in value for one in _part(part)]
        )
    if delimiter is None:
        return [text]
    return [own for part in text.split(delimiter) if (own := part.strip())]


def _structure(text: str) -> Any:
    """A list or mapping that a text writes in JSON or Python, None where it is neither."""
    if text[:1] + text[-1:] not in ("[]", "{}") or len(text) > LONGEST:
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, list | dict):
            return value
        if isinstance(value, set):
            return sorted(value, key=str)
    return None


def find_delimiter(cells: Iterable[Any]) -> str | None:
    """The character that separates classes in a column of texts, None where every text is one class.

    "|" and ";" separate wherever they occur; a comma does where one of the parts also occurs in another
    text, as in "a, b" and "b": a name such as "Arts, crafts" stays whole.
    """
    texts = {cell.strip() for cell in cells if isinstance(cell, str)}
    texts = {text for text in texts if _structure(text) is None}
    for delimiter in DELIMITERS[:2]:
        if any(delimiter in text for text in texts):
            return delimiter
    comma = DELIMITERS[2]
    seen = Counter(part for text in texts for part in {part.strip() for part in text.split(comma)})
    shared = any(seen[part.strip()] > 1 for text in texts if comma in text for part in text.split(comma))
    return comma if shared else None


def write_set(classes: Iterable[Any]) -> str:
    """A set of classes as text that `read_set` with the delimiter "|" reads."""
    names = [str(one) for one in classes]
    if any(BETWEEN in name or name.strip() != name for name in names):
        return json.dumps(names, ensure_ascii=False)
    return BETWEEN.join(names) if names else NONE
