"""Columns that nearly determine the labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
from helpers.crowds import crowd

from annotmix.labels.annotations import Annotations
from annotmix.runs.leaks import Leak, _left_out_accuracy, leaks


def test_copies_of_the_classes_are_named_and_good_features_are_not():
    made = crowd(0, n_items=300, n_annotators=10, per_item=4, skill=(0.7, 0.95))
    rng = np.random.default_rng(0)
    y = made.y
    worse = np.where(rng.random(300) < 0.9, y, (y + 1) % 3)
    table = pd.DataFrame(
        {
            "x": made.X[:, 0],
            "y": y,
            "code": [f"{'abc'[c]}{k % 4}" for k, c in enumerate(y)],
            "good": worse,
            "id": np.arange(300),
            "two": y > 0,
            "none": rng.integers(4, size=300),
        }
    )
    found = leaks(table, made.annotations)
    assert [leak.column for leak in found] == ["y", "code"]
    assert "'y' nearly determines the labels" in found[0].note
    assert "--exclude y" in found[0].note


def test_a_copy_of_the_votes_is_named_where_every_item_has_one_label():
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=100)
    annotations = Annotations(np.arange(100), np.zeros(100, int), z, np.arange(100), ["w"], ["a", "b"])
    table = pd.DataFrame({"copy": z, "other": rng.integers(2, size=100)})
    assert [leak.column for leak in leaks(table, annotations)] == ["copy"]


def test_the_true_classes_are_named_where_a_few_sure_labels_are_wrong():
    # 2 of 74 items whose labels look sure have another true class
    made = Leak("y", right=72 / 74, left=0.04, n_items=74)
    assert made.certain
    assert not made._replace(right=70 / 74).certain
    assert not made._replace(n_items=740, right=720 / 740).certain


def test_rare_classes_make_no_column_a_leak():
    rng = np.random.default_rng(0)
    y = (np.arange(400) % 100 == 0).astype(int)
    made = Annotations.from_matrix(np.tile(y[:, None], (1, 3)))
    assert leaks(pd.DataFrame({"x": rng.integers(3, size=400)}), made) == []


def test_every_item_is_predicted_by_the_others():
    rng = np.random.default_rng(0)
    codes, y = rng.integers(4, size=40), rng.integers(3, size=40)
    right = 0
    for n in range(40):
        others = y[(codes == codes[n]) & (np.arange(40) != n)]
        right += len(others) > 0 and np.bincount(others, minlength=3).argmax() == y[n]
    assert _left_out_accuracy(codes, y) == right / 40
