"""The section of the report about annotators who err together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from annotmix._common.words import count
from annotmix.labels.err_together import MANY
from annotmix.runs.findings import Findings
from annotmix.runs.report.charts import Content
from annotmix.runs.report.formatting import named, share, whole
from annotmix.runs.report.markup import Markup, element
from annotmix.runs.report.page import scrolling_table
from annotmix.runs.result_columns import TABLES

#: Groups that the table lists, and characters of their names.
MOST, LONGEST = 50, 300


def err_together(findings: Findings) -> Content:
    """Sentences and a table about groups; empty where no pair of annotators could be judged."""
    groups = findings.groups
    if groups is None:
        return []
    weights = findings.settings.get("posterior")
    known = weights if isinstance(weights, Mapping) else {}
    n_pairs = known.get("pairs judged")
    judged = f"Of {count(n_pairs, 'pair')} of annotators" if n_pairs else "Of the pairs of annotators"
    if not len(groups):
        return [
            f"{judged} with enough common items, none is wrong together much more often than independent "
            "annotators would be."
        ]
    votes = known.get("votes")
    worth = (
        f" In effect, an item has {votes:.1f} independent votes on average."
        if votes is not None and np.isfinite(votes)
        else ""
    )
    columns = [column.title for column in TABLES["groups"] if column.title]
    give = "gives" if len(groups) == 1 else "give"
    rows = [_row(row) for row in groups.head(MOST).to_dict("records")]
    return [
        f"{count(len(groups), 'group')} of annotators {give} the same wrong labels far more often than "
        f"independent annotators would: models of one family, or people who copy.{worth}",
        *_deciding(groups),
        "Worth is the number of independent labels that the labels of a group for one item amount to. "
        "Decides is the share of items whose label depends on whether each of the group counts fully, or all "
        "count as one. Where annotators copy each other, labels of groups count less; otherwise they count "
        "fully, as labels alone cannot tell annotators who share errors from those who share the truth.",
        scrolling_table("Groups of annotators who err together", [*columns, "Labels count"], rows),
    ]


def _row(row: Mapping[str, object]) -> list[object]:
    return [
        named(row["annotators"], LONGEST),
        whole(row["n_annotators"]),
        f"{row['n_labels']:.1f}",
        f"{row['votes']:.1f}",
        share(float(str(row["decides"]))),
        "less" if row["counts_less"] else "fully",
    ]


def _deciding(groups: pd.DataFrame) -> list[Markup]:
    """A warning about the group that decides most items, where its labels count fully."""
    free = groups[~groups["counts_less"].astype(bool) & (groups["decides"] > MANY)]
    if not len(free):
        return []
    top = free.iloc[int(free["decides"].argmax())]
    return [
        element(
            "p",
            named(top["annotators"], LONGEST),
            f" decide {top['decides']:.0%} of the items: these would have another label if the group counted "
            "as one annotator.",
            class_="warning",
        )
    ]
