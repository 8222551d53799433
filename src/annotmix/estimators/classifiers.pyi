"""The classifiers with their parameters; written by tools/write_stubs.py."""

import os
from collections.abc import Iterable
from typing import Any, Literal

import torch

from annotmix.encoders import Encoder
from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier

class AnnotMixClassifier(MultiAnnotatorClassifier):
    """Two networks, trained on mixes of (item, annotator, label) triples."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        alpha: float = 1.0,
        eta: float = 0.9,
        pairing: Literal["across", "within"] = "across",
        coefficient: Literal["triple", "batch"] = "triple",
        mix: Literal["input", "cutmix", "manifold"] = "input",
        annotator_identity: bool = True,
        confusion_rank: int | None = None,
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class AnnotMixPlusClassifier(MultiAnnotatorClassifier):
    """Cross-fitted classifiers and counted confusion matrices refine the labels they learn from."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        alpha: float = 0.4,
        beta: float = 0.5,
        folds: int = 5,
        kappa: float = 3.0,
        levels: int = 3,
        prior: str = "shrunken",
        ensemble: bool = False,
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class ConalClassifier(MultiAnnotatorClassifier):
    """A choice between common and individual noise layers for each item and annotator."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        regularization: float = 1e-05,
        n_dim: int = 20,
        published: bool = False,
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class CrowdArClassifier(MultiAnnotatorClassifier):
    """Labels softened by their estimated reliability."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        balance: float = 0.9,
        n_dim: int = 128,
        published: bool = False,
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class CrowdLayerClassifier(MultiAnnotatorClassifier):
    """One linear layer per annotator turns class probabilities into label probabilities."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class DsMixupClassifier(MultiAnnotatorClassifier):
    """Trains on the labels that Dawid–Skene infers, with vanilla mixup."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        alpha: float = 1.0,
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class GeoRegFClassifier(MultiAnnotatorClassifier):
    """One confusion matrix per annotator, regularised by the volume of the class probabilities."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        regularization: float = 0.001,
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class GeoRegWClassifier(MultiAnnotatorClassifier):
    """One confusion matrix per annotator, regularised by the volume of all of them."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        regularization: float = 0.001,
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class MadlClassifier(MultiAnnotatorClassifier):
    """Confusion matrices from interacting embeddings; similar annotators share their weight."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        eta: float = 0.8,
        shape: float = 1.25,
        rate: float = 0.25,
        n_dim: int = 16,
        published: bool = False,
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class MvBaseClassifier(MultiAnnotatorClassifier):
    """Trains on the majority vote of the annotators."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class MvMixupClassifier(MultiAnnotatorClassifier):
    """Trains on the majority vote of the annotators with vanilla mixup."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        alpha: float = 1.0,
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class TraceRegClassifier(MultiAnnotatorClassifier):
    """One confusion matrix per annotator, regularised by its trace."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        regularization: float = 0.01,
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class TrueBaseClassifier(MultiAnnotatorClassifier):
    """Trains on the true classes: `fit(X, y_true)` with one class per row."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...

class UnionNetClassifier(MultiAnnotatorClassifier):
    """One transition matrix from classes to all (annotator, label) pairs."""

    def __init__(
        self,
        *,
        encoder: str | Encoder | None = None,
        backbone: str | torch.nn.Module = "mlp",
        hidden: tuple[int, ...] | Literal["auto"] = "auto",
        dropout: float | Literal["auto"] = "auto",
        epsilon: float = 1e-05,
        max_epochs: int = 50,
        batch_size: int = 64,
        lr: float = 0.01,
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
    ) -> None: ...
