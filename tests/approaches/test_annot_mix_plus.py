"""annot-mix-plus: its loss and its refinement against loops, and what it promises."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import annotmix
from annotmix.approaches import Batch, get_approach
from annotmix.labels.annotations import Annotations
from annotmix.labels.shrunken import shrunken_dawid_skene
from annotmix.networks import MLP, Classifier, mixup
from annotmix.networks.counting import CountedConfusion, Labelled
from annotmix.networks.features import Features

N, D, H, C, M, K = 30, 4, 6, 3, 5, 3
CPU = torch.device("cpu")


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).astype(np.float32)
    Z = np.where(rng.random((N, M)) < 0.5, rng.integers(C, size=(N, M)), -1)
    Z[3] = -1  # an item without labels
    return X, Annotations.from_matrix(Z, classes=range(C))


def begun(annotations, dropout=0.0, **params):
    torch.manual_seed(0)
    model = get_approach("annot-mix-plus")(
        Classifier(MLP(D, (H,), dropout), H, C), M, **{"folds": K, "levels": 2, **params}
    )
    model.begin(annotations, np.random.default_rng(1))
    with torch.no_grad():  # so that the classifiers differ
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def batch_of(X, annotations, items):
    keep = np.isin(annotations.item, items)
    row = np.searchsorted(items, annotations.item[keep])
    parts = (row, annotations.annotator[keep], annotations.label[keep], items)
    return Batch(torch.from_numpy(X[items]), *map(torch.from_numpy, parts))


# ---------------------------------------------------------------- loss


@pytest.mark.parametrize("alpha", [0.0, 0.4])
@pytest.mark.parametrize("folds", [0, K])
def test_loss_is_that_of_the_final_classifier(problem, alpha, folds):
    X, annotations = problem
    model = begun(annotations, alpha=alpha, folds=folds)
    items = np.array([0, 2, 5, 7, 11, 12, 20, 21])
    found = model.loss(batch_of(X, annotations, items), np.random.default_rng(3))
    x, q = X[items], model.q.numpy()[items]
    if alpha:
        rng = np.random.default_rng(3)
        partner = mixup.pair_within(model.fold.numpy()[items], rng)
        lam = mixup.coefficients(len(items), alpha, rng).numpy()[:, None]
        assert (model.fold[items][partner] == model.fold[items]).all()
        x, q = lam * x + (1 - lam) * x[partner], lam * q + (1 - lam) * q[partner]
    network, x = model.classifier, torch.from_numpy(x)
    log_p = network.stack(x)[:, 0] if folds else network.log_proba(network.features(x))
    log_p = log_p.detach().numpy()
    expected = -sum(q[i, c] * log_p[i, c] for i in range(len(items)) for c in range(C)) / len(items)
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_no_classifier_learns_from_the_fold_that_it_must_not_see(problem):
    """Nor from mixes with it: other targets there leave its gradient as it was."""
    X, annotations = problem
    model, items = begun(annotations), np.flatnonzero(annotations.labels_per_item)

    def gradients():
        model.zero_grad()
        model.loss(batch_of(X, annotations, items), np.random.default_rng(3)).backward()
        own, *others = model.classifier.stack.head.weight.grad.clone()
        return others, own

    before, own_before = gradients()
    hidden = 1
    model.q[model.fold == hidden] = torch.eye(C)[0]
    after, own_after = gradients()
    assert torch.equal(before[hidden], after[hidden])
    assert not torch.equal(own_before, own_after)
    for k in set(range(K)) - {hidden}:
        assert not torch.allclose(before[k], after[k])


# ---------------------------------------------------------------- refinement


@pytest.mark.parametrize("weighted", [False, True])
def test_the_first_targets_are_what_labels_alone_say(problem, weighted):
    _, annotations = problem
    if weighted:
        weight = np.random.default_rng(0).integers(1, 5, size=len(annotations)) / 4
        annotations = replace(annotations, weight=weight)
    alone = shrunken_dawid_skene(annotations, (np.zeros(0, int), np.zeros(0, int)))
    np.testing.assert_allclose(begun(annotations).q.numpy(), alone.q, atol=1e-6)


@pytest.mark.parametrize("prior", ["shrunken", "labels", "equal", "none"])
def test_refinement(problem, prior):
    X, annotations = problem
    model = begun(annotations, prior=prior, beta=0.3, dropout=0.5)
    model.refining.fill_(True)
    q, share = model.q.double(), model.share.double().numpy()
    model.after_epoch(Features(X, CPU), 0.5)

    model.eval()
    every = model.classifier.stack(torch.from_numpy(X))[:, 1:].detach().double()
    log_p = torch.stack([every[n, model.fold[n]] for n in range(N)])
    entropy = -(log_p.exp() * log_p).sum(dim=1)
    known = torch.from_numpy(annotations.labels_per_item > 0)
    level = (entropy > entropy[known].median()).long()  # two levels; the median itself is of the lower one
    confusion, labels = CountedConfusion(M, C, 2).double(), Labelled(annotations, CPU)
    confusion.count(labels, q, level)
    said = confusion.item_sums(torch.zeros(N, C).double(), torch.ones(N).double()).numpy()
    variance = np.var(np.log(share))
    s = {"shrunken": max(0.0, 1 - 0.06 / variance), "labels": 1.0, "equal": 0.0, "none": None}[prior]
    mean = log_p.exp()[known].mean(dim=0).numpy()
    for n in np.flatnonzero(known):
        joint = log_p[n].numpy().copy()
        if s is not None:
            joint += s * np.log(share) - np.log(mean)
        joint += max(0.3, 1 / annotations.labels_per_item[n]) * said[n]
        expected = np.exp(joint - np.logaddexp.reduce(joint))
        np.testing.assert_allclose(model.q[n].numpy(), expected, atol=1e-4)


def test_refinement_begins_after_a_fifth_where_the_classifiers_help(problem, monkeypatch):
    X, annotations = problem
    model, asked = begun(annotations), []
    answers = iter([False, True])
    monkeypatch.setattr(model.evidence, "helped_by", lambda p: asked.append(p) or next(answers))
    before = model.q.clone()
    for done in (0.19, 0.2, 0.3, 0.39):
        model.after_epoch(Features(X, CPU), done)
        assert torch.equal(model.q, before)
        assert len(asked) == (done >= 0.2)
    for done in (0.4, 0.6, 1.0):
        model.after_epoch(Features(X, CPU), done)
        assert not torch.equal(model.q, before)
    assert len(asked) == 2
    np.testing.assert_allclose(asked[0].sum(axis=1), 1, atol=1e-5)


def test_gold_stays_certain(problem):
    X, annotations = problem
    model = begun(annotations)
    model.gold = (np.array([3, 7]), np.array([2, 0]))  # one of them has no label
    model.begin(annotations, np.random.default_rng(1))
    model.refining.fill_(True)
    for _ in range(2):
        assert model.q[3].tolist() == [0, 0, 1]
        assert model.q[7].tolist() == [1, 0, 0]
        model.after_epoch(Features(X, CPU), 0.5)


def test_weights_reach_the_refinement(problem):
    X, hard = problem
    weight = np.random.default_rng(0).integers(1, 5, size=len(hard)) / 4
    model, other = begun(replace(hard, weight=weight)), begun(hard)
    other.q = model.q.clone()
    for one in (model, other):
        one.refining.fill_(True)
        one.after_epoch(Features(X, CPU), 0.5)
    assert not torch.allclose(model.q, other.q, atol=1e-3)


def test_what_is_said_about_an_item_comes_from_the_network_that_has_not_seen_it(problem):
    X, annotations = problem
    model = begun(annotations)
    found = model.unseen_log_proba(Features(X, CPU))
    model.eval()
    every = model.classifier.stack(torch.from_numpy(X))[:, 1:]
    for n in range(N):
        torch.testing.assert_close(found[n], every[n, model.fold[n]])
    assert begun(annotations, folds=0).unseen_log_proba(Features(X, CPU)) is None


def test_a_single_label_counts_in_full_and_several_share():
    model = get_approach("annot-mix-plus")(Classifier(MLP(D, (H,)), H, C), M, beta=0.4)
    weight = model._label_weight(torch.tensor([0, 1, 2, 3, 10]))
    assert weight.tolist() == pytest.approx([1, 1, 0.5, 0.4, 0.4])


# ---------------------------------------------------------------- as an estimator


def classifier(**params):
    return annotmix.AnnotMixPlusClassifier(
        **{"hidden": (16,), "dropout": 0.3, "max_epochs": 6, "random_state": 0, "progress": False} | params
    )


def test_only_the_final_classifier_is_kept_unless_all_are_averaged(noisy, tmp_path):
    X, Z, y = noisy
    one = classifier().fit(X, Z, validation=(X, y))
    all_of_them = classifier(ensemble=True).fit(X, Z, validation=(X, y))
    assert not any("stack" in name for state in one.states_.values() for name in state)
    assert any("stack" in name for name in all_of_them.states_["best"])
    assert not np.array_equal(one.predict_proba(X), all_of_them.predict_proba(X))
    for number, clf in enumerate((one, all_of_them)):
        for which in ("best", "last"):
            clf.use(which).save(tmp_path / str(number))
            loaded = annotmix.load(tmp_path / str(number))
            np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
            np.testing.assert_array_equal(
                loaded.consensus(X, Z)["probability"], clf.consensus(X, Z)["probability"]
            )


@pytest.mark.parametrize("stopped", [1, 3])
def test_a_resumed_run_ends_with_the_same_bits(noisy, tmp_path, stopped, monkeypatch):
    X, Z, _ = noisy
    whole = classifier().fit(X, Z)
    approach = get_approach("annot-mix-plus")
    original, calls = approach.after_epoch, []

    def failing(self, *args):
        calls.append(1)
        if len(calls) > stopped:
            raise KeyboardInterrupt
        return original(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(approach, "after_epoch", failing)
        with pytest.raises(KeyboardInterrupt):
            classifier(checkpoint=tmp_path, checkpoint_every=1).fit(X, Z)
    resumed = classifier(checkpoint=tmp_path, checkpoint_every=1).fit(X, Z)
    for name, tensor in whole.module_.state_dict().items():
        assert torch.equal(tensor, resumed.module_.state_dict()[name]), name


def test_two_epochs_are_enough_for_difficulties(noisy):
    X, Z, _ = noisy
    module = classifier(max_epochs=2).fit(X, Z).module_
    assert (module.cuts < math.log(len(np.unique(Z)) - 1)).all()
    assert (module.cuts.diff() > 0).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": -1}, "alpha"),
        ({"beta": 1.5}, "beta"),
        ({"folds": 1}, "folds must be 0"),
        ({"kappa": 0}, "kappa"),
        ({"levels": 0}, "levels"),
        ({"prior": "votes"}, "prior must be"),
    ],
)
def test_a_wrong_parameter_is_named(noisy, params, message):
    X, Z, _ = noisy
    with pytest.raises(ValueError, match=message):
        classifier(**params).fit(X, Z)


def test_a_backbone_of_ones_own(noisy):
    X, Z, y = noisy
    backbone = torch.nn.Sequential(torch.nn.Linear(X.shape[1], 16), torch.nn.Tanh())
    assert classifier(backbone=backbone, max_epochs=15).fit(X, Z).score(X, y) > 0.6
