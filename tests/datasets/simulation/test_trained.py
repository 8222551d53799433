"""Annotators that are networks: what is drawn, that seeds hold, and what the cache does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from joblib import Parallel, delayed
from scipy import stats

from annotmix import make_classifier
from annotmix.datasets.simulation import SimulatedAnnotators, simulate_annotators, thin, trained

C = 4
SMALL = {"n_annotators": 3, "max_epochs": 4, "hidden": (8,), "random_state": 0, "progress": False}


def blobs(n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(C, size=n)
    return 2 * np.eye(C)[y] + rng.normal(size=(n, C)), y


@pytest.fixture(scope="module")
def data():
    X, y = blobs()
    return X, y, blobs(50, 1)[0]


@pytest.fixture(scope="module")
def crowd(data):
    X, y, X_test = data
    return simulate_annotators(X, y, [X_test], **SMALL)


@pytest.fixture
def calls(monkeypatch):
    """The annotators that were trained, by their seeds."""
    made = []
    real = trained._labels

    def counted(sets, y, annotator, network):
        made.append(annotator.seed)
        return real(sets, y, annotator, network)

    monkeypatch.setattr(trained, "_labels", counted)
    return made


def same(one: SimulatedAnnotators, two: SimulatedAnnotators) -> None:
    for left, right in zip(one.labels, two.labels, strict=True):
        np.testing.assert_array_equal(left, right)
    pd.testing.assert_frame_equal(one.table, two.table)
    pd.testing.assert_frame_equal(one.ratios, two.ratios)


def draw(y, seed, a=(0.0, 1.0), b=(0.5, 2.0)):
    return trained._draw(y, a, b, 20, (1e-4, 1e-1), np.random.SeedSequence(0, spawn_key=(seed,)))


# ---------------------------------------------------------------- what comes out


def test_every_annotator_labels_every_instance(data, crowd):
    assert [part.shape for part in crowd.labels] == [(200, 3), (50, 3)]
    assert all(part.dtype == np.int64 and 0 <= part.min() <= part.max() < C for part in crowd.labels)
    assert list(crowd.table) == ["a", "b", "epochs", "lr", "items", "accuracy"]
    assert crowd.ratios.shape == (3, C)
    np.testing.assert_allclose(crowd.table["accuracy"], np.mean(crowd.labels[0] == data[1][:, None], axis=0))
    counts = (crowd.ratios.to_numpy() * np.bincount(data[1])).astype(int)
    np.testing.assert_array_equal(crowd.table["items"], counts.sum(axis=1))


def test_annotations_can_be_thinned(data):
    X, y, X_test = data
    crowd = simulate_annotators(X, y, [X_test], names=["p", "q", "r"], **SMALL)
    labels = crowd.annotations(1, classes=list("abcd"))
    assert list(labels.annotators) == ["p", "q", "r"]
    np.testing.assert_array_equal(labels.to_matrix().to_numpy(), np.array(list("abcd"))[crowd.labels[1]])
    assert set(thin(crowd.annotations(), (1, 2), random_state=0).labels_per_item) == {1, 2}


def test_labels_are_those_of_true_base(data, crowd):
    X, y, X_test = data
    one = trained._draw(y, (0, 1), (0.5, 2), 4, (1e-4, 1e-1), np.random.SeedSequence(0).spawn(3)[1])
    clf = make_classifier(
        "true-base", classes=range(C), hidden=(8,), max_epochs=one.epochs, lr=one.lr, random_state=one.seed
    )
    clf.fit(X[one.rows], y[one.rows])
    np.testing.assert_array_equal(crowd.labels[1][:, 1], clf.predict(X_test))
    assert crowd.table.loc[1, "lr"] == one.lr


def test_published_changes_the_learning_rate_only(data, crowd):
    X, y, X_test = data
    slip = simulate_annotators(X, y, [X_test], published=True, **SMALL)
    assert set(slip.table["lr"]) == {1e-3}
    kept = ["a", "b", "epochs", "items"]
    pd.testing.assert_frame_equal(slip.table[kept], crowd.table[kept])
    assert np.any(slip.labels[0] != crowd.labels[0])


def test_who_saw_one_class_says_that_class(data):
    X, y, _ = data
    one_class = np.zeros(C)
    one_class[2] = 0.5
    lucky = trained.Annotator(1, 1, 20, 0.1, 0, one_class, np.flatnonzero(y == 2)[:20])
    said = trained._labels([X], y, lucky, {"hidden": (8,)})
    assert set(said) == {2}


def test_letter_annotators_differ_widely(data_file):
    table = pd.read_csv(data_file("letter/letter-recognition.data"), header=None, nrows=3000)
    y, X = pd.factorize(table[0], sort=True)[0], table.iloc[:, 1:].to_numpy(np.float32)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    crowd = simulate_annotators(X[:2000], y[:2000], [X[2000:]], n_annotators=8, hidden=(64,), max_epochs=8)
    accuracy = np.mean(crowd.labels[1] == y[2000:, None], axis=0)
    assert accuracy.max() - accuracy.min() > 0.3
    assert abs(accuracy - crowd.table["accuracy"]).max() < 0.15
    for m in range(8):
        for other in range(m):
            assert np.mean(crowd.labels[0][:, m] != crowd.labels[0][:, other]) > 0.05
    # an annotator knows the classes it saw much of better than the others
    seen = crowd.ratios.to_numpy() > 0.5
    right = np.array([[np.mean(crowd.labels[0][y[:2000] == c, m] == c) for c in range(26)] for m in range(8)])
    assert right[seen].mean() > right[~seen].mean() + 0.2


# ---------------------------------------------------------------- what is drawn


def test_draws_follow_the_stated_distributions():
    y = np.repeat(np.arange(5), 200)
    drawn = [draw(y, seed) for seed in range(1500)]
    table = pd.DataFrame(drawn)
    assert stats.kstest(table["a"], stats.uniform(0, 1).cdf).pvalue > 0.01
    assert stats.kstest(table["b"], stats.uniform(0.5, 1.5).cdf).pvalue > 0.01
    assert stats.kstest(table["lr"], stats.uniform(1e-4, 1e-1 - 1e-4).cdf).pvalue > 0.01
    epochs = np.bincount(table["epochs"], minlength=21)
    assert epochs[0] == 0
    assert len(epochs) == 21
    assert stats.chisquare(epochs[1:]).pvalue > 0.01
    # ratios by their own distribution's function are uniform; annotators who were drawn again set aside
    often = table["a"] > 0.3
    rank = np.concatenate([stats.beta(one.a, one.b).cdf(one.ratios) for one in table[often].itertuples()])
    assert stats.kstest(rank, stats.uniform.cdf).pvalue > 0.01


def test_rows_are_the_stated_share_of_each_class_with_replacement():
    y = np.random.default_rng(0).permutation(np.repeat([0, 1, 3], [50, 100, 150]))  # nobody is of class 2
    seen = np.zeros(len(y), dtype=int)
    for seed in range(300):
        one = draw(y, seed, a=(2, 2), b=(2, 2))
        expected = [int(ratio * np.sum(y == c)) for c, ratio in enumerate(one.ratios)]
        np.testing.assert_array_equal(np.bincount(y[one.rows], minlength=4), expected)
        seen += np.bincount(one.rows, minlength=len(y))
    assert np.all(np.abs(seen - 150) < 5 * np.sqrt(150))  # every item as often as any other
    assert len(np.unique(one.rows)) < len(one.rows)


def test_few_items_are_drawn_again():
    y = np.repeat(np.arange(3), 20)
    drawn = [draw(y, seed, a=(0.0, 0.1)) for seed in range(200)]
    assert min(len(one.rows) for one in drawn) >= 10
    assert any(np.any((one.ratios * 20).astype(int) == 0) for one in drawn)  # single classes stay unseen
    assert min(one.a for one in drawn) == trained.LEAST_SHAPE


def test_ratios_that_never_make_ten_end_in_an_error(monkeypatch):
    monkeypatch.setattr(trained, "MAX_DRAWS", 50)
    with pytest.raises(ValueError, match=r"50 draws of ratios .* for 12 items never made 10"):
        draw(np.repeat([0, 1], 6), 0, a=(0, 1e-9))


# ---------------------------------------------------------------- seeds and processes


def test_seed_decides(data, crowd):
    X, y, X_test = data
    same(crowd, simulate_annotators(X, y, [X_test], **SMALL))
    other = simulate_annotators(X, y, [X_test], **SMALL | {"random_state": 1})
    assert np.any(other.labels[0] != crowd.labels[0])
    assert np.any(other.table["a"] != crowd.table["a"])


def test_the_first_annotators_stay_when_there_are_more(data, crowd):
    X, y, X_test = data
    fewer = simulate_annotators(X, y, [X_test], **SMALL | {"n_annotators": 2})
    np.testing.assert_array_equal(fewer.labels[0], crowd.labels[0][:, :2])


def test_caller_notices_nothing(data):
    X, y, _ = data
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    torch.set_num_threads(2)
    try:
        simulate_annotators(X, y, **SMALL | {"n_annotators": 1})
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert torch.equal(before[0], torch.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


def test_memory_mapped_items(data, crowd, tmp_path):
    X, y, X_test = data
    np.save(tmp_path / "X.npy", X)
    same(crowd, simulate_annotators(np.load(tmp_path / "X.npy", mmap_mode="r"), y, [X_test], **SMALL))


def test_processes_give_the_same_and_may_share_a_cache(data, crowd, tmp_path):
    X, y, X_test = data
    same(crowd, simulate_annotators(X, y, [X_test], n_jobs=2, **SMALL))
    # the same workers again, each now running the whole simulation in one folder
    both = Parallel(n_jobs=2)(
        delayed(simulate_annotators)(X, y, [X_test], cache=tmp_path, **SMALL) for _ in range(2)
    )
    same(crowd, both[0])
    same(crowd, both[1])
    assert [path.suffix for path in tmp_path.iterdir()] == [".rows"] * 3


# ---------------------------------------------------------------- the cache


def test_cache_is_used(data, crowd, tmp_path, calls):
    X, y, X_test = data
    for _ in range(2):
        same(crowd, simulate_annotators(X, y, [X_test], cache=tmp_path / "new" / "folder", **SMALL))
        assert len(calls) == 3
    more = SMALL | {"n_annotators": 4}
    simulate_annotators(X, y, [X_test], cache=tmp_path / "new" / "folder", **more)
    assert len(calls) == 4


@pytest.mark.parametrize(
    "change",
    [{"random_state": 1}, {"hidden": (9,)}, {"published": True}, {"batch_size": 32}, {"y": 1}, {"X": 1}],
)
def test_cache_knows_what_matters(data, tmp_path, calls, change):
    X, y, _ = data
    few = SMALL | {"n_annotators": 1, "max_epochs": 1, "cache": tmp_path}
    simulate_annotators(X, y, **few)
    change = dict(change)
    if change.pop("y", None):
        y = y[::-1]
    if change.pop("X", None):
        X = X + np.eye(len(X), C)
    simulate_annotators(X, y, **few | change)
    assert len(calls) == 2


def test_cache_goes_on_after_a_kill(data, crowd, tmp_path, monkeypatch, calls):
    X, y, X_test = data
    counted = trained._labels

    def killed(*args):
        if len(calls) == 2:
            raise KeyboardInterrupt
        return counted(*args)

    monkeypatch.setattr(trained, "_labels", killed)
    with pytest.raises(KeyboardInterrupt):
        simulate_annotators(X, y, [X_test], cache=tmp_path, **SMALL)
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(trained, "_labels", counted)
    same(crowd, simulate_annotators(X, y, [X_test], cache=tmp_path, **SMALL))
    assert len(calls) == 3


@pytest.mark.parametrize(
    "damage", [lambda whole: b"", lambda whole: whole[:-9], lambda whole: b"\x00\xff" * 100]
)
def test_damaged_cache_is_repaired(data, crowd, tmp_path, calls, damage):
    X, y, X_test = data
    one = SMALL | {"n_annotators": 1, "cache": tmp_path}
    simulate_annotators(X, y, [X_test], **one)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    again = simulate_annotators(X, y, [X_test], **one)
    np.testing.assert_array_equal(again.labels[1], crowd.labels[1][:, :1])
    assert len(calls) == 2
    simulate_annotators(X, y, [X_test], **one)
    assert len(calls) == 2


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(7, dtype=int)}, "y must hold one integer code per row of X, 200 in all"),
        ({"y": np.full(200, 0.5)}, "float64"),
        ({"y": np.zeros(200, dtype=int)}, "two classes or more"),
        ({"y": np.arange(-1, 199)}, "from -1 to 198"),
        ({"X": np.ones((9, 2)), "y": np.arange(9) % 2}, "10 items or more; X has 9"),
        ({"further": [np.ones((5, 3))]}, r"further\[0\] has items of shape \(3,\)"),
        ({"n_annotators": 0}, "n_annotators must be a positive integer"),
        ({"max_epochs": 0}, "max_epochs must be a positive integer"),
        ({"a": (0, 0)}, "a must be a range"),
        ({"b": (2, 1)}, "b must be a range"),
        ({"lr": (-1, 1)}, "lr must be a range"),
        ({"names": ["only one"]}, "names must name 3 annotators, found 1"),
        ({"backbone": torch.nn.Linear(C, 8), "cache": "folder"}, "cache= needs a backbone that has a name"),
    ],
)
def test_mistakes_are_named(data, change, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        simulate_annotators(**{"X": data[0], "y": data[1], **SMALL, **change})
    assert not list(tmp_path.iterdir())
