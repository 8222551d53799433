"""Counted confusion matrices against loops over labels."""

import numpy as np
import pytest
import torch

from annotmix.labels.annotations import Annotations
from annotmix.labels.groups import Groups
from annotmix.networks import counting
from annotmix.networks.counting import CountedConfusion, Labelled

N, M, C, D = 40, 6, 4, 3
KAPPA, KAPPA_LEVEL = 2.0, 5.0


@pytest.fixture(params=[*range(3), "soft"])
def crowd(request):
    rng = np.random.default_rng(0 if request.param == "soft" else request.param)
    Z = np.where(rng.random((N, M)) < 0.4, rng.integers(C, size=(N, M)), -1)
    Z[:, M - 1] = -1  # an annotator without labels
    q = rng.dirichlet(np.full(C, 0.3), size=N)
    annotations = Annotations.from_matrix(Z, classes=range(C))
    if request.param == "soft":
        P = np.where(Z[:, :, None] < 0, np.nan, rng.dirichlet(np.full(C, 0.5), size=Z.shape))
        # weights that single precision holds
        annotations = Annotations.from_soft(np.round(64 * P) / 64)
    return annotations, q, rng.integers(D, size=N)


def entries(annotations):
    """Item, annotator, label and weight of every label, without what a distribution gives to all classes."""
    a = annotations
    if a.weight is None:
        return list(zip(a.item, a.annotator, a.label, np.ones(len(a)), strict=True))
    P = np.zeros((N, M, C))
    P[a.item, a.annotator, a.label] = a.weight
    P -= P.min(axis=2, keepdims=True)
    return [(n, m, k, P[n, m, k]) for n, m, k in zip(a.item, a.annotator, a.label, strict=True)]


def counted(annotations, q, level):
    confusion = CountedConfusion(M, C, D, KAPPA, KAPPA_LEVEL).double()
    confusion.count(Labelled(annotations, torch.device("cpu")), torch.from_numpy(q), torch.from_numpy(level))
    return confusion


def theta(annotations, q, level, m, d, without=None):
    """θ_md before its rows are normalised, and normalised; item `without` does not count for annotator m."""
    said, said_here = np.zeros((C, C)), np.zeros((C, C))
    everyone = np.zeros((D, C, C))
    for n, who, k, w in entries(annotations):
        everyone[level[n], :, k] += w * q[n]
        if who == m and n != without:
            said[:, k] += w * q[n]
            said_here[:, k] += w * q[n] if level[n] == d else 0
    common = everyone.sum(axis=0) + 1 / C + 2 * np.eye(C)
    common /= common.sum(axis=1, keepdims=True)
    here = everyone[d] + KAPPA_LEVEL * common
    ratio = here / here.sum(axis=1, keepdims=True) / common
    own = (said + KAPPA * common) / (said.sum(axis=1, keepdims=True) + KAPPA)
    raw = said_here + KAPPA_LEVEL * own * ratio
    return raw / (said_here.sum(axis=1, keepdims=True) + KAPPA_LEVEL), raw / raw.sum(axis=1, keepdims=True)


def test_confusion_matrices(crowd):
    confusion = counted(*crowd)
    pairs = [(m, d) for m in range(M) for d in range(D)]
    found = confusion.log_confusion(*torch.tensor(pairs).T).exp().numpy()
    for (m, d), matrix in zip(pairs, found, strict=True):
        np.testing.assert_allclose(matrix, theta(*crowd, m, d)[1], rtol=1e-9)


def item_sums(confusion):
    """What the labels of every item say, twice as loud, beside nothing else."""
    q = confusion.q
    return confusion.item_sums(torch.zeros_like(q), torch.full((len(q),), 2.0).to(q)).numpy()


@pytest.mark.parametrize("most", [1, 60, 10**6])
def test_likelihood_of_labels_without_their_own_item(crowd, most, monkeypatch):
    monkeypatch.setattr(counting, "PIECE", most)
    annotations, q, level = crowd
    expected = np.zeros((N, C))
    for n, m, k, w in entries(annotations):
        expected[n] += 2 * w * np.log(theta(annotations, q, level, m, level[n], n)[0][:, k])
    confusion = counted(*crowd)
    np.testing.assert_allclose(item_sums(confusion), expected, rtol=1e-9)


def test_labels_of_copies_are_less_evidence(crowd):
    annotations, q, level = crowd
    groups = Groups.of_pairs(M, np.array([0, 1]), np.array([1, 3]), np.array([1.0, 0.5]))
    share = groups.shares(annotations)
    expected = np.zeros((N, C))
    for (n, m, k, w), own in zip(entries(annotations), share, strict=True):
        expected[n] += 2 * own * w * np.log(theta(annotations, q, level, m, level[n], n)[0][:, k])
    confusion = CountedConfusion(M, C, D, KAPPA, KAPPA_LEVEL).double()
    labels = Labelled(annotations, torch.device("cpu"), groups)
    confusion.count(labels, torch.from_numpy(q), torch.from_numpy(level))
    np.testing.assert_allclose(item_sums(confusion), expected, rtol=1e-6)


def test_without_difficulties_an_annotator_has_one_matrix(crowd):
    annotations, q, _ = crowd
    confusion = CountedConfusion(M, C, 1, KAPPA, KAPPA_LEVEL).double()
    confusion.count(Labelled(annotations, torch.device("cpu")), torch.from_numpy(q))
    matrices = confusion.log_confusion(torch.arange(M), None).exp().numpy()
    sums = np.zeros((N, C))
    common = np.full((C, C), 1 / C) + 2 * np.eye(C)
    for n, _, k, w in entries(annotations):
        common[:, k] += w * q[n]
    common /= common.sum(axis=1, keepdims=True)
    for n, m, z, w in entries(annotations):
        said, without = np.zeros((C, C)), np.zeros((C, C))
        for i, who, k, v in entries(annotations):
            if who == m:
                said[:, k] += v * q[i]
                without[:, k] += v * q[i] if i != n else 0
        expected = (without + KAPPA * common) / (without.sum(axis=1, keepdims=True) + KAPPA)
        sums[n] += 2 * w * np.log(expected[:, z])
        whole = (said + KAPPA * common) / (said.sum(axis=1, keepdims=True) + KAPPA)
        np.testing.assert_allclose(matrices[m], whole, rtol=1e-9)
    np.testing.assert_allclose(item_sums(confusion), sums, rtol=1e-9)


def test_memory_grows_with_labels_not_with_annotators_times_classes_squared():
    n_annotators, n_classes = 20_000, 300  # a dense table would hold 1.8e9 numbers
    rng = np.random.default_rng(0)
    annotations = Annotations(
        np.arange(100), rng.integers(n_annotators, size=100), rng.integers(n_classes, size=100),
        range(100), range(n_annotators), range(n_classes),
    )  # fmt: skip
    confusion = CountedConfusion(n_annotators, n_classes, 1)
    confusion.count(Labelled(annotations, torch.device("cpu")), torch.full((100, n_classes), 1 / n_classes))
    assert sum(buffer.numel() for buffer in confusion.buffers()) < 3 * (n_annotators + 200) * n_classes


def test_counts_survive_a_state_dict_of_another_length(crowd):
    confusion = counted(*crowd)
    fresh = CountedConfusion(M, C, D, KAPPA, KAPPA_LEVEL).double()
    fresh.load_state_dict(confusion.state_dict())
    asked = torch.arange(M), torch.arange(M) % D
    assert torch.equal(fresh.log_confusion(*asked), confusion.log_confusion(*asked))


def test_nobody_has_said_anything_yet():
    matrix = CountedConfusion(M, C, D).log_confusion(torch.tensor([0]), torch.tensor([2])).exp()[0]
    expected = (np.eye(C) * 2 + 1 / C) / 3
    np.testing.assert_allclose(matrix.numpy(), expected, rtol=1e-6)
