"""Embeddings of annotators: mixed rows as one node of the graph, against a mix of embeddings."""

import pytest
import torch

from annotmix.networks import AnnotatorEmbedding, DescribedEmbedding
from annotmix.networks.annotators import SPARSE_FROM
from annotmix.networks.mixup import mix


def drawn(n_annotators):
    generator = torch.Generator().manual_seed(1)
    annotator = torch.randint(n_annotators, (30,), generator=generator)
    return annotator, torch.randperm(30, generator=generator), torch.rand(30, generator=generator)


@pytest.mark.parametrize("n_annotators", [6, 150, SPARSE_FROM + 1])
def test_mixed_rows_are_a_mix_of_embeddings(n_annotators):
    torch.manual_seed(0)
    embedding = AnnotatorEmbedding(n_annotators, 4)
    annotator, partner, lam = drawn(n_annotators)
    weight, gradients = torch.randn(30, 4), []
    for mixed in (embedding.mixed(annotator, partner, lam), mix(embedding(annotator), partner, lam)):
        embedding.zero_grad()
        (mixed * weight).sum().backward()
        assert embedding.weight.grad.is_sparse == (n_annotators > SPARSE_FROM)
        gradients.append((mixed, embedding.weight.grad.to_dense(), embedding.bias.grad))
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b)


def test_a_mix_of_described_annotators_is_that_of_mixed_features():
    torch.manual_seed(0)
    embedding = DescribedEmbedding(torch.randn(6, 3), 4, AnnotatorEmbedding(6, 4))
    annotator, partner, lam = drawn(6)
    features = mix(embedding.features[annotator], partner, lam)
    identity = embedding.identity.mixed(annotator, partner, lam)
    found = embedding.mixed(annotator, partner, lam)
    torch.testing.assert_close(found, embedding.description(features) + identity)
