"""What every approach must do, for the registered ones and for those that a test adds.

`CHECKS` pairs every check with a predicate that says for which approaches it holds.
"""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

import annotmix
from annotmix import Annotations
from annotmix.approaches import Batch, get_approach
from annotmix.estimators import classifiers
from annotmix.networks import MLP, Classifier
from annotmix.training.optimizer import RAdam

Check = Callable[..., None]
Applies = Callable[[str], bool]
CHECKS: list[tuple[Check, Applies]] = []


def everywhere(name: str) -> bool:
    """Every approach."""
    return True


def one_stage(name: str) -> bool:
    """Approaches with an annotator model."""
    return get_approach(name).perf is not None


def two_stage(name: str) -> bool:
    """Approaches that train on one label per item."""
    return not one_stage(name)


def aggregates(name: str) -> bool:
    """Two-stage approaches that make that label themselves."""
    return two_stage(name) and name != "true-base"


def check(applies: Applies) -> Callable[[Check], Check]:
    """Add a check to `CHECKS`."""

    def add(function: Check) -> Check:
        CHECKS.append((function, applies))
        return function

    return add


def arguments(function: Check, name: str, tmp_path: Path) -> dict[str, Any]:
    """The arguments that a check takes."""
    offered = {"name": name, "tmp_path": tmp_path}
    return {key: offered[key] for key in inspect.signature(function).parameters}


def make(name, **params):
    shared = {"hidden": (64, 32), "dropout": 0.0, "max_epochs": 20, "batch_size": 32, "random_state": 0}
    return annotmix.make_classifier(name, **({"progress": False} | shared | params))


def fit(clf, X, Z, y):
    """true-base gets the true classes, everything else the labels."""
    return clf.fit(X, y if clf._approach.name == "true-base" else Z)


SKILL = [0.95, 0.95, 0.9, 0.9, 0.85, 0.85, 0.7, 0.6, 1 / 3, 1 / 3]  # the last two are spammers


def easy(n=400, seed=0, one_label=False):
    """Three blobs in eight dimensions, ten annotators, three labels an item or one."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = (2.5 * np.eye(3, 8)[y] + rng.normal(size=(n, 8))).astype(np.float32)
    right = rng.random((n, 10)) < SKILL
    Z = np.where(right, y[:, None], (y[:, None] + rng.integers(1, 3, size=(n, 10))) % 3)
    keep = np.argsort(rng.random((n, 10)), axis=1) < (1 if one_label else 3)
    return X, np.where(keep, Z, -1), y


@check(everywhere)
def check_file_opens_with_maths_and_every_parameter_is_documented(name):
    approach = get_approach(name)
    assert (inspect.getmodule(approach).__doc__ or "").startswith(name)
    clf = make(name)
    for parameter in inspect.signature(type(clf)).parameters:
        assert f"\n{parameter} : " in type(clf).__doc__, parameter
    assert getattr(classifiers, type(clf).__name__) is type(clf)


@check(everywhere)
def check_every_parameter_moves_or_is_declared_frozen(name):
    switches = [{}] + ([{"published": True}] if "published" in get_approach(name).hyper_parameters() else [])
    X, Z, y = easy()
    for params in switches:
        clf = make(name, max_epochs=1, **params)
        before = {}
        approach = clf._approach
        original = approach.__init__

        def recording(self, *args, original=original, before=before, **kwargs):
            original(self, *args, **kwargs)
            before.update({k: t.detach().clone() for k, t in self.state_dict().items()})

        with pytest.MonkeyPatch.context() as patch:
            recording.__signature__ = inspect.signature(original)
            patch.setattr(approach, "__init__", recording)
            fit(clf, X, Z, y)
        for key, parameter in clf.module_.named_parameters():
            moved = not torch.equal(before[key], parameter)
            assert moved == parameter.requires_grad, f"{key} {params}"
        if not params:
            assert all(p.requires_grad for p in clf.module_.parameters())
        else:
            assert not all(p.requires_grad for p in clf.module_.parameters())


@check(everywhere)
def check_the_optimiser_holds_every_trained_parameter_once(name):
    module = get_approach(name)(Classifier(MLP(4, (8,)), 8, 3), 2)
    optimizer = RAdam(module)
    listed = [id(p) for p in optimizer.params + [table.p for table in optimizer.tables]]
    assert sorted(listed) == sorted(id(p) for p in module.parameters() if p.requires_grad)


@check(everywhere)
def check_the_loss_is_the_one_that_is_trained(name):
    """Whoever edits `loss` changes training: one that raises stops it, another value changes the weights."""
    X, Z, y = easy(100)
    approach, original = get_approach(name), get_approach(name).loss

    class Broken(Exception):
        pass

    def broken(self, batch, rng):
        raise Broken

    def other(self, batch, rng):
        return original(self, batch, rng) + sum((p - 1).square().sum() for p in self.classifier.parameters())

    fitted = []
    for loss in (original, other, broken):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(approach, "loss", loss)
            if loss is broken:
                with pytest.raises(Broken):
                    fit(make(name, max_epochs=1), X, Z, y)
            else:
                fitted.append(fit(make(name, max_epochs=1), X, Z, y).predict_proba(X))
    assert not np.allclose(*fitted, atol=1e-3)


@check(everywhere)
def check_probabilities_sum_to_one(name):
    X, Z, y = easy()
    clf = fit(make(name, max_epochs=2), X, Z, y)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1, atol=1e-9)
    if one_stage(name):
        np.testing.assert_allclose(clf.predict_annotator_proba(X).sum(axis=1), 1, atol=1e-9)
        np.testing.assert_allclose(clf.annotator_confusion(X).sum(axis=1), 1, atol=1e-5)
        perf = clf.predict_annotator_perf(X).to_numpy()
        assert perf.min() >= 0
        assert perf.max() <= 1 + 1e-6
    for probability in (clf.label_quality()["probability"], clf.consensus()["probability"]):
        assert probability.between(0, 1).all()


@check(everywhere)
def check_same_seed_same_result(name):
    X, Z, y = easy(150)
    first, second, other = (fit(make(name, max_epochs=2, random_state=s), X, Z, y) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert not np.array_equal(first.predict_proba(X), other.predict_proba(X))


@check(everywhere)
def check_strings_missing_labels_unused_annotators_and_classes(name):
    X, Z, y = easy(150)
    Z[:20] = -1
    kinds = np.array(["ant", "bee", "cat"])
    words = pd.DataFrame(np.where(Z < 0, None, kinds[Z]), columns=list("abcdefghij"))
    words["k"] = None
    clf = make(name, max_epochs=3, classes=["ant", "bee", "cat", "dog"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit(clf, X, words, kinds[y])
    assert clf.classes_.tolist() == ["ant", "bee", "cat", "dog"]
    assert np.isfinite(clf.predict_proba(X)).all()
    assert set(clf.predict(X)) <= set(clf.classes_)
    if one_stage(name):
        assert clf.annotators_.tolist() == list("abcdefghijk")
        assert clf.predict_annotator_perf(X).shape == (150, 11)


def as_labels(name, Z, y):
    """What `fit` above would train on, as `Annotations`."""
    return Annotations.from_matrix(y.reshape(-1, 1) if name == "true-base" else Z)


@check(everywhere)
def check_weights_of_one_and_of_zero_change_no_bit(name):
    X, Z, y = easy(100)
    hard = as_labels(name, Z, y)
    rows = np.r_[np.arange(len(hard)), 0, 5]  # two labels again, as another class and of weight 0
    label = np.r_[hard.label, (hard.label[[0, 5]] + 1) % 3]
    weight = np.r_[np.ones(len(hard)), 0, 0]
    soft = Annotations(
        hard.item[rows], hard.annotator[rows], label, hard.items, hard.annotators, hard.classes, weight
    )
    one, same = (make(name, max_epochs=3).fit(X, labels) for labels in (hard, soft))
    assert one.history_["loss"].tolist() == same.history_["loss"].tolist()
    np.testing.assert_array_equal(one.predict_proba(X), same.predict_proba(X))
    pd.testing.assert_frame_equal(one.consensus(X, hard), same.consensus(X, soft))


@check(everywhere)
def check_learns_from_weights_what_the_labels_alone_do_not_tell(name):
    """Two of an item's six labels are right; four are of the next class, and count for next to nothing."""
    X, _, y = easy(200)
    rank = np.argsort(np.random.default_rng(0).random((200, 10)), axis=1)
    hard = as_labels(name, np.where(rank < 6, y[:, None], -1), y)
    wrong = rank[hard.item, hard.annotator] >= 2
    label, weight = (y[hard.item] + wrong) % 3, np.where(wrong, 0.01, 1.0)
    clf = make(name, max_epochs=15).fit(X, replace(hard, label=label, weight=weight))
    assert clf.score(X, y) > 0.75
    assert make(name, max_epochs=15).fit(X, replace(hard, label=label)).score(X, y) < 0.6


@check(everywhere)
def check_learns_from_noisy_annotators(name):
    X, Z, y = easy()
    X_new, _, y_new = easy(seed=1)
    scores = [fit(make(name, random_state=seed), X, Z, y).score(X_new, y_new) for seed in range(3)]
    assert np.mean(scores) > 0.75, scores  # single runs of madl vary from 0.63 to 0.92


@check(everywhere)
def check_half_precision_learns_as_well(name):
    X, Z, y = easy(200)
    single, half = (fit(make(name, max_epochs=6, precision=p), X, Z, y) for p in ("32-true", "bf16-mixed"))
    np.testing.assert_allclose(half.history_["loss"], single.history_["loss"], rtol=0.02)
    assert abs(half.score(X, y) - single.score(X, y)) < 0.05
    assert all(p.dtype == torch.float32 for p in half.module_.parameters())


@check(everywhere)
def check_learns_from_one_label_an_item(name):
    X, Z, y = easy(one_label=True)
    assert fit(make(name), X, Z, y).score(X, y) > 0.6


@check(one_stage)
def check_a_good_annotator_ranks_above_a_spammer(name):
    X, Z, y = easy()
    perf = fit(make(name), X, Z, y).predict_annotator_perf(X).to_numpy().mean(axis=0)
    assert perf[:6].mean() > perf[8:].mean()


@check(everywhere)
def check_save_and_load(name, tmp_path):
    X, Z, y = easy(150)
    clf = fit(make(name, max_epochs=2), X, Z, y)
    clf.save(tmp_path)
    loaded = annotmix.load(tmp_path)
    assert type(loaded) is type(clf)
    assert loaded.get_params() == clf.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    if one_stage(name):
        np.testing.assert_array_equal(loaded.predict_annotator_perf(X), clf.predict_annotator_perf(X))


@check(everywhere)
def check_clone_and_set_params(name):
    clf = make(name, lr=0.5)
    own = get_approach(name).hyper_parameters()
    changed = {key: False if isinstance(p.default, bool) else p.default for key, p in own.items()}
    clf.set_params(**changed, dropout=0.25)
    copy = clone(clf)
    assert copy.get_params() == clf.get_params()
    assert copy.dropout == 0.25
    assert set(own) <= set(copy.get_params())


@check(everywhere)
def check_a_batch_of_one_instance(name):
    module = get_approach(name)(Classifier(MLP(4, (8,)), 8, 3), 2)
    labels = Annotations.from_matrix([[-1, 2]], classes=range(3))
    module.begin(labels, np.random.default_rng(0))
    zero = torch.tensor([0])
    batch = Batch(torch.ones(1, 4), zero, torch.tensor([1]), torch.tensor([2]), zero)
    loss = module.loss(batch, np.random.default_rng(0))
    loss.backward()
    assert torch.isfinite(loss)


@check(two_stage)
def check_without_an_annotator_model_the_error_says_who_has_one(name):
    X, Z, y = easy(100)
    clf = fit(make(name, max_epochs=1), X, Z, y)
    for ask in (
        lambda: clf.predict_annotator_perf(X),
        lambda: clf.predict_annotator_proba(X),
        lambda: clf.annotator_confusion(),
    ):
        with pytest.raises(AttributeError, match=f"{name} has no annotator model.*annot-mix"):
            ask()


@check(aggregates)
def check_aggregated_labels_are_exposed_and_say_what_is_missing(name):
    X, Z, y = easy(150)
    Z[[3, 7]] = -1
    kinds = np.array(["ant", "bee", "cat"])
    items = [f"item {n}" for n in range(150)]
    words = pd.DataFrame(np.where(Z < 0, None, kinds[Z]), index=items)
    with pytest.warns(UserWarning, match="2 of 150 items"):
        clf = make(name, max_epochs=1).fit(pd.DataFrame(X, index=items), words)
    labels = clf.aggregated_labels_
    assert labels.index.tolist() == items
    assert labels[labels.isna()].index.tolist() == ["item 3", "item 7"]
    assert np.mean(labels.to_numpy() == kinds[y]) > 0.8
