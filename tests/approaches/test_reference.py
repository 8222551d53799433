"""Every approach against a slow second implementation, in double precision, from the formulas alone.

A reference gets the parameters as a dictionary `w` of arrays. What an approach shuts off from the gradient is
computed from a second dictionary, `still`: equal to `w` for values, left in place while `w` is nudged for
the derivatives.
"""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import annotmix
from annotmix.approaches import Batch, get_approach
from annotmix.networks import Classifier, mixup

B, C, M, D, H = 5, 3, 4, 5, 6
OURS = [n for n in annotmix.list_approaches() if get_approach(n).__module__.startswith("annotmix.approaches")]
#: annot-mix-plus goes through all labels before it trains: a batch is not enough for it.
NAMES = [n for n in OURS if n != "annot-mix-plus"]
ANNOTATOR_MODELS = [n for n in NAMES if get_approach(n).perf is not None]


# ---------------------------------------------------------------- building blocks


class Example(NamedTuple):
    """A mini-batch as arrays: instances (B, D), and item, annotator, label (and weight) of its P labels."""

    x: np.ndarray
    item: np.ndarray
    annotator: np.ndarray
    label: np.ndarray
    weight: np.ndarray | None = None


def linear(w, name, x):
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def embedding(w, name, a):
    """Linear(M → d) of one-hot annotators or mixes of them; its weight is stored as (M, d)."""
    return a @ w[f"{name}.weight"] + w[f"{name}.bias"]


def batch_norm(w, name, x, train):
    mean, var = w[f"{name}.running_mean"], w[f"{name}.running_var"]
    if train:
        mean = sum(x) / len(x)
        var = sum((row - mean) ** 2 for row in x) / len(x)
    return (x - mean) / np.sqrt(var + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]


def relu(x):
    return np.where(x > 0, x, 0.0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(logits):
    """Over the last axis."""
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def one_hot(index, n):
    return np.array([[float(i == j) for j in range(n)] for i in index])


def features(w, x):
    return linear(w, "classifier.backbone", x)


def classify(w, h):
    return softmax(linear(w, "classifier.head", h))


def expand(batch):
    """x, one-hot annotators and one-hot labels, times their weights, of all P triples."""
    z = one_hot(batch.label, C) * np.array(weights(batch))[:, None]
    return batch.x[batch.item], one_hot(batch.annotator, M), z


def weights(batch):
    return [1.0] * len(batch.label) if batch.weight is None else batch.weight.tolist()


def blend(values, partner, lam):
    return np.array(
        [lam[i] * values[i] + (1 - lam[i]) * values[partner[i]] for i in range(len(values))]
    ).reshape(values.shape)


def cross_entropies(target, probabilities):
    """−Σ_k t_k log q_k of every row."""
    return [
        -sum(t * math.log(q) for t, q in zip(ts, qs, strict=True) if t)
        for ts, qs in zip(target, probabilities, strict=True)
    ]


def mean(values):
    return sum(values) / len(values)


def marginal(p, matrices):
    """Σ_c p_c Π_ck of every row."""
    return np.array(
        [
            [sum(pi[c] * Pi[c, k] for c in range(C)) for k in range(C)]
            for pi, Pi in zip(p, matrices, strict=True)
        ]
    )


# ---------------------------------------------------------------- what annotators say: p_annot, (P, C)
# of class probabilities p, features h, and annotators a as one-hot rows (or mixes of two)


def annot_mix_says(w, p, h, a, train=False):
    net = "annotator_model"
    u = np.hstack([linear(w, f"{net}.embed_instance", h), embedding(w, f"{net}.embed_annotator", a)])
    u = relu(batch_norm(w, f"{net}.trunk.2", linear(w, f"{net}.trunk.1", u), train))
    return marginal(p, confusion_matrices(linear(w, f"{net}.head", u)))


def confusion_matrices(outputs):
    """Π, (P, C, C), of the outputs of a head: C² logits, label first, or a diagonal and ways to go wrong."""
    if outputs.shape[1] == C * C:
        return softmax(outputs.reshape(-1, C, C).transpose(0, 2, 1))
    R = (outputs.shape[1] // C - 1) // 2
    stay = sigmoid(outputs[:, :C])
    A = softmax(outputs[:, C : C + C * R].reshape(-1, C, R))
    B = softmax(outputs[:, C + C * R :].reshape(-1, R, C))
    return np.array([np.diag(s) + np.diag(1 - s) @ a @ b for s, a, b in zip(stay, A, B, strict=True)])


def madl_says(w, p, h, a, train=False):
    e_a, e_x = embedding(w, "embed_annotator", a), linear(w, "embed_instance", h)
    s = e_a + e_x
    o = np.array([[row @ W @ row for W in w["outer"]] for row in s])
    u = relu(batch_norm(w, "trunk.1", linear(w, "trunk.0", np.hstack([e_a, e_x, o])), train))
    u = relu(batch_norm(w, "trunk.4", linear(w, "trunk.3", u), train) + e_a)
    return marginal(p, confusion_matrices(linear(w, "head", u)))


def table_says(w, p, h, a):
    return marginal(p, [softmax(w["A"][m]) for m in a.argmax(axis=1)])


def layer_says(w, p, h, a):
    return np.array([softmax(pi @ w["W"][m]) for pi, m in zip(p, a.argmax(axis=1), strict=True)])


def conal_says(w, p, h, a):
    v, u = linear(w, "embed_instance", h), embedding(w, "embed_annotator", a)
    said = []
    for i, m in enumerate(a.argmax(axis=1)):
        omega = sigmoid(v[i] @ u[i] / math.sqrt(v[i] @ v[i]) / math.sqrt(u[i] @ u[i]))
        said.append(softmax(omega * (p[i] @ w["common"]) + (1 - omega) * (p[i] @ w["individual"][m])))
    return np.array(said)


def union(w, p_row):
    """p_union[(m, k)], shape (M, C), of one instance; T is stored as [annotator, true class, label]."""
    S = np.empty((M, C, C))  # annotator, label, true class
    for c in range(C):
        total = sum(math.exp(w["T"][m, c, k]) for m in range(M) for k in range(C))
        for m, k in itertools.product(range(M), range(C)):
            S[m, k, c] = math.exp(w["T"][m, c, k]) / total
    np.testing.assert_allclose(S.sum(axis=(0, 1)), 1)
    return S @ p_row


def union_says(w, p, h, a):
    own = [union(w, pi)[m] for pi, m in zip(p, a.argmax(axis=1), strict=True)]
    return np.array([row / row.sum() for row in own])


def crowd_ar_reliability(w, p, h, a):
    d = sigmoid(linear(w, "difficulty.2", sigmoid(linear(w, "difficulty.0", h))))
    skill = np.array([sigmoid(w["expertise"][m]) for m in a.argmax(axis=1)]) - d
    return sigmoid(linear(w, "reliability", skill * p))[:, 0]


# ---------------------------------------------------------------- the losses


def annot_mix_loss(
    w, still, batch, rng, *, alpha=1.0, pairing="across", coefficient="triple", confusion_rank=None
):
    x, a, z = expand(batch)
    if alpha > 0:
        n = len(x)
        partner = mixup.pair_across(n, rng) if pairing == "across" else mixup.pair_within(batch.item, rng)
        lam = mixup.coefficients(n, alpha, rng, per_batch=coefficient == "batch").double().numpy()
        x, a, z = (blend(part, partner, lam) for part in (x, a, z))
    said = annot_mix_says(w, classify(w, features(w, x)), features(still, x), a, train=True)
    return mean(cross_entropies(z, said))


def two_stage_loss(w, still, batch, rng, *, alpha=0.0):
    x, _, z = expand(batch)
    if alpha > 0:
        partner = mixup.pair_across(len(x), rng)
        lam = mixup.coefficients(len(x), alpha, rng).double().numpy()
        x, z = blend(x, partner, lam), blend(z, partner, lam)
    return mean(cross_entropies(z, classify(w, features(w, x))))


def mixup_loss(w, still, batch, rng, *, alpha=1.0):
    return two_stage_loss(w, still, batch, rng, alpha=alpha)


def label_loss(says):
    """Mean cross-entropy of all labels, for annotators who see h."""

    def loss(w, still, batch, rng, **params):
        x, a, z = expand(batch)
        h = features(w, x)
        return mean(cross_entropies(z, says(w, classify(w, h), h, a)))

    return loss


def trace_reg_loss(w, still, batch, rng, *, regularization=0.01):
    traces = [sum(softmax(A)[c, c] for c in range(C)) for A in w["A"]]
    return label_loss(table_says)(w, still, batch, rng) + regularization * mean(traces)


def volume(V):
    """R = −log det(VᵀV) of a matrix with three columns, its determinant in exact fractions; 0 if dropped."""
    V = [[Fraction(float(v)) for v in row] for row in V]
    G = [[sum(row[i] * row[j] for row in V) for j in range(3)] for i in range(3)]
    (a, b, c), (d, e, f), (g, h, i) = G
    det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    if det == 0:
        return 0.0
    R = math.log(det.denominator) - math.log(det.numerator)
    return R if R <= 100 else 0.0


def geo_reg_f_volume(w, batch):
    return volume(classify(w, features(w, batch.x)))


def geo_reg_w_volume(w, batch):
    return volume([Pi[:, k] for Pi in map(softmax, w["A"]) for k in range(C)])


def geo_reg_f_loss(w, still, batch, rng, *, regularization=1e-3):
    return label_loss(table_says)(w, still, batch, rng) + regularization * geo_reg_f_volume(w, batch)


def geo_reg_w_loss(w, still, batch, rng, *, regularization=1e-3):
    return label_loss(table_says)(w, still, batch, rng) + regularization * geo_reg_w_volume(w, batch)


def conal_loss(w, still, batch, rng, *, regularization=1e-5, **params):
    distances = [math.sqrt(((W - w["common"]) ** 2).sum()) for W in w["individual"]]
    return label_loss(conal_says)(w, still, batch, rng) - regularization * sum(distances)


def union_net_loss(w, still, batch, rng, **params):
    p = classify(w, features(w, batch.x))
    labels = zip(batch.item, batch.annotator, batch.label, weights(batch), strict=True)
    return -sum(v * math.log(union(w, p[n])[m, z]) for n, m, z, v in labels) / len(batch.x)


def madl_weights(w, still):
    e, gamma = embedding(still, "embed_annotator", np.eye(M)), math.exp(w["log_gamma"])
    s = [sum(math.exp(-gamma * ((e[m] - e[j]) ** 2).sum()) for j in range(M)) for m in range(M)]
    return [M * (1 / s[m]) / sum(1 / s[j] for j in range(M)) for m in range(M)]


def madl_loss(w, still, batch, rng, *, shape=1.25, rate=0.25, **params):
    x, a, z = expand(batch)
    h = features(w, x)
    weights, nll = madl_weights(w, still), cross_entropies(z, madl_says(w, classify(w, h), h, a, train=True))
    weighted = [weights[m] * value for m, value in zip(batch.annotator, nll, strict=True)]
    return mean(weighted) - stats.gamma.logpdf(math.exp(w["log_gamma"]), shape, scale=1 / rate)


def crowd_ar_loss(w, still, batch, rng, *, balance=0.9, **params):
    x, a, _ = expand(batch)
    p = classify(w, features(w, x))
    r, said = crowd_ar_reliability(w, p, features(still, x), a), layer_says(w, p, None, a)
    total = 0.0
    for i, (label, v) in enumerate(zip(batch.label, weights(batch), strict=True)):
        s = [r[i] * float(k == label) + (1 - r[i]) / C for k in range(C)]
        agrees = float(np.argmax(p[i]) == label)
        total += v * balance * -sum(s[k] * math.log(said[i, k]) for k in range(C))
        total += v * (1 - balance) * -(agrees * math.log(r[i]) + (1 - agrees) * math.log(1 - r[i]))
    return total / len(batch.label)


class Reference(NamedTuple):
    """What the formulas give: loss, p_annot, the definition of p_perf, and sets of options to try."""

    loss: Callable[..., float]
    says: Callable[..., np.ndarray] | None = None
    perf: str | None = None
    options: tuple[dict[str, Any], ...] = ({},)


MIXING = ({}, {"alpha": 0.0}, {"alpha": 0.3})
VOLUME = ({}, {"regularization": 0.5}, {"regularization": 0.0})
REFERENCES = {
    "annot-mix": Reference(
        annot_mix_loss,
        annot_mix_says,
        "diagonal",
        (
            *MIXING,
            {"pairing": "within"},
            {"coefficient": "batch"},
            {"pairing": "within", "coefficient": "batch", "alpha": 0.5},
            {"confusion_rank": 2},
        ),
    ),
    "conal": Reference(
        conal_loss, conal_says, "agreement", ({}, {"regularization": 0.3}, {"n_dim": 2}, {"published": True})
    ),
    "crowd-ar": Reference(
        crowd_ar_loss,
        layer_says,
        "reliability",
        ({}, {"balance": 0.4}, {"n_dim": 7}, {"published": True}),
    ),
    "crowd-layer": Reference(label_loss(layer_says), layer_says, "agreement"),
    "ds-mixup": Reference(mixup_loss, options=MIXING),
    "geo-reg-f": Reference(geo_reg_f_loss, table_says, "diagonal", VOLUME),
    "geo-reg-w": Reference(geo_reg_w_loss, table_says, "diagonal", VOLUME),
    "madl": Reference(
        madl_loss,
        madl_says,
        "diagonal",
        ({}, {"shape": 2.0, "rate": 1.5}, {"n_dim": 3}, {"published": True}),
    ),
    "mv-base": Reference(two_stage_loss),
    "mv-mixup": Reference(mixup_loss, options=MIXING),
    "trace-reg": Reference(trace_reg_loss, table_says, "diagonal", ({}, {"regularization": 0.5})),
    "true-base": Reference(two_stage_loss),
    "union-net": Reference(union_net_loss, union_says, "agreement", ({}, {"epsilon": 0.2})),
}


def reference(name):
    assert name in REFERENCES, f"{name} has no slow implementation here"
    return REFERENCES[name]


OPTIONS = [
    pytest.param(name, params, id=f"{name}-{params}")
    for name in NAMES
    for params in (REFERENCES[name].options if name in REFERENCES else ({},))
]


# ---------------------------------------------------------------- models and batches


@pytest.fixture
def double(monkeypatch):
    """The approaches lift half precision with `Tensor.float`; without it, double precision stays double."""
    monkeypatch.setattr(torch.Tensor, "float", lambda self: self)


def make(name, seed=0, n_annotators=M, n_classes=C, **params):
    """A model as it starts, without dropout."""
    torch.manual_seed(seed)
    model = get_approach(name)(Classifier(nn.Linear(D, H), H, n_classes), n_annotators, **params)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def perturbed(name, seed=0, dtype=torch.float64, **params):
    """A model of which nothing has its first value any more."""
    model = make(name, seed, **params)
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.5 * torch.randn(parameter.shape, generator=g)
        for key, buffer in model.named_buffers():
            if key.endswith("running_mean"):
                buffer += torch.randn(buffer.shape, generator=g)
            elif key.endswith("running_var"):
                buffer *= torch.randn(buffer.shape, generator=g).exp()
    return model.to(dtype)


def arrays(model):
    return {key: value.detach().double().numpy().copy() for key, value in model.state_dict().items()}


def example(name, seed=0, counts=(3, 1, 4, 2, 1)):
    """Five instances with one to four labels, or with one for an approach that aggregates first."""
    rng = np.random.default_rng(seed)
    if get_approach(name).perf is None:
        counts = (1,) * len(counts)
    item = np.repeat(np.arange(len(counts)), counts)
    annotator = np.concatenate([rng.permutation(M)[:count] for count in counts])
    return Example(rng.normal(size=(len(counts), D)), item, annotator, rng.integers(C, size=len(item)))


def tensors(batch, dtype=torch.float64):
    weight = None if batch.weight is None else torch.from_numpy(batch.weight).to(dtype)
    return Batch(torch.from_numpy(batch.x).to(dtype), *map(torch.from_numpy, batch[1:4]), weight=weight)


def soft(batch, seed=0):
    """The batch with a weight for every label, and a second label of its annotator for every other one."""
    rng = np.random.default_rng(seed)
    twice = np.sort(np.r_[np.arange(len(batch.label)), np.arange(0, len(batch.label), 2)])
    label = batch.label[twice]
    label[1:][np.diff(twice) == 0] = (label[1:][np.diff(twice) == 0] + 1) % C
    return Example(batch.x, batch.item[twice], batch.annotator[twice], label, rng.random(len(twice)))


def questions(seed=0):
    """Features of eight instances, and an annotator for each, as tensors and as arrays."""
    rng = np.random.default_rng(seed)
    h, annotator = rng.normal(size=(8, H)), np.arange(8) % M
    return torch.from_numpy(h), torch.from_numpy(annotator), h, one_hot(annotator, M)


# ---------------------------------------------------------------- losses


@pytest.mark.parametrize("name", sorted(set(OURS) - set(NAMES)))
def test_an_approach_without_a_reference_here_has_a_file_of_its_own(name):
    assert Path(__file__).with_name(f"test_{name.replace('-', '_')}.py").exists()


@pytest.mark.parametrize("name", NAMES)
def test_every_approach_has_a_reference(name):
    ref = reference(name)
    assert ref.perf == get_approach(name).perf
    tried = {key for params in ref.options for key in params}
    untried = set(get_approach(name).hyper_parameters()) - tried
    # a starting value alone; test_annot_mix.py; test_unseen.py
    assert untried <= {"eta", "mix", "annotator_identity"}, untried


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("name", "params"), OPTIONS)
def test_loss(name, params, seed):
    model, batch = perturbed(name, seed, **params), example(name, seed)
    found = model.loss(tensors(batch), np.random.default_rng(seed))
    w = arrays(model)
    expected = reference(name).loss(w, w, batch, np.random.default_rng(seed), **params)
    assert found.dtype == torch.float64
    assert found.shape == ()
    # λ is drawn in single precision, and so is the 1 − λ of vanilla mixup
    single = reference(name).loss is mixup_loss
    assert found.item() == pytest.approx(expected, rel=1e-7 if single else 1e-10)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("name", "params"), OPTIONS)
def test_loss_of_soft_labels(name, params):
    model, batch = perturbed(name, **params), soft(example(name))
    found = model.loss(tensors(batch), np.random.default_rng(0))
    w = arrays(model)
    expected = reference(name).loss(w, w, batch, np.random.default_rng(0), **params)
    assert found.item() == pytest.approx(expected, rel=1e-7 if reference(name).loss is mixup_loss else 1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_a_label_of_weight_two_counts_twice(name):
    batch = tensors(example(name), torch.float32)
    ones = torch.ones(len(batch.label))

    def loss(*weight):
        return perturbed(name, dtype=torch.float32).loss(
            batch._replace(weight=weight[0] if weight else None), np.random.default_rng(0)
        )

    plain, once, twice, thrice = loss(), *(loss(ones + n * (torch.arange(len(ones)) == 1)) for n in range(3))
    assert torch.equal(plain, once)
    assert abs(twice - once) > 1e-4
    torch.testing.assert_close(thrice - twice, twice - once, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(("name", "params"), OPTIONS)
def test_loss_in_single_precision(name, params):
    model, batch = perturbed(name, dtype=torch.float32, **params), example(name)
    found = model.loss(tensors(batch, torch.float32), np.random.default_rng(0))
    w = arrays(model)
    expected = reference(name).loss(w, w, batch, np.random.default_rng(0), **params)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(expected, rel=5e-6)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("name", "params"), OPTIONS)
def test_gradient_along_a_random_direction_of_every_parameter(name, params):
    model, batch, step = perturbed(name, **params), example(name), 1e-6
    w = arrays(model)

    def nudged(key, direction):
        return reference(name).loss(
            w | {key: w[key] + direction}, w, batch, np.random.default_rng(0), **params
        )

    model.loss(tensors(batch), np.random.default_rng(0)).backward()
    rng = np.random.default_rng(1)
    for key, parameter in model.named_parameters():
        direction = rng.normal(size=parameter.shape)
        direction /= np.linalg.norm(direction)
        expected = (nudged(key, step * direction) - nudged(key, -step * direction)) / (2 * step)
        if parameter.requires_grad:
            found = (parameter.grad.numpy() * direction).sum()
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-8), key
        else:
            assert parameter.grad is None, key


@pytest.mark.parametrize("name", ["annot-mix", "mv-mixup", "ds-mixup"])
def test_mixing_is_seeded_and_without_alpha_nothing_is_drawn(name):
    batch = tensors(example(name), torch.float32)

    def value(seed, **params):
        rng = np.random.default_rng(seed)
        return make(name, **params).loss(batch, rng).item(), rng.bit_generator.state["state"]

    assert value(1) == value(1)
    assert value(1)[0] != value(2)[0]
    assert value(1, alpha=0.0)[0] == value(2, alpha=0.0)[0]
    assert value(1, alpha=0.0)[1] == np.random.default_rng(1).bit_generator.state["state"]


# ---------------------------------------------------------------- the volume terms


def with_and_without(name, change, counts=(3, 1, 4, 2, 1)):
    """By how much a weight of 0.5 moves the loss, and the gradients, and R by hand."""
    batch, losses, gradients = example(name, counts=counts), [], []
    for weight in (0.5, 0.0):
        model = perturbed(name, regularization=weight)
        with torch.no_grad():
            change(model)
        loss = model.loss(tensors(batch), np.random.default_rng(0))
        loss.backward()
        losses.append(loss.item())
        gradients.append(np.concatenate([p.grad.numpy().ravel() for p in model.parameters()]))
    R = {"geo-reg-f": geo_reg_f_volume, "geo-reg-w": geo_reg_w_volume}[name](arrays(model), batch)
    return losses[0] - losses[1], gradients[0] - gradients[1], R


def no_change(model):
    pass


def same_for_every_instance(model):
    model.classifier.head.weight.zero_()


def one_class_as_good_as_gone(model):
    """Independent of the others, but so small that R is above 100."""
    model.classifier.head.bias[1] -= 60


def annotators_who_cannot_tell_classes_apart(model):
    model.A.copy_(model.A[:, :1].expand_as(model.A))


def annotators_who_hardly_tell_classes_apart(model):
    """Rows that differ by 1e-3: R is large, and not too large."""
    model.A.copy_(model.A[:, :1] + 1e-3 * model.A)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("name", "change", "counts"),
    [
        ("geo-reg-f", no_change, (3, 1, 4, 2, 1)),
        ("geo-reg-f", no_change, (2, 1, 4)),  # C = B
        ("geo-reg-w", no_change, (3, 1, 4, 2, 1)),
        ("geo-reg-w", no_change, (2, 1)),  # the batch's size is of no concern
        ("geo-reg-w", annotators_who_hardly_tell_classes_apart, (3, 1, 4, 2, 1)),
    ],
)
def test_volume_term_is_used(name, change, counts):
    loss, gradient, R = with_and_without(name, change, counts)
    assert R != 0
    assert loss == pytest.approx(0.5 * R, rel=1e-8)
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("name", "change", "counts"),
    [
        ("geo-reg-f", no_change, (3, 1)),  # C > B
        ("geo-reg-f", same_for_every_instance, (3, 1, 4, 2, 1)),
        ("geo-reg-f", one_class_as_good_as_gone, (3, 1, 4, 2, 1)),
        ("geo-reg-w", annotators_who_cannot_tell_classes_apart, (3, 1, 4, 2, 1)),
    ],
)
def test_volume_term_is_dropped(name, change, counts):
    loss, gradient, R = with_and_without(name, change, counts)
    assert R == 0
    assert loss == 0
    assert not gradient.any()


# ---------------------------------------------------------------- what is said about annotators


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ANNOTATOR_MODELS)
def test_annotator_log_proba(name, seed):
    model = perturbed(name, seed).eval()
    h, annotator, h_array, a = questions(seed)
    w = arrays(model)
    expected = reference(name).says(w, classify(w, h_array), h_array, a)
    np.testing.assert_allclose(expected.sum(axis=1), 1)
    found = model.annotator_log_proba(h, annotator).exp().detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def confusion(name, w, h, a):
    """What is said of instances surely of class c, for every c: [row, true class, label]."""
    sure = [np.tile(np.eye(C)[c], (len(h), 1)) for c in range(C)]
    return np.stack([reference(name).says(w, p, h, a) for p in sure], axis=1)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", ANNOTATOR_MODELS)
def test_log_confusion(name):
    model = perturbed(name).eval()
    h, annotator, h_array, a = questions()
    found = model.log_confusion(h, annotator).exp().detach().numpy()
    np.testing.assert_allclose(found.sum(axis=2), 1, rtol=1e-12)
    np.testing.assert_allclose(found, confusion(name, arrays(model), h_array, a), rtol=1e-10)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", ANNOTATOR_MODELS)
def test_log_confusion_is_what_is_said_when_the_class_is_sure(name):
    model = perturbed(name).eval()
    h, annotator, *_ = questions()
    matrices = model.log_confusion(h, annotator)
    for c in range(C):
        with torch.no_grad():
            model.classifier.head.weight.zero_()
            model.classifier.head.bias.copy_(1e4 * torch.eye(C)[c])
        torch.testing.assert_close(
            model.annotator_log_proba(h, annotator), matrices[:, c], rtol=1e-10, atol=0
        )


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ANNOTATOR_MODELS)
def test_annotator_perf(name, seed):
    model, ref = perturbed(name, seed).eval(), reference(name)
    h, annotator, h_array, a = questions(seed)
    w = arrays(model)
    p, Pi = classify(w, h_array), confusion(name, w, h_array, a)
    said = ref.says(w, p, h_array, a)
    definitions = {
        "diagonal": [sum(p[i, c] * Pi[i, c, c] for c in range(C)) for i in range(len(p))],
        "agreement": [sum(p[i, c] * said[i, c] for c in range(C)) for i in range(len(p))],
    }
    assert not np.allclose(*definitions.values(), rtol=1e-3)
    if ref.perf == "reliability":
        definitions["reliability"] = crowd_ar_reliability(w, p, h_array, a)
    found = model.annotator_perf(h, annotator).detach().numpy()
    np.testing.assert_allclose(found, definitions[ref.perf], rtol=1e-10)


# ---------------------------------------------------------------- madl's weights and prior


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("pairs", [1, 6, 1 << 22])
def test_madl_weights_whatever_the_block_size(pairs, monkeypatch):
    monkeypatch.setattr("annotmix.approaches.madl.PAIRS", pairs)
    model = perturbed("madl", seed=3)
    w = arrays(model)
    weights = model.annotator_weights()
    np.testing.assert_allclose(weights.detach().numpy(), madl_weights(w, w), rtol=1e-10)
    assert weights.sum().item() == pytest.approx(M)
    for m in range(M):
        (slope,) = torch.autograd.grad(weights[m], model.log_gamma, retain_graph=True)
        up, down = (madl_weights(w | {"log_gamma": w["log_gamma"] + e}, w)[m] for e in (1e-5, -1e-5))
        assert slope.item() == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-9)
    assert weights.requires_grad
    weights.square().sum().backward()
    assert model.embed_annotator.weight.grad is None


def test_madl_copies_of_an_annotator_share_one_weight():
    model = make("madl")
    with torch.no_grad():
        model.embed_annotator.weight.copy_(100 * torch.tensor([[0.0], [0.0], [1.0], [2.0]]))
    np.testing.assert_allclose(
        model.annotator_weights().detach(), np.array([0.5, 0.5, 1, 1]) * M / 3, rtol=1e-6
    )


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("gamma", [0.01, 1.0, 7.0])
@pytest.mark.parametrize(("shape", "rate"), [(1.25, 0.25), (3.0, 2.0)])
def test_madl_prior_and_its_gradient(gamma, shape, rate):
    """Of two annotators each weighs one whatever γ is, so the prior alone moves it."""
    model = perturbed("madl", n_annotators=2, shape=shape, rate=rate)
    batch = tensors(Example(np.ones((2, D)), np.arange(2), np.arange(2), np.arange(2)))

    def loss(value):
        with torch.no_grad():
            model.log_gamma.fill_(math.log(value))
        return model.loss(batch, np.random.default_rng(0))

    density = stats.gamma(shape, scale=1 / rate)
    difference = loss(2 * gamma).item() - loss(gamma).item()
    assert difference == pytest.approx(density.logpdf(gamma) - density.logpdf(2 * gamma), rel=1e-8)
    loss(gamma).backward()
    up, down = (density.logpdf(gamma * math.exp(e)) for e in (1e-5, -1e-5))
    assert model.log_gamma.grad.item() == pytest.approx(-(up - down) / 2e-5, rel=1e-6, abs=1e-8)


# ---------------------------------------------------------------- crowd-ar's constraint


def test_crowd_ar_keeps_the_weights_of_skill_from_falling_below_zero():
    model = perturbed("crowd-ar", dtype=torch.float32)
    with torch.no_grad():
        model.reliability.weight.copy_(torch.tensor([[-1.0, 0.5, -1e-6]]))
        model.reliability.bias.fill_(-2.0)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    model.after_step()
    after = model.state_dict()
    assert after.pop("reliability.weight").tolist() == [[0.0, 0.5, 0.0]]
    for key, value in after.items():
        assert torch.equal(value, before[key]), key


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"crowd-ar"}))
def test_nothing_else_is_constrained(name):
    model = perturbed(name, dtype=torch.float32)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    model.after_step()
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key]), key


# ---------------------------------------------------------------- as published

#: What never moved in the published experiments.
FROZEN = {"conal": ("common", "individual"), "crowd-ar": ("expertise", "W"), "madl": ("log_gamma",)}
#: What then has no effect, since W_0 = W_m, and is frozen as well.
IDLE = {"conal": ("embed_instance", "embed_annotator")}


@pytest.mark.parametrize("name", NAMES)
def test_published_freezes_what_stood_still_and_nothing_else(name):
    assert ("published" in get_approach(name).hyper_parameters()) == (name in FROZEN)
    assert all(p.requires_grad for p in make(name).parameters())
    if name in FROZEN:
        frozen = {key for key, p in make(name, published=True).named_parameters() if not p.requires_grad}
        expected = FROZEN[name] + IDLE.get(name, ())
        assert frozen == {key for key, _ in make(name).named_parameters() if key.split(".")[0] in expected}


def test_published_conal_is_cross_entropy_of_twice_the_probabilities():
    model, batch = make("conal", published=True).requires_grad_(True), example("conal")
    model.loss(tensors(batch, torch.float32), np.random.default_rng(0)).backward()
    for part in IDLE["conal"]:
        assert all(not p.grad.any() for p in getattr(model, part).parameters())
    with torch.no_grad():
        model.embed_instance.weight.mul_(-3)
        found = model.loss(tensors(batch, torch.float32), np.random.default_rng(0))
    w = arrays(model)
    x, _, z = expand(batch)
    expected = mean(cross_entropies(z, softmax(2 * classify(w, features(w, x)))))
    assert found.item() == pytest.approx(expected, rel=5e-6)


# ---------------------------------------------------------------- starting values


def diagonal_and_rest(n, diagonal, rest):
    return np.array([[diagonal if c == k else rest for k in range(n)] for c in range(n)])


def confusion_bias(n, eta):
    return diagonal_and_rest(n, math.log(eta * (n - 1) / (1 - eta)), 0).ravel()


#: Value of parameters of a model with n classes, the same for every annotator.
STARTS = {
    "annot-mix": lambda n: {"annotator_model.head.bias": confusion_bias(n, 0.9)},
    "conal": lambda n: {
        "common": diagonal_and_rest(n, 2, 0),
        "individual": diagonal_and_rest(n, 2, 0),
    },
    "crowd-ar": lambda n: {"W": diagonal_and_rest(n, 1, 0)},
    "crowd-layer": lambda n: {"W": diagonal_and_rest(n, 1, 0)},
    "geo-reg-f": lambda n: {"A": diagonal_and_rest(n, 1, 0)},
    "geo-reg-w": lambda n: {"A": diagonal_and_rest(n, 1, 0)},
    "madl": lambda n: {"head.bias": confusion_bias(n, 0.8), "log_gamma": 0.0},
    "trace-reg": lambda n: {"A": diagonal_and_rest(n, 1, -5)},
    "union-net": lambda n: {"T": diagonal_and_rest(n, 1 - 1e-5, 1e-5 / (n - 1))},
}
#: Width of hidden layers and embeddings, as the number of rows of a weight.
WIDTHS = {
    "annot-mix": {"annotator_model.embed_instance": 128, "annotator_model.trunk.1": 128},
    "conal": {"embed_instance": 20},
    "crowd-ar": {"difficulty.0": 128},
    "madl": {"embed_instance": 16, "trunk.0": 128, "trunk.3": 16},
}


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("name", ANNOTATOR_MODELS)
def test_starting_values(name, n_classes):
    assert name in STARTS, f"{name} has no starting values here"
    w = arrays(make(name, n_classes=n_classes))
    for key, expected in STARTS[name](n_classes).items():
        np.testing.assert_allclose(w[key], np.broadcast_to(expected, w[key].shape), rtol=1e-6, err_msg=key)
    for key, width in WIDTHS.get(name, {}).items():
        assert len(w[f"{key}.weight"]) == width, key


def test_union_net_starts_as_epsilon_says():
    T = arrays(make("union-net", epsilon=0.2))["T"]
    np.testing.assert_allclose(T, np.stack([diagonal_and_rest(C, 0.8, 0.1)] * M), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "params", "eta"),
    [
        ("annot-mix", {}, 0.9),
        ("annot-mix", {"eta": 0.6}, 0.6),
        ("madl", {}, 0.8),
        ("madl", {"eta": 0.6}, 0.6),
    ],
)
def test_confusion_starts_near_eta(name, params, eta):
    model = make(name, n_classes=10, **params).eval()
    h, annotator, *_ = questions()
    diagonal = model.log_confusion(h.to(torch.float32), annotator).exp().diagonal(dim1=1, dim2=2)
    assert diagonal.mean().item() == pytest.approx(eta, abs=0.03)


def test_crowd_ar_expertise_starts_xavier_normal():
    expertise = arrays(make("crowd-ar", n_annotators=400, n_classes=100))["expertise"]
    assert expertise.shape == (400, 100)
    assert stats.kstest(expertise.ravel(), stats.norm(scale=math.sqrt(2 / 500)).cdf).pvalue > 0.01


def test_madl_outer_product_starts_xavier_uniform():
    outer, bound = arrays(make("madl"))["outer"], math.sqrt(6 / (16 * 16 + 16 * 16))
    assert outer.shape == (16, 16, 16)
    assert stats.kstest(outer.ravel(), stats.uniform(-bound, 2 * bound).cdf).pvalue > 0.01
