"""How much labels of annotators who err together count, against loops."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.crowds import distributions

from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import Labelled
from annotmix.labels.groups import Groups

PAIRS = [(0, 1, 1.0), (1, 3, 0.5), (2, 4, 0.25)]


@pytest.fixture(params=[False, True], ids=["labels", "soft labels"])
def labels(request):
    rng = np.random.default_rng(0)
    Z = rng.integers(-1, 3, size=(15, 6))
    a = Annotations.from_matrix(Z)
    if request.param:
        P = rng.dirichlet(np.ones(3), size=Z.shape)
        P[Z < 0] = np.nan
        a = Annotations.from_soft(P)
    first, second, excess = (np.array(part) for part in zip(*PAIRS, strict=True))
    return a, Groups.of_pairs(a.n_annotators, first, second, excess)


def company(a, p):
    """Σ r over the others of the item who err together with the annotator of label p."""
    others = {a.annotator[k] for k in range(len(a)) if a.item[k] == a.item[p]}
    return sum(r for m, other, r in PAIRS for one, two in ((m, other), (other, m))
               if one == a.annotator[p] and two in others)  # fmt: skip


def test_a_label_counts_less_with_every_other_of_its_group(labels):
    a, groups = labels
    expected = [1 / (1 + company(a, p)) for p in range(len(a))]
    assert min(expected) < 1
    np.testing.assert_allclose(groups.shares(a), expected)


def test_groups_are_connected_pairs(labels):
    a, groups = labels
    assert [members.tolist() for members in groups.members] == [[0, 1, 3], [2, 4]]
    kept = np.ones(a.n_annotators, dtype=bool)
    kept[0] = False
    part = groups.only(kept)
    assert [members.tolist() for members in part.members] == [[0, 2], [1, 3]]
    np.testing.assert_array_equal(part.excess, [0.5, 0.25])


def test_sums_over_the_labels_of_a_block(labels):
    a, groups = labels
    labelled, values = Labelled(a, groups), distributions(4, len(a), 3)
    sums = labelled.block_sums(values, slice(None))
    n_others = labelled.n_others(slice(None), slice(None))
    for p in range(len(a)):
        same = (a.item == a.item[p]) & (groups.group[a.annotator] == groups.group[a.annotator[p]])
        np.testing.assert_allclose(sums[p], (labelled.evidence[:, None] * values)[same].sum(axis=0))
        rest = {a.annotator[k]: k for k in np.flatnonzero((a.item == a.item[p]) & ~same)}
        expected = sum(1 / (1 + company(a, k)) for k in rest.values())
        assert n_others[p] == pytest.approx(expected)


def test_nobody_in_a_group_is_the_same_as_no_groups(labels):
    a, _ = labels
    none = np.zeros(0, dtype=np.int64)
    plain, grouped = Labelled(a), Labelled(a, Groups.of_pairs(a.n_annotators, none, none, np.zeros(0)))
    np.testing.assert_array_equal(grouped.evidence, plain.evidence)
    np.testing.assert_allclose(grouped.n_labels, plain.n_labels)
    np.testing.assert_array_equal(grouped.blocks_per_item, plain.blocks_per_item)
    np.testing.assert_array_equal(grouped.votes(), plain.votes())
