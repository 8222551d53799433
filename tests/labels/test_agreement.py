"""`annotmix.agreement` against the implementations on PyPI, and its bootstrap against tables drawn again."""

from __future__ import annotations

import doctest
import importlib
import warnings

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from annotmix.labels import alpha as alpha_module
from annotmix.labels.agreement import Agreement, agreement, usual
from annotmix.labels.alpha import ItemSums
from annotmix.labels.annotations import Annotations
from annotmix.labels.coefficients import annotator_agreement, percent_agreement

LEVELS = ["nominal", "ordinal", "interval"]
#: The data of Krippendorff (2011), "Computing Krippendorff's alpha-reliability", with his results.
TEXTBOOK = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, -1, -1, -1],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, -1, 3],
    [-1, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, -1],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, -1],
]
TEXTBOOK_ALPHA = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}


def matrix(seed: int, n_items: int = 80, n_classes: int = 4, missing: float = 0.4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = (n_items, 5)
    true = rng.integers(n_classes, size=(n_items, 1))
    Z = np.where(rng.random(shape) < 0.6, true, rng.integers(n_classes, size=shape))
    return np.where(rng.random(shape) < missing, -1, Z)


def reference(Z: np.ndarray, level: str) -> float:
    """α by the package krippendorff; nan where it refuses."""
    try:
        return krippendorff.alpha(np.where(Z < 0, np.nan, Z).T, level_of_measurement=level)
    except ValueError:
        return float("nan")


def alpha_slowly(P: np.ndarray, distance: np.ndarray) -> float:
    """α of soft labels of shape (N, M, C) by loops over pairs of labels; an item counts by its weight."""
    items = [[p for p in soft if p.sum() > 0] for soft in np.nan_to_num(P)]
    items = [labels for labels in items if len(labels) > 1]
    total = sum(p.sum() for labels in items for p in labels)
    observed = 0.0
    for labels in items:
        pairs = [(p, q) for i, p in enumerate(labels) for j, q in enumerate(labels) if i != j]
        differ = sum(p @ distance @ q for p, q in pairs) / sum(p.sum() * q.sum() for p, q in pairs)
        observed += sum(p.sum() for p in labels) / total * differ
    every = [p for labels in items for p in labels]
    pairs = [(p, q) for i, p in enumerate(every) for j, q in enumerate(every) if i != j]
    return 1 - observed * sum(p.sum() * q.sum() for p, q in pairs) / sum(p @ distance @ q for p, q in pairs)


@pytest.mark.parametrize("level", LEVELS)
def test_the_textbook(level):
    result = agreement(np.array(TEXTBOOK).T, level=level, n_bootstrap=10)
    assert result.alpha == pytest.approx(TEXTBOOK_ALPHA[level], abs=5e-4)
    assert result.n_items == 11


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.integers(1, 8).flatmap(
        lambda m: st.lists(st.lists(st.integers(-1, 3), min_size=m, max_size=m), min_size=1, max_size=8)
    )
)
def test_alpha_equals_the_package_krippendorff(level, rows):
    Z = np.array(rows)
    a = Annotations.from_matrix(Z, classes=range(4))
    result = agreement(a, level=level, n_bootstrap=0)
    pairable = Z[(Z >= 0).sum(axis=1) > 1]
    if len(np.unique(pairable[pairable >= 0])) < 2:  # there it says 1, or nothing
        assert np.isnan(result.alpha)
        return
    assert result.alpha == pytest.approx(reference(Z, level), abs=1e-9)
    for c in range(4):
        own = result.classes.loc[c]
        if np.isnan(own["alpha"]):
            assert own["share"] == 0 or (pairable == c).sum() in (0, (pairable >= 0).sum())
        else:
            assert own["alpha"] == pytest.approx(reference(np.where(Z < 0, -1, c == Z), "nominal"), abs=1e-9)


def test_kappa_equals_statsmodels():
    Z = matrix(0, missing=0)
    result = agreement(Z, n_bootstrap=0)
    assert result.fleiss_kappa == pytest.approx(fleiss_kappa(aggregate_raters(Z)[0]))


def test_percent_is_the_one_of_annotations():
    a = Annotations.from_matrix(matrix(1))
    result = agreement(a, n_bootstrap=0)
    assert result.percent == pytest.approx(percent_agreement(a)) == pytest.approx(a.summary()["agreement"])


@pytest.mark.parametrize("level", LEVELS)
def test_soft_labels_equal_loops(level):
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(3), size=(12, 3)) * rng.random((12, 3, 1))
    P[rng.random((12, 3)) < 0.25] = np.nan
    several = (~np.isnan(P[:, :, 0])).sum(axis=1) > 1
    n = np.nansum(P[several], axis=(0, 1))
    values = n.cumsum() - n / 2 if level == "ordinal" else np.arange(3)
    distance = 1 - np.eye(3) if level == "nominal" else np.subtract.outer(values, values) ** 2
    result = agreement(Annotations.from_soft(P), level=level, n_bootstrap=0)
    assert result.alpha == pytest.approx(alpha_slowly(P, distance))
    doubled = agreement(Annotations.from_soft(2 * P), level=level, n_bootstrap=0)
    pd.testing.assert_frame_equal(doubled.coefficients, result.coefficients)
    pd.testing.assert_frame_equal(doubled.classes, result.classes)


@pytest.mark.parametrize("level", LEVELS)
def test_the_bootstrap_equals_tables_drawn_again(level):
    Z = matrix(4, missing=0.3)
    Z = Z[(Z >= 0).sum(axis=1) > 1]
    rng = np.random.default_rng(0)
    sums = ItemSums(Annotations.from_matrix(Z), level, np.arange(4.0), rng)
    counts = np.stack([np.bincount(rng.integers(len(Z), size=len(Z)), minlength=len(Z)) for _ in range(5)])
    figures = sums.figures(counts.astype(float))
    for b, times in enumerate(counts):
        drawn = np.repeat(Z, times, axis=0)
        again = agreement(drawn, level=level, n_bootstrap=0)
        assert figures.alpha[b] == pytest.approx(reference(drawn, level))
        assert figures.fleiss_kappa[b] == pytest.approx(again.fleiss_kappa)
        assert figures.percent[b] == pytest.approx(again.percent)
        np.testing.assert_allclose(figures.class_alpha[b], again.classes["alpha"].loc[range(4)])


def test_intervals_hold_the_truth(monkeypatch):
    """Of many crowds about 95 % of the intervals hold the α of all items; groups of items change little."""
    Z = matrix(5, n_items=20_000, missing=0.2)
    truth = agreement(Z, n_bootstrap=0).alpha
    inside, widths = 0, []
    for part in np.split(Z, 100):
        low, high = agreement(part, n_bootstrap=200).alpha_interval
        inside += low <= truth <= high
        widths.append(high - low)
    assert 88 <= inside <= 100
    monkeypatch.setattr(alpha_module, "MOST_GROUPS", 100)
    for part in np.split(Z, 20)[:3]:
        low, high = agreement(part, n_bootstrap=500).alpha_interval
        assert (high - low) * 5**0.5 == pytest.approx(np.mean(widths), rel=0.3)


def test_the_same_seed_gives_the_same_intervals():
    first, second, third = (agreement(matrix(6), n_bootstrap=50, random_state=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first.coefficients, second.coefficients)
    assert first.alpha_interval != third.alpha_interval


def test_an_order_of_names():
    Z = matrix(7)
    names = np.array(["medium", "high", "low", "none"], dtype=object)  # in the order of their numbers
    table = pd.DataFrame(np.where(Z < 0, None, names[Z]))
    for level in ("ordinal", "interval"):
        ordered = agreement(table, level=level, order=list(names), n_bootstrap=20)
        numbered = agreement(Z, level=level, n_bootstrap=20)
        pd.testing.assert_frame_equal(ordered.coefficients, numbered.coefficients)
        assert ordered.matrix().to_numpy() == pytest.approx(numbered.matrix().to_numpy())


def test_numbers_are_values_and_texts_may_be_numbers():
    Z = matrix(8)
    far = np.where(Z < 0, -1, np.array([10, 1, 2, 100])[Z])
    texts = pd.DataFrame(np.where(Z < 0, None, far.astype(str).astype(object)))
    for level in LEVELS:
        expected = reference(far, level)
        assert agreement(far, level=level, n_bootstrap=0).alpha == pytest.approx(expected)
        assert agreement(texts, level=level, n_bootstrap=0).alpha == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": "ratio"}, '"nominal", "ordinal" or "interval", found \'ratio\''),
        ({"level": "ordinal"}, "needs the order of the classes, and 'a', 'b' are no numbers.*--order low"),
        ({"level": "interval"}, "needs the order"),
        ({"level": "ordinal", "order": ["a"]}, "order lacks the classes 'b'"),
        ({"level": "ordinal", "order": ["a", "b", "a"]}, "name every class once"),
        ({"order": ["a", "b"]}, 'order needs level="ordinal"'),
        ({"n_bootstrap": -1}, "n_bootstrap must be 0 or more, found -1"),
    ],
)
def test_arguments_that_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        agreement([["a", "b"], ["b", "b"]], **arguments)


def test_annotators_and_pairs():
    Z = matrix(9)
    Z[:, 4] = -1
    Z[0] = [0, -1, -1, -1, 0]  # annotator 4 has one item, alone with annotator 0
    result = agreement(Z, n_bootstrap=0)
    share, kappa = annotator_agreement(result.annotations)
    table = result.annotators
    assert table["high"].is_monotonic_increasing
    assert sorted(table.index) == list(range(5))
    np.testing.assert_allclose(table["agreement"].loc[range(5)], share)
    np.testing.assert_allclose(table["kappa"].loc[range(5)], kappa)
    assert table.loc[4, "n_items"] == 1
    assert (table["low"] < table["agreement"]).all()
    pairs = result.pairs()
    assert len(pairs) == 7  # annotator 4 has nothing in common with 1, 2 and 3
    assert pairs["kappa"].dropna().is_monotonic_increasing
    for measure in ("kappa", "agreement", "n_items"):
        whole = result.matrix(measure)
        for row in pairs.itertuples():
            assert whole.loc[row.annotator, row.other] == pytest.approx(getattr(row, measure), nan_ok=True)
    assert result.matrix(annotators=[3, 1]).index.tolist() == [3, 1]
    with pytest.raises(ValueError, match="'x' is unknown"):
        result.pairs(["x"])
    with pytest.raises(ValueError, match="measure must be"):
        result.matrix("alpha")


def test_pairs_are_of_those_with_the_most_labels():
    Z = np.full((200, 120), -1)
    Z[:, :60] = np.arange(200)[:, None] % 3
    Z[:5, 60:] = 1
    result = agreement(Z, n_bootstrap=0)
    assert result.matrix().columns.tolist() == list(range(50))
    assert len(result.matrix(annotators=range(60))) == 60


def test_one_class_only_and_no_pair():
    for Z in (np.zeros((4, 3), dtype=int), [[0, -1], [-1, 1]], np.zeros((0, 2), dtype=int)):
        for level in LEVELS:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                result = agreement(Z, level=level, n_bootstrap=20)
                assert np.isnan(result.alpha)
                assert np.isnan(result.alpha_interval).all()
                assert "There is no α" in result.verdict
                assert repr(result)
                assert result._repr_html_()


def test_it_shows_itself():
    result = agreement([["cat", "cat", "dog"], ["dog", "dog", "dog"], ["cat", "cat", None]], n_bootstrap=100)
    assert isinstance(result, Agreement)
    assert repr(result).startswith("Agreement(alpha 0.562 (")
    assert repr(result).endswith(
        "nominal), Fleiss' kappa 0.550, 77.8% of pairs agree; 3 items with two labels or more)"
    )
    html = result._repr_html_()
    for part in ("fleiss_kappa", "<b>Agreement</b>", "custom", "cat", "agreement"):
        assert part in html


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ((0.85, 0.81, 0.9), "from .667 on: these are reliable."),
        ((0.81, 0.78, 0.9), "these are reliable; the interval includes .800."),
        ((0.7, 0.68, 0.72), "these allow tentative conclusions only."),
        ((0.7, 0.6, 0.72), "only; the interval includes .667."),
        ((0.79, 0.7, 0.82), "only; the interval includes .800."),
        ((0.3, 0.2, 0.4), "these are not reliable enough to draw conclusions from single ones."),
    ],
)
def test_the_usual_bounds(figures, words):
    assert usual(*figures).endswith(words)


def test_the_examples_in_docstrings():
    assert doctest.testmod(importlib.import_module("annotmix.labels.agreement")).failed == 0
