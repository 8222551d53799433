"""Label sets in `MultiAnnotatorClassifier`: items with several classes, and an output for every class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from annotmix.approaches import Approach
from annotmix.estimators.learnt_items import LearntItems
from annotmix.labels.accepted import as_annotations, place_sets, require_labels, warn_unlabelled
from annotmix.labels.annotations import Annotations
from annotmix.labels.label_sets import LabelSets
from annotmix.labels.named import gold_positions
from annotmix.labels.names import Names
from annotmix.labels.set_posterior import ClassPosterior, MultiLabelPosterior, join_sets, two_sided
from annotmix.labels.shrunken import Gold
from annotmix.training.inference import probabilities


class SetMethods:
    """The parts of `MultiAnnotatorClassifier` that differ between classes and sets of classes."""

    _approach: ClassVar[type[Approach]]
    classes: Any
    missing_label: Any
    classes_: NDArray[Any]
    annotators_: NDArray[Any]
    unseen_proba_: NDArray[np.float32]
    _learnt: LearntItems
    _learnt_sets: bool
    _members: NDArray[np.bool_]

    def _read_labels(
        self, y: Any, n_rows: int, names: list[Any] | None, gold: Any, parts: Mapping[str, Any]
    ) -> tuple[Annotations, Gold, Names]:
        """Labels of the rows of X, or answers by the numbers of their sets; gold; and the classes.

        `parts` are further arguments of `fit` by name.
        """
        self._learnt_sets = isinstance(y, LabelSets)
        if not self._learnt_sets:
            annotations = as_annotations(
                y, n_rows, names, missing_label=self.missing_label, classes=self.classes
            )
            known = gold_positions(annotations, gold)
            require_labels(annotations, known[0])
            return annotations, known, annotations.classes
        self._refuse_with_sets(parts)
        sets, known = place_sets(y, n_rows, names, classes=self.classes).with_gold(gold)
        self._members = sets.members
        warn_unlabelled(sets.answers, known[0])
        return sets.answers, known, sets.classes

    def _refuse_with_sets(self, parts: Mapping[str, Any]) -> None:
        """Refuse what label sets cannot be combined with: approaches without sets, and arguments of `fit`."""
        if self._approach.for_sets is None:
            raise ValueError(
                f"{self._approach.name} learns one class per item. AnnotMixPlusClassifier, CrowdClassifier "
                "and annotmix.posterior take label sets; label_sets.binary(name) are the labels about one "
                "class."
            )
        for name, value in parts.items():
            if value is not None:
                raise ValueError(f"{name} cannot be used with label sets; leave it out.")

    def _probabilities(self, log_p: torch.Tensor) -> NDArray[np.float64]:
        """log p as probabilities."""
        if self._learnt_sets:
            return log_p.double().exp().cpu().numpy()
        return probabilities(log_p)

    def _sets_of(self, y: Any, n_rows: int, names: list[Any] | None) -> LabelSets:
        """Label sets of rows of X, by the known annotators and classes."""
        if not isinstance(y, LabelSets):
            raise ValueError(f"This classifier has learnt label sets and takes LabelSets, found {type(y)}.")
        return place_sets(y, n_rows, names, classes=self.classes_, annotators=self.annotators_)

    def _set_posterior(self) -> MultiLabelPosterior:
        sets, p = self._label_sets(self._learnt.annotations), self.unseen_proba_.astype(np.float64)
        row, number = self._learnt.gold
        learnt = np.isnan(p[:, 0])
        result = join_sets(sets, None if learnt.any() else p, (row, sets.members[number]))
        if not learnt.any():
            return result
        mixed = [
            ClassPosterior(
                own.annotations,
                replace(own.answer, q=np.where(learnt[:, None], own.answer.q, two_sided(p[:, column]))),
            )
            for column, own in enumerate(result.by_class)
        ]
        return MultiLabelPosterior(sets, tuple(mixed))

    def _label_sets(self, answers: Annotations) -> LabelSets:
        return LabelSets(answers, self._members, self.classes_)
