import numpy as np
import pandas as pd
import pytest

from annotmix.labels import Annotations, compare_groups, posterior
from annotmix.labels.soft_labels import PSEUDO_LABELS


def crowd(opinions, per_item, seed=0, accuracy=0.85, n_annotators=15):
    """Labels drawn from a distribution per item, given wrongly with a chance of 1 - accuracy."""
    rng = np.random.default_rng(seed)
    N, C = opinions.shape
    rows = []
    for n in range(N):
        for m in rng.permutation(n_annotators)[:per_item]:
            k = rng.choice(C, p=opinions[n]) if rng.random() < accuracy else rng.integers(C)
            rows.append((n, f"a{m}", f"c{k}"))
    return pd.DataFrame(rows, columns=["item", "annotator", "label"])


def one_truth(n, C, rng):
    return np.eye(C)[rng.integers(C, size=n)]


@pytest.mark.parametrize("seed", range(3))
def test_votes_add_nothing_to_one_right_class_per_item(seed):
    labels = crowd(one_truth(300, 3, np.random.default_rng(seed)), 5, seed)
    assert not posterior(labels).soft_labels().several_truths


@pytest.mark.parametrize("seed", range(3))
def test_opinions_are_noticed_and_better_described_by_soft_labels(seed):
    opinions = np.random.default_rng(seed).dirichlet([0.4] * 3, size=400)
    given = 0.85 * opinions + 0.15 / 3
    result = posterior(crowd(opinions, 7, seed))
    soft = result.soft_labels()
    assert soft.several_truths
    assert "belongs to the items" in repr(soft)

    def distance(q):
        return np.abs(q - given).sum(axis=1).mean() / 2

    votes = pd.crosstab(result.annotations.item, result.annotations.label, normalize="index").to_numpy()
    assert distance(soft.values) < distance(votes)
    assert distance(soft.values) < distance(result.answer.q)


def test_the_formula():
    rng = np.random.default_rng(0)
    result = posterior(crowd(rng.dirichlet([0.4] * 3, size=200), 6))
    a, q, soft = result.annotations, result.answer.q, result.soft_labels()
    theta = np.full((3, 3), 1 / 3)  # one pseudo-label per class, spread evenly
    for n, k in zip(a.item, a.label, strict=True):
        theta[:, k] += q[n]
    theta /= theta.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(soft.confusion, theta)
    for n in range(5):
        votes = np.bincount(a.label[a.item == n], minlength=3)
        expected = (votes + soft.pseudo_labels * q[n] @ theta) / (
            len(a.label[a.item == n]) + soft.pseudo_labels
        )
        np.testing.assert_allclose(soft.values[n], expected)
    np.testing.assert_allclose(soft.values.sum(axis=1), 1)
    assert soft.probabilities.index.name == "item"


def test_the_likelihood_leaves_out_the_label_and_its_annotator():
    """Against a slow version that takes a label's evidence out of its item and counts the others again."""
    result = posterior(crowd(np.random.default_rng(1).dirichlet([0.3] * 3, size=80), 5))
    a, answer = result.annotations, result.answer
    rho, evidence = answer.weights.correlation, answer.confusion.log_likelihood()
    total = {kappa: [] for kappa in PSEUDO_LABELS}
    prior = {}
    for n in range(a.n_items):
        at = np.flatnonzero(a.item == n)
        prior[n] = np.log(answer.q[n]) - evidence[at].sum(axis=0) / (1 + (len(at) - 1) * rho)
    for p in range(len(a)):
        n, k = a.item[p], a.label[p]
        others = np.flatnonzero((a.item == n) & (np.arange(len(a)) != p))
        q = np.exp(prior[n] + evidence[others].sum(axis=0) / (1 + (len(others) - 1) * rho))
        q /= q.sum()
        theta = np.full((3, 3), 1 / 3)
        for other in np.flatnonzero(np.arange(len(a)) != p):
            theta[:, a.label[other]] += answer.q[a.item[other]]
        theta /= theta.sum(axis=1, keepdims=True)
        explained, votes = q @ theta[:, k], (a.label[others] == k).sum()
        for kappa in PSEUDO_LABELS:
            share = explained if np.isinf(kappa) else (votes + kappa * explained) / (len(others) + kappa)
            total[kappa].append(np.log(share))
    best = max(total, key=lambda kappa: np.mean(total[kappa]))
    gain = np.array(total[best]) - total[np.inf]
    soft = result.soft_labels()
    assert soft.pseudo_labels == best
    assert np.isfinite(best)
    assert soft.rise == pytest.approx(gain.mean() / (gain.std() / np.sqrt(len(gain))), rel=1e-6)


def test_groups_have_their_own_soft_labels():
    """Two groups read the items differently: where one says yes, the other mostly says no."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    people, models = ([f"{kind}{m}" for m in range(4)] for kind in "pm")
    rows = [(n, who, y[n]) for n in range(200) for who in people]
    rows += [(n, who, 1 if rng.random() < 0.9 else y[n]) for n in range(200) for who in models]
    result = posterior(pd.DataFrame(rows, columns=["item", "annotator", "label"]))
    of_people, of_models = result.soft_labels(people).values, result.soft_labels(models).values
    assert of_people[y == 0, 1].mean() < 0.1
    assert of_models[y == 0, 1].mean() > 0.7
    with pytest.raises(ValueError, match="Unknown annotators"):
        result.soft_labels(["nobody"])


def test_items_without_labels_and_soft_labels_as_input():
    P = np.full((30, 4, 2), np.nan)
    rng = np.random.default_rng(0)
    P[:25, :3] = rng.dirichlet([1, 1], size=(25, 3))
    soft = posterior(Annotations.from_soft(P)).soft_labels()
    np.testing.assert_allclose(soft.values.sum(axis=1), 1)
    single = posterior([["a", None], [None, "b"]]).soft_labels()
    assert np.isinf(single.pseudo_labels)
    assert single.rise == 0


def test_groups_are_compared():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=150)
    rows = [(n, f"old{m}", "yes" if y[n] else "no") for n in range(150) for m in range(3)]
    rows += [(n, f"new{m}", "yes" if y[n] and n % 3 else "no") for n in range(100) for m in range(3)]
    labels = pd.DataFrame(rows, columns=["item", "annotator", "label"])
    groups = {f"{group}{m}": group for group in ("old", "new") for m in range(3)}
    compared = compare_groups(labels, groups)
    pair = compared.agreement.loc["new", "old"]
    assert pair["n_items"] == 100
    assert pair["within_first"] == pair["within_second"] == 1
    differ = (y[:100] == 1) & (np.arange(100) % 3 == 0)
    assert pair["between"] == pytest.approx(1 - differ.mean())
    assert set(compared.items.index[: differ.sum()]) == set(np.flatnonzero(differ))
    assert compared.items.iloc[0][["new", "old"]].tolist() == ["no", "yes"]
    old = posterior(labels[labels["annotator"].str.startswith("old")]).soft_labels()
    np.testing.assert_allclose(compared.soft_labels.loc["old"], old.values)
    assert "100 common items" in repr(compared)
    with pytest.raises(ValueError, match="two groups"):
        compare_groups(labels, {"old0": "old"})
