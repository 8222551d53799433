"""annot-mix: marginal likelihood of mixed (item, annotator, label) triples.

Classification model p = softmax(W h + b) on features h = f(x); annotator model Π(h, a), a confusion matrix
for every item and annotator, which sees h without sending a gradient back. For triples i, î and
λ ~ Beta(α, α):

    x̃ = λ x_i + (1−λ) x_î,   ã = λ a_i + (1−λ) a_î,   z̃ = λ z_i + (1−λ) z_î
    loss = −(1/P) Σ Σ_k z̃_k log Σ_c p_c(x̃) Π_ck(h(x̃), ã)

Instead of x̃, images can be cut and pasted (CutMix; Yun et al., ICCV 2019), or hidden states can be mixed at
a depth that is drawn for every batch (manifold mixup; Verma et al., ICML 2019).

Herde, Lührs, Huseljic, Sick: Annot-Mix: Learning with Noisy Class Labels from Multiple Annotators via a
Mixup Extension. ECAI 2024, pp. 2910–2918. doi:10.3233/FAIA240829
"""

from __future__ import annotations

import copy
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from annotmix.approaches.base import Batch, DescribedAnnotators
from annotmix.networks import (
    AnnotatorEmbedding,
    AnnotatorNetwork,
    Classifier,
    DescribedEmbedding,
    depths,
    mixup,
)

#: Classes up to which confusion matrices are dense by default, and their rank beyond.
DENSE_UP_TO, RANK = 200, 8


class AnnotMix(DescribedAnnotators):
    """Two networks, trained on mixes of (item, annotator, label) triples.

    Parameters
    ----------
    alpha : float, default=1.0
        λ ~ Beta(alpha, alpha) is the share of the first triple in a mix; 0 switches mixing off.
    eta : float, default=0.9
        Chance of a right label that the annotators start with; between 1/C and 1.
    pairing : {"across", "within"}, default="across"
        Mix with any triple of the batch, or only with triples of the same item (the paper's ablation).
    coefficient : {"triple", "batch"}, default="triple"
        Draw λ for every triple, or one for the whole batch (the paper's listing).
    mix : {"input", "cutmix", "manifold"}, default="input"
        The input that is mixed. "cutmix", for images, pastes a rectangle of the partner's image; the share of
        its area is also the 1 − λ of the annotators and labels. "manifold" mixes the state of the backbone at
        a random depth: the input or the state after a layer, together with the annotators' embeddings; or, at
        the last depth, the last hidden states of both models.
    annotator_identity : bool, default=True
        Learn an identity of each annotator besides `annotator_features` of `fit`. False: two annotators with
        the same features are the same.
    confusion_rank : int, optional
        Number of error patterns that a confusion matrix can distinguish (see
        `annotmix.networks.confusion`); 0 is the paper's dense matrix. By default dense up to 200 classes,
        and 8 beyond.
    """

    name = "annot-mix"
    perf = "diagonal"

    def __init__(
        self,
        classifier: Classifier,
        n_annotators: int,
        *,
        alpha: float = 1.0,
        eta: float = 0.9,
        pairing: Literal["across", "within"] = "across",
        coefficient: Literal["triple", "batch"] = "triple",
        mix: Literal["input", "cutmix", "manifold"] = "input",
        annotator_identity: bool = True,
        confusion_rank: int | None = None,
    ):
        super().__init__(classifier, n_annotators)
        if not alpha >= 0:
            raise ValueError(f"alpha must be 0 (no mixing) or positive, found {alpha}.")
        if pairing not in ("across", "within"):
            raise ValueError(f'pairing must be "across" or "within", found {pairing!r}.')
        if coefficient not in ("triple", "batch"):
            raise ValueError(f'coefficient must be "triple" or "batch", found {coefficient!r}.')
        if mix not in ("input", "cutmix", "manifold"):
            raise ValueError(f'mix must be "input", "cutmix" or "manifold", found {mix!r}.')
        self.alpha, self.pairing, self.coefficient, self.mix = alpha, pairing, coefficient, mix
        self.depths = depths(classifier.backbone) if mix == "manifold" else [0]
        self.annotator_identity = annotator_identity
        C = classifier.n_classes
        self.annotator_model = AnnotatorNetwork(
            classifier.n_hidden, n_annotators, C, eta, rank=_rank(confusion_rank, C)
        )

    def describe_annotators(self, features: Tensor | None) -> None:
        """Embed annotators by their features, and by their identity unless `annotator_identity` is False."""
        if features is None and not self.annotator_identity:
            raise ValueError(
                "annotator_identity=False leaves nothing that distinguishes annotators: pass "
                "annotator_features= to fit, or set annotator_identity=True."
            )
        if features is not None:
            plain = self.annotator_model.embed_annotator
            assert isinstance(plain, AnnotatorEmbedding)
            identity = plain if self.annotator_identity else None
            self.annotator_model.embed_annotator = DescribedEmbedding(features, len(plain.bias), identity)

    def for_unseen(self, features: Tensor, weight: Tensor) -> AnnotMix:
        """The same networks for annotators of whom only features are known; their identity is the average."""
        known = self.annotator_model.embed_annotator
        assert isinstance(known, DescribedEmbedding)
        other = copy.deepcopy(self, {id(self.classifier): self.classifier})
        other.annotator_model.embed_annotator = known.of_unseen(features, weight)
        other.n_annotators = len(features)
        return other

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Mean negative log-likelihood of the mixed triples."""
        x, weight = batch.x.index_select(0, batch.item), batch.weight
        if self.alpha > 0:
            partner, lam = self.draw(batch.item, rng)
            h, u, lam = self._mixed(x, batch.annotator, partner, lam.to(x.dtype), rng)
            labels, share = mixup.pairs(batch.label, partner), torch.stack([lam, 1 - lam])
            share = share if weight is None else share * mixup.pairs(weight, partner)
        else:
            h = self.classifier.features(x)
            u = self._state(h, batch.annotator)
            labels = batch.label.unsqueeze(0)
            share = torch.ones_like(labels, dtype=x.dtype) if weight is None else weight.unsqueeze(0)
        return self.annotator_model.head.mixed_nll(u, self.classifier.logits(h), labels, share)

    def draw(self, item: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Partners and λ of the batch's triples, shapes (P,) and (P,)."""
        n = len(item)
        if self.pairing == "across":
            partner = mixup.pair_across(n, rng)
        else:
            partner = mixup.pair_within(item.cpu().numpy(), rng)
        lam = mixup.coefficients(n, self.alpha, rng, per_batch=self.coefficient == "batch")
        return torch.from_numpy(partner).to(item.device), lam.to(item.device)

    def _mixed(
        self, x: Tensor, annotator: Tensor, partner: Tensor, lam: Tensor, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Features h, shape (P, H), the annotator model's state u, shape (P, d), and λ of mixed triples."""
        if self.mix == "manifold":
            assert isinstance(self.classifier.backbone, nn.Sequential)
            layers, depth = nn.Sequential(*self.classifier.backbone), int(rng.choice(self.depths))
            state = layers[:depth](x)
            if depth == len(layers):
                u = self._state(state, annotator)
                return mixup.mix(state, partner, lam), mixup.mix(u, partner, lam), lam
            h = layers[depth:](mixup.mix(state, partner, lam))
        elif self.mix == "cutmix":
            x, lam = mixup.paste(x, partner, lam, rng, per_batch=self.coefficient == "batch")
            h = self.classifier.features(x)
        else:
            h = self.classifier.features(mixup.mix(x, partner, lam))
        e_a = self.annotator_model.embed_annotator.mixed(annotator, partner, lam)
        return h, self.annotator_model(h, e_a), lam

    def _state(self, h: Tensor, annotator: Tensor) -> Tensor:
        return self.annotator_model(h, self.annotator_model.embed_annotator(annotator))  # type: ignore[no-any-return]

    def log_confusion(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log Π(h, a), shape (n, C, C)."""
        return self.annotator_model.head.log_confusion(self._state(h, annotator))

    def annotator_log_proba(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log p_annot, shape (n, C), without all of Π."""
        head = self.annotator_model.head
        return head.annotator_log_proba(self._state(h, annotator), self.classifier.log_proba(h))

    def annotator_perf(self, h: Tensor, annotator: Tensor) -> Tensor:
        """p_perf, shape (n,), without all of Π."""
        diagonal = self.annotator_model.head.log_diagonal(self._state(h, annotator))
        return (self.classifier.log_proba(h) + diagonal).exp().sum(dim=-1)


def _rank(confusion_rank: int | None, n_classes: int) -> int:
    if confusion_rank is None:
        return 0 if n_classes <= DENSE_UP_TO else RANK
    if not confusion_rank >= 0:
        raise ValueError(f"confusion_rank must be 0 (dense) or positive, found {confusion_rank}.")
    return confusion_rank
