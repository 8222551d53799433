"""Texts, pictures and labels where numbers are needed, and numbers where labels are."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

import annotmix
from annotmix import Annotations
from annotmix.estimators.numbers_only import refuse_texts

Z = np.array([[0, 0], [1, -1], [0, 0], [1, 1]])
TEXTS = ["a wonderful film", "a boring film", "great", "dull"]


def network(**params):
    return annotmix.AnnotMixClassifier(hidden=(4,), max_epochs=1, random_state=0, progress=False, **params)


@pytest.mark.parametrize(
    "X", [TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), pd.Series(TEXTS)]
)
def test_texts_name_the_encoder(X):
    with pytest.raises(
        ValueError, match=r"X holds texts, such as 'a wonderful film'.*encoder=\"text:minilm\""
    ):
        network().fit(X, Z)
    with pytest.raises(ValueError, match=r'make_pipeline\(annotmix\.TextEncoder\("minilm"\)'):
        annotmix.CrowdClassifier(progress=False).fit(X, Z)


@pytest.mark.parametrize(
    "X", [["a.jpg", "b.png", "c.jpg", "d.jpg"], [Path("a"), Path("b"), Path("c"), Path("d")]]
)
def test_pictures_name_the_encoder(X):
    with pytest.raises(ValueError, match=r'X holds pictures.*encoder="image:efficientnet-lite0"'):
        network().fit(X, Z)
    pillow = pytest.importorskip("PIL.Image")
    with pytest.raises(ValueError, match="X holds pictures"):
        network().fit([pillow.new("RGB", (4, 4))] * 4, Z)


def test_a_table_names_the_column():
    X = pd.DataFrame({"size": [1.0, 2, 3, 4], "colour": [None, "red", "blue", "red"]})
    with pytest.raises(ValueError, match=r"Column 'colour' of X holds 'red'.*OneHotEncoder"):
        network().fit(X, Z)
    with pytest.raises(ValueError, match="X comes first"):
        network().fit(np.array([["cat", "dog"], ["cat", None]] * 2, dtype=object), Z)


@pytest.mark.parametrize(
    "X",
    [
        np.eye(3),
        [[1.0, 2.0]],
        [],
        pd.DataFrame({"a": [1], "b": [True]}),
        np.array([["1", "2"]]),
        [1, 2],
        None,
    ],
)
def test_numbers_pass(X):
    refuse_texts(X)


# ---------------------------------------------------------------- swapped arguments


@pytest.mark.parametrize(
    "clf", [network(), annotmix.CrowdClassifier(cv=2, rounds=1, progress=False)], ids=["network", "crowd"]
)
def test_swapped_arguments_are_refused(clf):
    X, y = load_digits(return_X_y=True)
    X, labels = X[:100] / 16, np.stack([y[:100], y[:100]], axis=1)  # 17 different values
    for features in (X, pd.DataFrame(X), X.tolist()):
        with pytest.raises(ValueError, match=r"15 different fractions, such as 0\.0625.*X comes first"):
            clf.fit(labels, features)
    scores = pd.DataFrame({"item": range(100), "annotator": "ann", "label": np.linspace(0, 1, 100)})
    with pytest.raises(ValueError, match="different fractions"):
        clf.fit(X, scores, items=range(100))


def test_half_stars_and_named_numbers_are_labels():
    rng = np.random.default_rng(0)
    X, stars = rng.normal(size=(60, 2)), rng.integers(0, 21, size=(60, 2)) / 2
    assert len(network().fit(X, stars).classes_) == 21
    tenths = rng.integers(0, 31, size=(60, 2)) / 10
    with pytest.raises(ValueError, match="name all of them with classes="):
        network().fit(X, tenths)
    assert len(network(classes=np.arange(31) / 10).fit(X, tenths).classes_) == 31
    assert len(network().fit(X, Annotations.from_matrix(tenths)).classes_) == len(np.unique(tenths))
