"""Labels in any form that users have, where there are no features beside them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from annotmix.labels.annotations import Annotations


def labels_alone(labels: Any, items: Any = None) -> Annotations:
    """Labels in any form that `fit` takes, without X; `items` are all items of a long table, in order."""
    if isinstance(labels, Annotations):
        return labels
    from annotmix.labels.accepted import as_annotations, is_long, read_table  # it imports scikit-learn

    if isinstance(labels, pd.DataFrame) and is_long(labels):
        return read_table(labels, items)
    return as_annotations(labels, len(labels))
