"""Confidences in the forms that models and people give them, as weights of labels from 0 to 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix.labels.columns import called

Floats = NDArray[np.float64]

#: Words for how sure somebody is, in equal steps up to 1; the longer scale where one of its own words occurs.
_SCALES = (
    (("low",), ("medium", "moderate", "middle", "mid"), ("high",)),
    (("very low",), ("low",), ("medium", "moderate", "middle", "mid"), ("high",), ("very high",)),
)
#: Names of columns with a confidence, which has a greatest value, while a weight has none.
CONFIDENCES = (
    "confidence", "probability", "prob", "score", "certainty", "sureness", "logprob", "logprobability",
    "logprobs",
)  # fmt: skip
#: A confidence above this is one of 0 to 100; below, it may be a step of a scale such as 1 to 5.
_STEPS = 10


def as_weights(texts: NDArray[Any], column: str) -> tuple[Floats, str]:
    """Weights, shape (n,), nan where there is none or no number, and a note about how they were read.

    Words become equal steps up to 1, percentages and numbers up to 100 shares, and numbers of which none is
    above 0 the exponential function of themselves, as they are logarithms. Other numbers stay as they are.

    Parameters
    ----------
    texts : array of str or None, shape (n,)
    column : str
        The name of their column.
    """
    known = pd.Series([text for text in texts if text is not None], dtype=object)
    for scale in _SCALES:
        steps = {word: (n + 1) / len(scale) for n, words in enumerate(scale) for word in words}
        if len(known) and set(known.str.casefold().unique()) <= steps.keys():
            used = {str(word): steps[word.casefold()] for word in known.unique()}
            listed = ", ".join(f"{word!r} as {weight:.2g}" for word, weight in used.items())
            weights = [np.nan if text is None else steps[text.casefold()] for text in texts]
            return np.array(weights, dtype=np.float64), f"words, {listed}"
    percent = len(known) > 0 and bool(known.str.endswith("%").all())
    cells = [None if text is None else text.removesuffix("%") if percent else text for text in texts]
    numbers = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce").to_numpy(dtype=np.float64)
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return numbers, ""
    if present.max() <= 0 and present.min() < 0:
        return np.exp(numbers), "logarithms of probabilities"
    shares = present.min() >= 0 and _STEPS < present.max() <= 100 and called(column, CONFIDENCES)
    if present.min() >= 0 and (percent or shares):
        return numbers / 100, "percentages"
    return numbers, ""
