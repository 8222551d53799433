"""The scikit-learn classifier that all approaches share: it checks its input, trains and predicts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import assert_all_finite, check_is_fitted, validate_data

from annotmix._common.seeds import seed_of
from annotmix.approaches import Approach
from annotmix.approaches.base import DescribedAnnotators
from annotmix.encoders import Encoder, make_encoder
from annotmix.estimators.annotator_methods import AnnotatorMethods
from annotmix.estimators.learnt_items import UNSEEN_NAME, LearntItems, row_marks, with_gold
from annotmix.estimators.numbers_only import refuse_texts
from annotmix.estimators.parameters import check_parameters, resolve_network, training_settings
from annotmix.estimators.persistence import REFERENCE_NAME, fingerprint, save, set_state
from annotmix.estimators.scoring import CrowdScore
from annotmix.estimators.set_methods import SetMethods
from annotmix.estimators.unseen_annotators import prepare_features
from annotmix.labels.accepted import as_annotations
from annotmix.labels.annotations import Annotations
from annotmix.labels.heldout import hold_out, label_likelihood, set_likelihood
from annotmix.labels.metrics import set_scores
from annotmix.networks import Classifier, make_backbone
from annotmix.networks.devices import pick_device
from annotmix.networks.features import Features
from annotmix.training.augmentation import get_augmentation
from annotmix.training.inference import EvaluationSet, encode, probabilities, scores
from annotmix.training.loop import (
    HELD_OUT,
    INITIALISATION,
    REFERENCE,
    VALIDATION,
    randomness,
    train,
)

if TYPE_CHECKING:
    from typing import Self  # since Python 3.11

#: Training items that `annotator_confusion()` averages over by default.
REFERENCE_SIZE = 256


class MultiAnnotatorClassifier(CrowdScore, SetMethods, AnnotatorMethods, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that learns from the labels of many annotators.

    Parameters
    ----------
    encoder : str or encoder, optional
        Turns texts or images into the items that the backbone takes: an encoder of `annotmix.encoders`
        or its name, such as "text:minilm", "image:efficientnet-lite0" or "text:/folder/of/a/checkpoint". X
        is then a list, array or Series of texts, of image files or of uint8 images, everywhere.
    backbone : {"mlp", "cnn", "resnet18"} or torch.nn.Module, default="mlp"
        Turns items into features. A module of your own maps a batch to features of shape (n, H).
    hidden : tuple of int or "auto", default="auto"
        Widths of the layers of "mlp" and "cnn". "auto" is (128,) for "mlp" on more than 256 features, which
        usually come from an encoder, and (256, 128) otherwise. The fitted `hidden_` holds the choice, as
        `dropout_` and `weight_decay_` do.
    dropout : float or "auto", default="auto"
        Dropout after every layer of "mlp". "auto" is 0.5 on more than 256 features or fewer than 5000
        labelled items, and 0 otherwise.
    max_epochs : int, default=50
    batch_size : int, default=64
        Items in a batch; each comes with all its labels.
    lr : float, default=0.01
        Learning rate of RAdam at the start; it falls to 0 along a cosine.
    weight_decay : float or "auto", default="auto"
        L2 penalty on the classification model. "auto" is 0.0001 for "mlp" on more than 256 features, and 0
        otherwise.
    augment : {None, "crop-flip"}, default=None
        Random changes of training images, shape (channels, height, width): "crop-flip" shifts by up to four
        pixels and mirrors, as is usual for a "resnet18" on photographs. Not by default, as a mirrored
        letter is no letter.
    select : {"last", "best"}, default="last"
        Weights after the last epoch, or of the epoch with the best score on `validation`.
    classes : sequence, optional
        All classes; by default those that occur among the labels.
    missing_label : any, default=-1
        Marks a missing label in a label matrix, besides `nan` and `None`.
    random_state : int, RandomState instance or None, default=None
        The same integer gives the same weights.
    device : str, default="auto"
        "cpu", "cuda", "mps"; "auto" takes a GPU where there is one.
    devices : int, optional
        Processes that train together, each on a device or a core of its own and on its own share of the
        items. By default one, or those that torchrun has started; 1 is always this process alone.
    precision : {"32-true", "bf16-mixed"}, default="32-true"
        Single precision, or matrix products in half precision (bfloat16).
    checkpoint : path, optional
        Folder in which training leaves its state every `checkpoint_every` epochs and after the last one.
        A run that finds its own state there resumes from it, to the same bits; needs an integer
        `random_state`.
    checkpoint_every : int, default=10
    progress : bool, default=True
        Show progress where training takes longer than two seconds.
    """

    _approach: ClassVar[type[Approach]]

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 1e-2,
        weight_decay: float | Literal["auto"] = "auto",
        augment: str | None = None,
        select: str = "last",
        classes: Iterable[Any] | None = None,
        missing_label: Any = -1,
        random_state: Any = None,
        device: str = "auto",
        devices: int | None = None,
        precision: str = "32-true",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 10,
        progress: bool = True,
    ):
        self.encoder = encoder
        self.backbone = backbone
        self.hidden = hidden
        self.dropout = dropout
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.augment = augment
        self.select = select
        self.classes = classes
        self.missing_label = missing_label
        self.random_state = random_state
        self.device = device
        self.devices = devices
        self.precision = precision
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.progress = progress

    # ---------------------------------------------------------------- training

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        items: Iterable[Any] | None = None,
        gold: pd.Series | Mapping[Any, Any] | None = None,
        annotator_features: pd.DataFrame | None = None,
        validation: tuple[Any, ...] | Literal["labels"] | None = None,
        monitor: Mapping[str, tuple[Any, ...]] | None = None,
    ) -> Self:
        """Train on items and the labels that annotators gave them.

        Parameters
        ----------
        X : array-like, memory-mapped array or DataFrame, shape (n, n_features) or (n, ...)
            Items. A memory-mapped array is read batch by batch. Images of dtype uint8 stay bytes in
            memory and reach the backbone divided by 255. With `encoder`: texts or images.
        y : label matrix, long table, Annotations or vector
            A matrix has one row per item and one column per annotator. A long table (columns `item`,
            `annotator`, `label`, and `weight` if labels have one) is matched to X by its index or by `items`.
            A vector is the labels of one annotator, an array of shape (n, n_annotators, n_classes) soft
            labels. LabelSets are answers with any number of classes, for annot-mix-plus: one network with an
            output for every class.
        items : iterable, optional
            Names of the rows of X.
        gold : Series or mapping of item to class, optional
            True classes of some items: learnt by the classifier, fixed in `consensus`, and counted for
            annotators. (`validation` is never learnt; it only selects the epoch.)
        annotator_features : DataFrame, optional
            Features of annotators, indexed by their names: numbers and categories, some of which may be
            missing. For annot-mix.
        validation : (X, y_true), (X, y_true, labels), (X, None, labels) or "labels", optional
            The set that selects the best epoch; scored after every epoch. Clean labels by accuracy;
            annotators' labels of items whose true class is not known by their likelihood, label-ll; "labels"
            holds out the labels of a tenth of the items, drawn by the seed, which are then not trained on.
        monitor : mapping of name to (X, y_true) or (X, y_true, labels), optional
            Further sets to score after every epoch; `y_true` may be None. The scores are in `history_`.
        """
        check_parameters(self, validation is not None)
        rows, names = self._check_X(X, items, reset=True)
        parts = {"validation": validation, "monitor": monitor, "annotator_features": annotator_features}
        annotations, known, classes = self._read_labels(y, len(rows), names, gold, parts)
        self.hidden_, self.dropout_, self.weight_decay_ = resolve_network(self, self._shape, annotations)
        self.seed_ = seed_of(self.random_state)
        if isinstance(validation, str):
            annotations, held = self._hold_out(annotations, validation)
        elif validation is not None and validation[1] is None:
            self._require_annotator_model()
        device, views = pick_device(self.device), rows.ndim > 1 + len(self._shape)
        self.classes_, self.annotators_ = np.array(classes), np.array(annotations.annotators)
        if self.classes_.dtype == object and all(isinstance(c, str) for c in self.classes_):
            self.classes_ = self.classes_.astype(str)
        with randomness(self.seed_, INITIALISATION) as rng:
            learnt = self._approach.prepare(annotations, rng)
            learnt = with_gold(learnt, known, replaces=learnt is not annotations)
            self.annotator_preparation_, described = None, None
            if annotator_features is not None:
                self.annotator_preparation_, described = prepare_features(
                    self._approach, annotator_features, self.annotators_
                )
            self.module_ = self._make_module(len(learnt.annotators), described).to(device)
            self.module_.gold = known if len(known[0]) else None
            if self._learnt_sets:
                self.module_.members = torch.tensor(self._members)
        self.labels_per_annotator_ = np.array(annotations.labels_per_annotator)
        self._learnt = LearntItems(annotations, known, row_marks(rows if not views else rows[:, 0]))
        if len(learnt.annotators) == 1 < len(annotations.annotators):
            self.aggregated_labels_ = learnt.to_matrix().iloc[:, 0].rename("label")
        data = Features(rows, device, views)
        sets = {name: self._evaluation_set(*parts) for name, parts in (monitor or {}).items()}
        if isinstance(validation, str):
            some_rows = np.flatnonzero(held.labels_per_item)
            held = held.align(items=held.items[some_rows])
            sets[VALIDATION] = EvaluationSet(Features(rows[some_rows], device, views), None, held)
        elif validation is not None:
            sets[VALIDATION] = self._evaluation_set(*validation)
        settings = training_settings(
            self, weight_decay=self.weight_decay_, augment=get_augmentation(self.augment, self._shape)
        )
        run = train(
            self.module_,
            data,
            learnt,
            settings,
            sets,
            fingerprint(self, rows, learnt, self._members if self._learnt_sets else described)
            if self.checkpoint is not None
            else "",
        )
        self.history_ = pd.DataFrame(run.history).set_index("epoch")
        self.n_iter_ = run.epoch
        self.best_epoch_ = run.best_epoch
        with randomness(self.seed_, REFERENCE) as rng:
            sample = np.sort(rng.permutation(np.flatnonzero(learnt.labels_per_item))[:REFERENCE_SIZE])
        reference = Features(rows[sample], device, views)
        fresh = Features(rows[~self._learnt.learnt], device, views)
        unseen = self._unseen(data, fresh, run.best_state)
        evidence = getattr(self.module_, "evidence", None)  # of an approach that has joined the labels itself
        self._alone = evidence.alone if evidence is not None and learnt is annotations else None
        self.module_.finish()
        kept = self.module_.state_dict()
        states = {"last": kept} | ({"best": run.best_state} if run.best_state else {})
        self.states_ = {
            which: {name: state[name].detach() for name in kept} for which, state in states.items()
        }
        for which, state in self.states_.items():
            self.module_.load_state_dict(state, assign=True)
            state[REFERENCE_NAME] = encode(self.module_, reference)[0].clone()
            state[UNSEEN_NAME] = unseen[which]
        return self.use(self.select)

    def _unseen(
        self, X: Features, fresh: Features, best: dict[str, torch.Tensor] | None
    ) -> dict[str, torch.Tensor]:
        """Class probabilities of items by classifiers that have not seen them, last and best, shape (N, C).

        X are the training items, `fresh` those without labels; an approach without folds has only these.
        """
        found = {"last": self._unseen_proba(X, fresh)}
        if best:
            last = {name: t.detach().clone() for name, t in self.module_.state_dict().items()}
            self.module_.load_state_dict(best)
            found["best"] = self._unseen_proba(X, fresh)
            self.module_.load_state_dict(last)
        return found

    def _unseen_proba(self, X: Features, fresh: Features) -> torch.Tensor:
        log_p = self.module_.unseen_log_proba(X)
        if log_p is None:
            learnt = self._learnt.learnt
            log_p = torch.full((len(learnt), len(self.classes_)), torch.nan)
            if not learnt.all():
                log_p[torch.from_numpy(~learnt)] = encode(self.module_, fresh)[1].cpu()
        return log_p.detach().exp()

    def use(self, which: str) -> Self:
        """Switch to the weights of the "last" or the "best" epoch without training again."""
        if which not in self.states_:
            raise ValueError(
                f"There are no {which!r} weights, only {', '.join(map(repr, self.states_))}; "
                '"best" needs validation= in fit.'
            )
        set_state(self, self.states_[which])
        return self

    # ---------------------------------------------------------------- classes

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities, shape (n, C); of label sets the probability of each class on its own."""
        _, log_p = self._encode(X)
        return self._probabilities(log_p)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every item, shape (n,).

        After label sets: 1 for every class with a probability of one half or more, else 0, shape (n, C).
        """
        if self._learnt_sets:
            return (self.predict_proba(X) >= 0.5).astype(np.int64)
        _, log_p = self._encode(X)
        return np.asarray(self.classes_[log_p.argmax(dim=-1).cpu().numpy()])

    def evaluate(self, X: Any, y_true: ArrayLike | None, labels: Any = None) -> dict[str, float]:
        """The paper's scores: clf-acc, and with annotators' `labels` also annot-acc and perf-auroc.

        label-ll is the mean log-likelihood of the labels, with the true class summed out. After label sets
        `y_true` is 0 and 1, shape (n, C), and the scores are those of `annotmix.labels.metrics.set_scores`.
        """
        check_is_fitted(self)
        if self._learnt_sets:
            if labels is not None or y_true is None:
                raise ValueError(
                    "After label sets, evaluate takes true classes alone; score takes LabelSets."
                )
            return set_scores(y_true, self.predict(X))
        return scores(self.module_, self._evaluation_set(X, y_true, labels))

    def _label_likelihood(self, X: Any, y: Any) -> float:
        """label-ll by the annotator model; without one, by the confusion matrices of the posterior."""
        check_is_fitted(self)
        rows, names = self._check_X(X)
        if self._learnt_sets:
            return set_likelihood(self._sets_of(y, len(rows), names), self.predict_proba(X), self.posterior_)
        annotations, features = self._annotations(y, len(rows), names), Features(rows, self._device)
        if self._approach.perf is not None and len(annotations):
            return scores(self.module_, EvaluationSet(features, None, annotations))["label-ll"]
        _, log_p = encode(self.module_, features)
        return label_likelihood(annotations, probabilities(log_p), self.posterior_)

    # ---------------------------------------------------------------- files

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the model as safetensors and JSON; read it with `annotmix.load`.

        A backbone of your own is not saved as code: `annotmix.load` takes it again.
        """
        check_is_fitted(self)
        save(self, folder)

    # ---------------------------------------------------------------- inside

    def _hold_out(self, annotations: Annotations, which: str) -> tuple[Annotations, Annotations]:
        """The training labels, and the labels that select the epoch."""
        if which != "labels":
            raise ValueError(f'validation must be a tuple or "labels", found {which!r}.')
        self._require_annotator_model()
        with randomness(self.seed_, HELD_OUT) as rng:
            return hold_out(annotations, rng=rng)

    @property
    def _device(self) -> torch.device:
        return next(self.module_.parameters()).device

    def _make_module(self, n_annotators: int, described: NDArray[np.float32] | None = None) -> Approach:
        backbone, n_hidden = make_backbone(self.backbone, self._shape, self.hidden_, self.dropout_)
        classifier = Classifier(backbone, n_hidden, len(self.classes_))
        own = {name: getattr(self, name) for name in self._approach.hyper_parameters()}
        approach = self._approach.for_sets if self._learnt_sets else self._approach
        if approach is None:
            raise ValueError(f"{self._approach.name} does not learn label sets.")
        module = approach(classifier, n_annotators, **own)
        if isinstance(module, DescribedAnnotators):
            module.describe_annotators(None if described is None else torch.from_numpy(described))
        return module

    def _check_X(
        self, X: Any, items: Iterable[Any] | None = None, *, reset: bool = False
    ) -> tuple[NDArray[Any], list[Any] | None]:
        """X as an array and the names of its rows."""
        named = isinstance(X, pd.DataFrame) or (self.encoder is not None and isinstance(X, pd.Series))
        names = list(items) if items is not None else list(X.index) if named else None
        rows = self._rows(X, reset)
        if rows.ndim < 2:
            raise ValueError(f"X must have one row per item and at least two dimensions, found {rows.shape}.")
        if names is not None and len(names) != len(rows):
            raise ValueError(f"items must name the {len(rows)} rows of X, found {len(names)} names.")
        if reset:
            self._shape = tuple(rows.shape[1:] if self.encoder is None else rows.shape[-1:])
        elif tuple(rows.shape[1:]) != self._shape:
            raise ValueError(
                f"X has items of shape {tuple(rows.shape[1:])}, but {type(self).__name__} was trained on "
                f"items of shape {self._shape}."
            )
        return rows, names

    def _rows(self, X: Any, reset: bool) -> NDArray[Any]:
        """X as an array, shape (n, ...); of an encoder with views, for training, (n, 1 + views, d)."""
        if self.encoder is not None:
            if reset:
                self.encoder_ = make_encoder(self.encoder, device=self.device, progress=self.progress)
            views = reset and self.encoder_.views > 0
            rows: NDArray[Any] = self.encoder_.encode_views(X) if views else self.encoder_.encode(X)
        elif isinstance(X, np.memmap):
            rows = X
            for first in range(0, len(X), 4096):
                assert_all_finite(X[first : first + 4096], input_name="X")
        else:
            refuse_texts(X)
            return validate_data(self, X, reset=reset, dtype="numeric", allow_nd=True)  # type: ignore[no-any-return]
        if reset:
            self.n_features_in_ = 0 if rows.ndim < 2 else rows.shape[1 if self.encoder is None else -1]
            self.__dict__.pop("feature_names_in_", None)
        return rows

    def _evaluation_set(self, X: Any, y_true: Any, labels: Any = None) -> EvaluationSet:
        rows, names = self._check_X(X)
        y = None
        if y_true is not None:
            y = pd.Index(self.classes_).get_indexer(pd.Index(np.asarray(y_true)))
            if len(y) != len(rows):
                raise ValueError(f"y_true must have one class per row: {len(rows)} rows, {len(y)} classes.")
        annotations = None if labels is None else self._annotations(labels, len(rows), names)
        return EvaluationSet(Features(rows, self._device), y, annotations)

    def _annotations(self, y: Any, n_rows: int, names: list[Any] | None) -> Annotations:
        return as_annotations(
            y,
            n_rows,
            names,
            missing_label=self.missing_label,
            classes=self.classes_,
            annotators=self.annotators_,
        )

    def _encode(self, X: Any) -> tuple[torch.Tensor, torch.Tensor]:
        check_is_fitted(self)
        rows, _ = self._check_X(X)
        return encode(self.module_, Features(rows, self._device))
