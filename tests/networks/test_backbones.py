"""The networks: shapes, sizes, starts, and where gradients go."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from annotmix.networks import (
    CNN,
    MLP,
    AnnotatorEmbedding,
    AnnotatorNetwork,
    Classifier,
    ResNet18,
    depths,
    make_backbone,
)
from annotmix.networks.annotators import SPARSE_FROM
from annotmix.networks.layers import BatchNorm, Dropout
from annotmix.networks.mixup import mix


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def n_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


# ---------------------------------------------------------------- backbones


@pytest.mark.parametrize("n", [1, 5])
def test_mlp(n):
    mlp = MLP(7, (256, 128), dropout=0.5)
    assert mlp(torch.randn(n, 7)).shape == (n, 128)
    kinds = [type(layer) for layer in mlp]
    assert kinds == [nn.Linear, BatchNorm, nn.ReLU, Dropout] * 2
    assert n_parameters(mlp) == (7 * 256 + 256 + 2 * 256) + (256 * 128 + 128 + 2 * 128)


def test_mlp_without_dropout_has_none():
    assert [type(layer) for layer in MLP(3, (8,))] == [nn.Linear, BatchNorm, nn.ReLU]


def resnet_size(n_channels: int) -> int:
    """3×3 stem, then four stages of two blocks; convolutions have no bias, but a normalisation."""

    def convolution(n_in: int, n_out: int, kernel: int) -> int:
        return n_in * n_out * kernel**2 + 2 * n_out

    total, width = convolution(n_channels, 64, 3), 64
    for n_out in (64, 128, 256, 512):
        total += convolution(width, n_out, 3) + 3 * convolution(n_out, n_out, 3)
        total += convolution(width, n_out, 1) if width != n_out else 0
        width = n_out
    return total


@pytest.mark.parametrize("n_channels", [1, 3])
def test_resnet_has_the_size_of_resnet_18(n_channels):
    assert n_parameters(ResNet18(n_channels)) == resnet_size(n_channels)
    assert resnet_size(3) + 512 * 10 + 10 == 11_173_962  # the usual ResNet-18 for ten classes of 32×32 images


def test_resnet_maps_images_to_features_at_full_resolution():
    resnet = ResNet18().eval()
    sizes = {}
    for name in ("2", "4", "6", "8", "10"):
        resnet.get_submodule(name).register_forward_hook(
            lambda _, __, out, name=name: sizes.update({name: tuple(out.shape[1:])})
        )
    with torch.no_grad():
        assert resnet(torch.randn(1, 3, 32, 32)).shape == (1, 512)
    assert list(sizes.values()) == [(64, 32, 32), (64, 32, 32), (128, 16, 16), (256, 8, 8), (512, 4, 4)]


def test_resnet_trains_on_one_small_image():
    resnet = ResNet18(1)
    resnet(torch.randn(1, 1, 16, 16)).sum().backward()
    assert all(parameter.grad is not None for parameter in resnet.parameters())


@pytest.mark.parametrize(
    ("name", "shape", "kind", "width"),
    [("mlp", (5,), MLP, 9), ("cnn", (2, 7, 5), CNN, 9), ("resnet18", (1, 8, 8), ResNet18, 512)],
)
def test_make_backbone_by_name(name, shape, kind, width):
    backbone, n_hidden = make_backbone(name, shape, (4, 9), 0.5)
    assert type(backbone) is kind
    assert n_hidden == width
    assert backbone(torch.randn(2, *shape)).shape == (2, width)


def test_a_module_of_ones_own_is_copied():
    own = nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.BatchNorm1d(6))
    own.train()
    before = {name: value.clone() for name, value in own.state_dict().items()}
    copy, n_hidden = make_backbone(own, (3, 4), (), 0.0)
    assert n_hidden == 6
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.add_(1)
    assert own.training
    assert all(torch.equal(value, before[name]) for name, value in own.state_dict().items())
    assert not {id(p) for p in own.parameters()} & {id(p) for p in copy.parameters()}


class Pair(nn.Module):
    def forward(self, x):
        return x, x


@pytest.mark.parametrize(
    ("backbone", "shape", "hidden", "message"),
    [
        ("mpl", (5,), (4,), r'must be "mlp", "cnn", "resnet18" or a torch\.nn\.Module .* found \'mpl\''),
        (None, (5,), (4,), "found None"),
        ("mlp", (3, 8, 8), (4,), r"found items of shape \(3, 8, 8\)"),
        ("mlp", (5,), (), r"hidden must hold at least one positive width, found \(\)"),
        ("mlp", (5,), (4, 0), r"positive width, found \(4, 0\)"),
        ("resnet18", (5,), (4,), r"\(channels, height, width\), found items of shape \(5,\)"),
        ("cnn", (5,), (4,), r'"cnn" takes images of shape \(channels, height, width\), found .* \(5,\)'),
        ("cnn", (1, 8, 8), (4, -1), r"positive width, found \(4, -1\)"),
        (
            nn.Conv2d(3, 2, 1),
            (3, 8, 8),
            (),
            r"\(n, 3, 8, 8\) to features of shape \(n, H\); .* shape \(2, 2, 8, 8\)",
        ),
        (nn.Flatten(0), (5,), (), r"it gave shape \(10,\)"),
        (Pair(), (5,), (), "it gave tuple"),
    ],
)
def test_backbones_that_are_refused(backbone, shape, hidden, message):
    with pytest.raises(ValueError, match=message):
        make_backbone(backbone, shape, hidden, 0.0)


def test_the_cnn_halves_the_image_after_every_layer():
    cnn = CNN(1, (4, 6))
    x = torch.randn(3, 1, 8, 8)
    assert nn.Sequential(*list(cnn)[:4])(x).shape == (3, 4, 4, 4)
    assert nn.Sequential(*list(cnn)[:8])(x).shape == (3, 6, 2, 2)
    assert cnn(x).shape == (3, 6)


@pytest.mark.parametrize(
    ("backbone", "shape", "sizes"),
    [
        (MLP(5, (4, 9)), (5,), [(5,), (4,), (9,)]),
        (MLP(5, (4, 9), 0.5), (5,), [(5,), (4,), (9,)]),
        (CNN(1, (4, 6)), (1, 8, 8), [(1, 8, 8), (4, 4, 4), (6,)]),
        (
            ResNet18(1),
            (1, 16, 16),
            [(1, 16, 16), (64, 16, 16), (64, 16, 16), (128, 8, 8), (256, 4, 4), (512,)],
        ),
        (nn.Sequential(nn.Flatten(), nn.Linear(6, 4)), (2, 3), [(2, 3), (6,), (4,)]),
    ],
)
def test_depths_are_where_layers_end(backbone, shape, sizes):
    x = torch.randn(2, *shape)
    found = [nn.Sequential(*list(backbone)[:depth])(x) for depth in depths(backbone)]
    assert [tuple(state.shape[1:]) for state in found] == sizes
    if isinstance(backbone, MLP):
        assert all((state >= 0).all() for state in found[1:])  # after ReLU, not before


class Looped(nn.Sequential):
    def forward(self, x):
        return super().forward(super().forward(x))


@pytest.mark.parametrize("backbone", [nn.Linear(3, 3), Looped(nn.Linear(3, 3))])
def test_depths_of_a_backbone_that_is_no_sequence_of_layers(backbone):
    with pytest.raises(ValueError, match=rf"Sequential of your own, found {type(backbone).__name__}.*input"):
        depths(backbone)


def test_classifier():
    model = Classifier(MLP(5, (4,)), 4, 3)
    h = model.features(torch.randn(6, 5))
    log_p = model.log_proba(h)
    assert (model.n_hidden, model.n_classes) == (4, 3)
    assert (h.shape, log_p.shape) == ((6, 4), (6, 3))
    torch.testing.assert_close(log_p, torch.log(torch.softmax(model.head(h), dim=1)))


# ---------------------------------------------------------------- annotators


def embedding_and_linear(n_annotators: int, n_dim: int) -> tuple[AnnotatorEmbedding, nn.Linear]:
    embedding, linear = AnnotatorEmbedding(n_annotators, n_dim), nn.Linear(n_annotators, n_dim)
    with torch.no_grad():
        linear.weight.copy_(embedding.weight.T)
        linear.bias.copy_(embedding.bias)
    return embedding, linear


def test_embedding_is_a_linear_layer_of_one_hot_rows():
    embedding, linear = embedding_and_linear(6, 4)
    annotator = torch.tensor([5, 0, 0, 3])
    toward = torch.randn(4, 4)
    ours, theirs = embedding(annotator), linear(F.one_hot(annotator, 6).float())
    torch.testing.assert_close(ours, theirs)
    (ours * toward).sum().backward()
    (theirs * toward).sum().backward()
    torch.testing.assert_close(embedding.weight.grad, linear.weight.grad.T)
    torch.testing.assert_close(embedding.bias.grad, linear.bias.grad)


def test_a_mix_of_embeddings_is_the_linear_layer_of_mixed_one_hot_rows():
    embedding, linear = embedding_and_linear(6, 4)
    annotator, partner, lam = torch.tensor([5, 0, 1]), torch.tensor([1, 2, 2]), torch.tensor([0.3, 0.9, 0.5])
    ours = mix(embedding(annotator), partner, lam)
    theirs = linear(mix(F.one_hot(annotator, 6).float(), partner, lam))
    torch.testing.assert_close(ours, theirs)
    ours.square().sum().backward()
    theirs.square().sum().backward()
    torch.testing.assert_close(embedding.weight.grad, linear.weight.grad.T)
    torch.testing.assert_close(embedding.bias.grad, linear.bias.grad)


def test_embedding_starts_like_the_linear_layer():
    torch.manual_seed(3)
    linear = nn.Linear(50, 8)
    torch.manual_seed(3)
    embedding = AnnotatorEmbedding(50, 8)
    assert torch.equal(embedding.weight, linear.weight.T)
    assert torch.equal(embedding.bias, linear.bias)
    assert {name for name, _ in embedding.named_parameters()} == {"weight", "bias"}
    assert embedding.weight.is_contiguous()


def test_the_gradient_of_a_large_table_has_only_the_rows_that_were_looked_up():
    embedding = AnnotatorEmbedding(SPARSE_FROM + 1, 2)
    embedding(torch.tensor([3, 7, 3])).sum().backward()
    grad = embedding.weight.grad.coalesce()
    assert grad.indices().tolist() == [[3, 7]]
    assert grad.values().tolist() == [[2, 2], [1, 1]]


def test_an_unknown_annotator_is_an_error():
    with pytest.raises(IndexError):
        AnnotatorEmbedding(3, 2)(torch.tensor([3]))


@pytest.mark.parametrize("n", [1, 5])
def test_annotator_network(n):
    network = AnnotatorNetwork(n_hidden=7, n_annotators=4, n_classes=3, eta=0.9)
    e_a = network.embed_annotator(torch.arange(n) % 4)
    assert e_a.shape == (n, 128)
    u = network(torch.randn(n, 7), e_a)
    assert u.shape == (n, 128)
    assert network.head.log_confusion(u).shape == (n, 3, 3)


def test_annotator_network_sends_no_gradient_into_the_features():
    network = AnnotatorNetwork(n_hidden=7, n_annotators=4, n_classes=3, eta=0.9)
    backbone = nn.Linear(2, 7)
    h = backbone(torch.randn(6, 2))
    h.retain_grad()
    u = network(h, network.embed_annotator(torch.arange(6) % 4))
    network.head.log_confusion(u).square().sum().backward()
    assert h.grad is None
    assert all(parameter.grad is None for parameter in backbone.parameters())
    # a bias before batch normalisation has no influence, so its gradient may be zero; it must be there
    assert all(parameter.grad is not None for parameter in network.parameters())
    assert (network.embed_annotator.weight.grad != 0).any()
    assert (network.embed_instance.weight.grad != 0).any()


def test_annotator_network_follows_instance_and_annotator():
    network = AnnotatorNetwork(n_hidden=7, n_annotators=2, n_classes=3, eta=0.9).eval()
    h = torch.randn(2, 7)
    first, second = (network(h, network.embed_annotator(torch.tensor([m, m]))) for m in (0, 1))
    assert not torch.allclose(first[0], first[1])
    assert not torch.allclose(first[0], second[0])


def test_annotator_network_has_the_layers_of_the_paper():
    H, M, C, d = 128, 20, 10, 128
    network = AnnotatorNetwork(H, M, C, eta=0.9)
    expected = (H * d + d) + (M * d + d) + (2 * d * d + d) + 2 * d + (d * C**2 + C**2)
    assert n_parameters(network) == expected
    dropouts = [module.p for module in network.modules() if isinstance(module, nn.Dropout)]
    assert dropouts == [0.5]


def test_annotator_network_starts_near_eta():
    network = AnnotatorNetwork(n_hidden=32, n_annotators=50, n_classes=5, eta=0.8)
    h, annotator = torch.randn(500, 32), torch.arange(500) % 50
    with torch.no_grad():
        confusion = network.head.log_confusion(network(h, network.embed_annotator(annotator))).exp()
    diagonal = confusion.diagonal(dim1=1, dim2=2)
    # the random weights around the bias spread single entries; their mean stays close
    assert diagonal.mean().item() == pytest.approx(0.8, abs=0.05)
