"""Networks side by side against the same networks one after the other."""

import copy

import pytest
import torch
from torch import nn

from annotmix.networks import MLP, Classifier
from annotmix.networks.stack import ClassifierStack, Committee

K, N, D, H, C = 3, 7, 5, 6, 4


class Own(nn.Module):
    """A backbone that is no MLP."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(D, H)

    def forward(self, x):
        return self.layer(x).tanh()


def classifier(kind, dropout=0.0):
    torch.manual_seed(0)
    return Classifier(MLP(D, (8, H), dropout) if kind == "mlp" else Own(), H, C)


def apart(stack):
    """Make the members differ."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)


def member(stack, one, k):
    """Member k of a stack as a classifier of its own."""
    alone = copy.deepcopy(one)
    if isinstance(alone.backbone, MLP):
        for layer, stacked in zip(alone.backbone, stack.features, strict=True):
            if isinstance(layer, nn.Linear):
                layer.weight.data, layer.bias.data = stacked.weight[k].clone(), stacked.bias[k].clone()
            elif isinstance(layer, nn.BatchNorm1d):
                here = slice(k * layer.num_features, (k + 1) * layer.num_features)
                for name in ("weight", "bias", "running_mean", "running_var"):
                    getattr(layer, name).data = getattr(stacked, name)[here].detach().clone()
    else:
        alone.backbone.load_state_dict(stack.features.members[k].state_dict())
    alone.head.weight.data, alone.head.bias.data = (
        stack.head.weight[k].clone(),
        stack.head.bias[k].clone(),
    )
    return alone


@pytest.mark.parametrize("kind", ["mlp", "own"])
@pytest.mark.parametrize("training", [True, False])
def test_every_member_is_a_classifier_of_its_own(kind, training):
    one = classifier(kind)
    stack = ClassifierStack(one, K)
    apart(stack)
    x = torch.randn(N, D)
    alone = [member(stack, one, k).train(training) for k in range(K)]
    found = stack.train(training)(x)
    expected = torch.stack([a.log_proba(a.features(x)) for a in alone], dim=1)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    weight = torch.randn(N, K, C)
    (found * weight).sum().backward()
    (expected * weight).sum().backward()
    for k, a in enumerate(alone):
        torch.testing.assert_close(stack.head.weight.grad[k], a.head.weight.grad, rtol=1e-4, atol=1e-5)
        if kind == "mlp":
            for layer, stacked in zip(a.backbone, stack.features, strict=True):
                if isinstance(layer, nn.Linear):
                    grad = stacked.weight.grad[k]
                    torch.testing.assert_close(grad, layer.weight.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["mlp", "own"])
def test_members_start_as_the_classifier(kind):
    one = classifier(kind).eval()
    x = torch.randn(N, D)
    expected = one.log_proba(one.features(x)).unsqueeze(1).expand(-1, K, -1)
    torch.testing.assert_close(ClassifierStack(one, K).eval()(x), expected)


def test_every_member_has_dropout_of_its_own():
    log_p = ClassifierStack(classifier("mlp", dropout=0.5), K)(torch.randn(N, D))
    assert not torch.allclose(log_p[:, 0], log_p[:, 1])


@pytest.mark.parametrize("kind", ["mlp", "own"])
@pytest.mark.parametrize("averages", [True, False])
def test_a_committee_averages_probabilities_or_speaks_for_itself(kind, averages):
    committee = Committee(classifier(kind), K, averages).eval()
    apart(committee.stack)
    x = torch.randn(N, D)
    h = committee.features(x)
    assert h.shape == (N, committee.n_hidden)
    every = committee.stack(x).exp()
    own, mean = every[:, 0], every.mean(dim=1)
    torch.testing.assert_close(committee.log_proba(h).exp(), mean if averages else own)
    committee.drop_folds()
    assert (committee.stack is None) == (not averages)
    torch.testing.assert_close(committee.log_proba(committee.features(x)).exp(), mean if averages else own)


@pytest.mark.parametrize("kind", ["mlp", "own"])
def test_a_member_by_itself_says_what_it_says_in_the_stack(kind):
    stack = ClassifierStack(classifier(kind), K).eval()
    apart(stack)
    x = torch.randn(N, D)
    for k in range(K):
        alone = stack.member(k)
        torch.testing.assert_close(alone.log_proba(alone.features(x)), stack(x)[:, k])


@pytest.mark.parametrize("kind", ["mlp", "own"])
def test_the_state_of_a_training_holds_the_classifier_that_stays(kind):
    trained, other = (Committee(classifier(kind), K).eval() for _ in range(2))
    apart(trained.stack)
    x, state = torch.randn(N, D), trained.state_dict()
    expected = trained.log_proba(trained.features(x))
    other.load_state_dict(state)
    torch.testing.assert_close(other.stack(x), trained.stack(x))
    other.drop_folds()
    kept = other.state_dict()
    assert all(torch.equal(state[name], kept[name]) for name in kept)
    torch.testing.assert_close(other.log_proba(other.features(x)), expected)
