"""What a run keeps about kinds of annotators: people, models and rules."""

from __future__ import annotations

import numpy as np
import pandas as pd

from annotmix.labels.kinds import UNKNOWN
from annotmix.labels.posterior import Posterior
from annotmix.reading import AnnotatorTable
from annotmix.runs.result_columns import make_table


def kind_tables(posterior: Posterior, who: AnnotatorTable | None) -> dict[str, pd.DataFrame]:
    """The tables of `Findings.kinds`; none without a table of annotators."""
    return {} if who is None else {"crowd": _crowd(posterior, who)}


def with_kinds(annotators: pd.DataFrame, crowd: pd.DataFrame) -> pd.DataFrame:
    """`Findings.annotators` with the kind of every annotator; `crowd` as in `Findings.kinds`."""
    kind = crowd.set_index("annotator")["kind"].reindex(annotators.index)
    return make_table("annotators", annotators.assign(kind=kind).reset_index())


def _crowd(posterior: Posterior, who: AnnotatorTable) -> pd.DataFrame:
    """Everything that is known of annotators: those with labels first, then those who gave none."""
    labelled = [str(name) for name in posterior.annotations.annotators]
    names = list(dict.fromkeys([*labelled, *who.names]))
    table = who.table.reindex(pd.Index(names, name="annotator", tupleize_cols=False))
    table = table.fillna({"kind": UNKNOWN, "group": "", "model": "", "prompt": ""})
    table[["cost", "load"]] = table[["cost", "load"]].astype(np.float64)
    return make_table("crowd", table.reset_index())
