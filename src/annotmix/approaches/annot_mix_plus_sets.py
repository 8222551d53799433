"""annot-mix-plus for label sets: one network with an output for every class.

The classifiers, folds and refinement are those of annot-mix-plus; a class does not exclude another. With q_nc
the probability that class c belongs to item n, the loss is the cross-entropy of every class on its own,

    loss = −mean Σ_c q̃_c log p_c(x̃) + (1 − q̃_c) log (1 − p_c(x̃)),   p_c = sigmoid(output c)

and q is refined class by class, with confusion matrices of the classes False and True. It starts as the
answer of labels alone, whose annotators are shared between classes (`annotmix.labels.set_evidence`). A class
is refined once its predictions predict answers better than the other answers alone do, each at its own time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from annotmix.approaches.annot_mix_plus import QUANTILE_LIMIT, WARM_UP, AnnotMixPlus
from annotmix.approaches.base import Batch, PerfDefinition
from annotmix.labels.annotations import Annotations
from annotmix.labels.label_sets import LabelSets
from annotmix.labels.set_evidence import evidence_by_class
from annotmix.networks import Classifier
from annotmix.networks.counting import CountedConfusion, Labelled
from annotmix.networks.stack import SigmoidCommittee

if TYPE_CHECKING:
    from annotmix.networks.features import Features


class AnnotMixPlusSets(AnnotMixPlus):
    """annot-mix-plus whose labels are sets of classes; its parameters are the same."""

    perf: ClassVar[PerfDefinition | None] = None
    _committee = SigmoidCommittee
    #: Whether a class belongs to a set, shape (S, C); labels are numbers of sets; set before `begin`.
    members: Tensor | None = None

    def __init__(self, classifier: Classifier, n_annotators: int, **hyper_parameters: Any):
        super().__init__(classifier, n_annotators, **hyper_parameters)
        self.kappa, self.levels = hyper_parameters.get("kappa", 3.0), hyper_parameters.get("levels", 3)
        del self.confusion  # labels judge annotators, after training
        self.register_buffer("cuts", None)
        self.refining = self.refining.expand(classifier.n_classes).clone()

    def begin(self, annotations: Annotations, rng: np.random.Generator) -> None:
        """Split the items into folds and take the first q from the labels alone."""
        assert self.members is not None
        device = self.refining.device
        n_labels = torch.tensor(annotations.labels_per_item, device=device)
        self.weight, self.labelled = self._label_weight(n_labels), n_labels > 0
        dealt = rng.permutation(annotations.n_items) % max(self.folds, 1)
        self.fold = torch.from_numpy(dealt).to(device)
        members = self.members.cpu().numpy()
        sets = LabelSets(annotations, members, np.arange(members.shape[1]))
        gold = (np.zeros(0, np.int64), np.zeros(0, np.int64)) if self.gold is None else self.gold
        self.evidences = list(evidence_by_class(sets, (gold[0], members[gold[1]])))
        q = np.stack([own.alone.q[:, 1] for own in self.evidences], axis=1)
        self.q = torch.tensor(q, dtype=torch.float32, device=device)
        self.share = self.q[self.labelled].mean(dim=0)

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Cross-entropy of the final classifier, with the gradient of all classifiers."""
        x, q, fold = self._mixed(batch, rng)
        logits = self.classifier.every_logits(x)  # (B, 1 + K, C)
        target = q.unsqueeze(1).expand_as(logits)
        entropy = F.binary_cross_entropy_with_logits(logits, target, reduction="none").sum(dim=2)
        each = (self._shares(fold) * entropy).sum(dim=0)  # (1 + K,)
        total: Tensor = each.sum()
        return total - (total - each[0]).detach()

    @torch.no_grad()
    def after_epoch(self, X: Features, done: float) -> None:
        """Refine q by the predictions of classifiers for items that they have not seen."""
        if done < WARM_UP:
            return
        assert self.q is not None
        logits = self._unseen_logits(X)
        self._begin_refining(torch.sigmoid(logits), done)
        for c in torch.nonzero(self.refining).flatten().tolist():
            self.q[:, c] = self._refined(c, logits[:, c])
        if self.gold is not None:
            assert self.members is not None
            item, number = (torch.from_numpy(part).to(self.q.device) for part in self.gold)
            self.q[item] = self.members.to(self.q)[number]

    def _refined(self, c: int, logits: Tensor) -> Tensor:
        """q of one class, shape (N,), from predictions of classifiers that have not seen the items."""
        assert self.q is not None
        labels = Labelled(self.evidences[c].annotations, logits.device)
        log_p = torch.stack([F.logsigmoid(-logits), F.logsigmoid(logits)], dim=1)
        entropy = -(log_p.exp() * log_p).sum(dim=1)
        at = torch.linspace(0, 1, self.levels + 1, device=log_p.device)[1:-1]
        cuts = torch.quantile(entropy[self.labelled][:QUANTILE_LIMIT], at) if len(at) else at
        confusion = CountedConfusion(self.n_annotators, 2, self.levels, self.kappa).to(log_p.device)
        q = torch.stack([1 - self.q[:, c], self.q[:, c]], dim=1)
        confusion.count(labels, q, torch.bucketize(entropy, cuts))
        share = torch.stack([1 - self.share[c], self.share[c]])
        prior = log_p + self._correction(log_p.exp()[self.labelled].mean(dim=0), share)
        return torch.softmax(confusion.item_sums(prior, self.weight), dim=1)[:, 1]

    def _begin_refining(self, p: Tensor, done: float) -> None:
        """Begin to refine the classes whose classifiers help, if a fifth of the epochs has passed."""
        now = int(done / WARM_UP + 1e-9)
        if now > self.tries:
            for c in torch.nonzero(~self.refining).flatten().tolist():
                own = p[:, c].double().cpu().numpy()
                self.refining[c] = self.evidences[c].helped_by(np.stack([1 - own, own], axis=1))
        self.tries.fill_(now)

    def _unseen_log_proba(self, X: Features) -> Tensor:
        """log p̂, shape (N, C): of every item by the classifier that has not seen it."""
        return F.logsigmoid(self._unseen_logits(X))

    def _unseen_logits(self, X: Features) -> Tensor:
        return self._unseen(X, lambda network, x: network.logits(network.features(x)))

    def finish(self) -> None:
        """Keep the final classifier, and the others only where they are averaged."""
        super().finish()
        self.__dict__.pop("evidences", None)


AnnotMixPlus.for_sets = AnnotMixPlusSets
