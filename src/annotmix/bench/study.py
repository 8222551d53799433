"""A study: which datasets, which approaches with which parameters, which seeds."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, TypeVar

from annotmix._common.words import did_you_mean
from annotmix.approaches import get_approach
from annotmix.datasets.loading import get_spec
from annotmix.datasets.spec import TABULAR
from annotmix.estimators import classifier_class
from annotmix.estimators.parameters import Network

Entry = TypeVar("Entry")
#: Parameters of estimators that the runner sets itself.
_NOT_OF_A_STUDY = (
    *("self", "encoder", "select", "classes", "missing_label", "random_state", "device", "devices"),
    *("checkpoint", "checkpoint_every", "progress"),
)


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset of a study.

    Parameters
    ----------
    name : str
        As in `annotmix.list_datasets`.
    alias : str
        Its name in tables; by default its own name.
    encoder : str, optional
        Makes features of texts or photos, such as "text:minilm".
    published : bool, default=False
        Simulate annotators as the published experiments did.
    settings : mapping
        Parameters of estimators in place of the paper's for this dataset.
    """

    name: str
    alias: str = ""
    encoder: str | None = None
    published: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name in tables."""
        return self.alias or self.name

    @property
    def source(self) -> dict[str, Any]:
        """The settings that determine items and labels."""
        return {"name": self.name, "encoder": self.encoder, "published": self.published}


@dataclass(frozen=True)
class ApproachEntry:
    """An approach of a study, with parameters other than its own defaults and a label for tables.

    It is run on the datasets that `only` names, by their labels; on all where it names none.
    """

    name: str
    label: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    only: tuple[str, ...] = ()

    def takes(self, dataset: str) -> bool:
        """Whether it is run on the dataset with this label."""
        return not self.only or dataset in self.only


@dataclass(frozen=True)
class Run:
    """One training: a dataset, an approach and a seed."""

    dataset: DatasetEntry
    approach: ApproachEntry
    seed: int

    @cached_property
    def configuration(self) -> dict[str, Any]:
        """Everything that the result depends on, as JSON.

        The approach's own parameters are all there, also those that stand at their default, so that a
        changed default is another run. Names for tables are not: studies share their runs.
        """
        defaults = parameter_defaults(self.approach.name)
        own = {name: defaults[name] for name in get_approach(self.approach.name).hyper_parameters()}
        chosen = {**get_spec(self.dataset.name).settings, **self.dataset.settings, **self.approach.parameters}
        parameters = {**own, **{name: _like(defaults[name], value) for name, value in chosen.items()}}
        return {
            "dataset": self.dataset.source,
            "approach": self.approach.name,
            "parameters": _json(parameters),
            "seed": self.seed,
        }

    @cached_property
    def key(self) -> str:
        """Identifies the configuration: the first half of its SHA-256."""
        text = json.dumps(self.configuration, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def __str__(self) -> str:
        return f"{self.dataset.label}, {self.approach.label}, seed {self.seed}"


@dataclass(frozen=True)
class Study:
    """Datasets × approaches × seeds.

    Parameters
    ----------
    history : bool
        Score test and training set after every epoch, for learning curves.
    """

    name: str
    datasets: tuple[DatasetEntry, ...]
    approaches: tuple[ApproachEntry, ...]
    seeds: tuple[int, ...]
    history: bool = False
    description: str = ""

    def runs(self) -> list[Run]:
        """All runs in the order in which they start: of a dataset, the first seed of all approaches first."""
        return [
            Run(d, a, s)
            for d in self.datasets
            for s in self.seeds
            for a in self.approaches
            if a.takes(d.label)
        ]

    def narrowed(
        self,
        datasets: Sequence[str] = (),
        approaches: Sequence[str] = (),
        seeds: int | None = None,
    ) -> Study:
        """The part with these datasets and approaches, by name or label, and the first `seeds` seeds."""
        if seeds is not None and not 1 <= seeds <= len(self.seeds):
            raise ValueError(
                f"seeds must be between 1 and {len(self.seeds)}, those of the study; found {seeds}."
            )
        return replace(
            self,
            datasets=_pick(self.datasets, datasets, lambda d: (d.label, d.name), "dataset", self.name),
            approaches=_pick(self.approaches, approaches, lambda a: (a.label, a.name), "approach", self.name),
            seeds=self.seeds[:seeds],
        )


@cache
def parameter_defaults(approach: str) -> Mapping[str, Any]:
    """The parameters that a study may set of an approach's estimator, with their defaults.

    The paper's values for tables stand in for "auto", so that a study names numbers.
    """
    parameters = inspect.signature(classifier_class(get_approach(approach)).__init__).parameters
    defaults = {name: p.default for name, p in parameters.items() if name not in _NOT_OF_A_STUDY}
    return defaults | {name: TABULAR[name] for name in Network._fields}


def _pick(
    entries: tuple[Entry, ...],
    wanted: Iterable[str],
    names: Callable[[Entry], tuple[str, ...]],
    what: str,
    study: str,
) -> tuple[Entry, ...]:
    wanted = list(wanted)
    known = dict.fromkeys(name for entry in entries for name in names(entry))
    for name in wanted:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ValueError(f"The study {study!r} has no {what} {name!r}.{hint} It has {', '.join(known)}.")
    return tuple(e for e in entries if not wanted or not set(names(e)).isdisjoint(wanted))


def _like(default: Any, value: Any) -> Any:
    """1 as 1.0 where the default is a float, so that both are one configuration."""
    return float(value) if isinstance(default, float) and isinstance(value, int) else value


def _json(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(v) if isinstance(v, tuple) else v for key, v in sorted(parameters.items())}
