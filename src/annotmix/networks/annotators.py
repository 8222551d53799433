"""The parts of an annotator model: embeddings of annotators, and the network of annot-mix."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotmix.networks.confusion import make_head
from annotmix.networks.layers import BatchNorm, Dropout
from annotmix.networks.mixup import mix, pairs

#: Up to this many annotators, one product with mixed one-hot vectors is faster than selecting rows.
ONE_HOT_UP_TO = 100
#: Tables with this many rows or more have a sparse gradient; for smaller ones a dense gradient is faster.
SPARSE_FROM = 2000


class AnnotatorEmbedding(nn.Module):
    """Linear(M → d) applied to one-hot annotators, as a look-up of rows.

    Annotator m is row m of the table, and a mix of two annotators is a mix of two rows. Initialised like
    PyTorch's Linear(M → d). Where `sparse` is true, as it is for a large table, the gradient has rows only
    for the annotators of the batch.
    """

    def __init__(self, n_annotators: int, n_dim: int):
        super().__init__()
        linear = nn.Linear(n_annotators, n_dim)
        self.weight = nn.Parameter(linear.weight.detach().T.contiguous())
        self.bias = linear.bias
        self.sparse = n_annotators > SPARSE_FROM

    def forward(self, annotator: Tensor) -> Tensor:
        """Embeddings, shape (n, d), of annotator indices, shape (n,)."""
        return F.embedding(annotator, self.weight, sparse=self.sparse) + self.bias

    def mixed(self, annotator: Tensor, partner: Tensor, lam: Tensor) -> Tensor:
        """Embeddings mixed with the partners', as `annotmix.networks.mixup.mix` does; shape (n, d)."""
        if len(self.weight) > ONE_HOT_UP_TO:
            return mix(self(annotator), partner, lam)
        lam = lam.to(self.weight.dtype)
        one_hot = lam.new_zeros(len(self.weight), len(lam))
        one_hot.scatter_add_(0, pairs(annotator, partner), torch.stack([lam, 1 - lam]))
        return torch.addmm(self.bias, one_hot.t(), self.weight)


class DescribedEmbedding(nn.Module):
    """Embeddings of annotators with features: Linear(F → d), plus an embedding of the identity.

    It is linear in the features: a mix of two embeddings is the embedding of mixed features.

    Parameters
    ----------
    features : tensor, shape (M, F)
    n_dim : int
    identity : AnnotatorEmbedding, optional
        Added where annotators differ by more than their features.
    """

    features: Tensor

    def __init__(self, features: Tensor, n_dim: int, identity: AnnotatorEmbedding | None):
        super().__init__()
        self.identity = identity
        self.description = nn.Linear(features.shape[1], n_dim, bias=identity is None)
        self.register_buffer("features", features)

    def forward(self, annotator: Tensor) -> Tensor:
        """Embeddings, shape (n, d), of annotator indices, shape (n,)."""
        e: Tensor = self.description(self.features[annotator])
        return e if self.identity is None else e + self.identity(annotator)

    def mixed(self, annotator: Tensor, partner: Tensor, lam: Tensor) -> Tensor:
        """Embeddings mixed with the partners' embeddings, shape (n, d)."""
        return mix(self(annotator), partner, lam)

    @torch.no_grad()
    def of_unseen(self, features: Tensor, weight: Tensor) -> DescribedEmbedding:
        """The embedding of other annotators; their identity is the average over the known ones.

        Parameters
        ----------
        features : tensor, shape (m, F)
        weight : tensor, shape (M,)
            Weights of the known annotators in the average.
        """
        other = copy.deepcopy(self)
        other.features = features
        if other.identity is not None:
            mean = (weight / weight.sum()) @ other.identity.weight
            other.identity.weight = nn.Parameter(mean.expand(len(features), -1))
        return other


class AnnotatorNetwork(nn.Module):
    """annot-mix's annotator model: confusion matrices from features and an annotator's embedding."""

    def __init__(
        self,
        n_hidden: int,
        n_annotators: int,
        n_classes: int,
        eta: float,
        n_dim: int = 128,
        dropout: float = 0.5,
        rank: int = 0,
    ):
        super().__init__()
        self.embed_instance = nn.Linear(n_hidden, n_dim)
        self.embed_annotator: AnnotatorEmbedding | DescribedEmbedding = AnnotatorEmbedding(
            n_annotators, n_dim
        )
        self.trunk = nn.Sequential(
            Dropout(dropout), nn.Linear(2 * n_dim, n_dim), BatchNorm(n_dim), nn.ReLU(inplace=True)
        )
        self.head = make_head(n_dim, n_classes, eta, rank)

    def forward(self, h: Tensor, e_a: Tensor) -> Tensor:
        """States u, shape (n, d), the input of `head`.

        Parameters
        ----------
        h : tensor, shape (n, H)
            Features of the items; no gradient flows back into them.
        e_a : tensor, shape (n, d)
            Embeddings of the annotators.
        """
        e_x = self.embed_instance(h.detach())
        u: Tensor = self.trunk(torch.cat([e_x, e_a], dim=1))
        return u
