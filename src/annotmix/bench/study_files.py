"""A study from its YAML file; a mistake is an error that names the file and the line.

PyYAML parses the file into nodes, which know their lines, and turns single nodes into values.
`yaml.safe_load` would lose the lines, take the last of two equal keys silently, and accept aliases, with
which a few lines can stand for billions of values.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from annotmix._common.words import did_you_mean, show, some
from annotmix.approaches import get_approach
from annotmix.bench import require
from annotmix.bench.study import ApproachEntry, DatasetEntry, Study, parameter_defaults
from annotmix.datasets.loading import get_spec
from annotmix.encoders import make_encoder
from annotmix.estimators import make_classifier
from annotmix.estimators.parameters import check_parameters
from annotmix.networks import Classifier, make_backbone
from annotmix.training.loop import randomness

SEEDS = 10


class StudyError(ValueError):
    """A mistake in the file of a study."""


def shipped_studies() -> list[str]:
    """The names of the studies that come with the package."""
    folder = resources.files("annotmix.bench") / "studies"
    return sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml"))


def read_study(study: str) -> Study:
    """A study by the name of a shipped one, or from a YAML file."""
    if study in shipped_studies():
        text = (resources.files("annotmix.bench") / "studies" / f"{study}.yaml").read_text(encoding="utf-8")
        return parse_study(text, study, f"{study}.yaml")
    path = Path(study)
    if not path.is_file():
        known = shipped_studies()
        hint = did_you_mean(study, known)
        raise StudyError(f"There is no study {study!r}.{hint} Give a YAML file or one of {', '.join(known)}.")
    try:
        return parse_study(path.read_text(encoding="utf-8"), path.stem, os.fspath(path))
    except UnicodeDecodeError as error:
        raise StudyError(f"{study}: not a text in UTF-8 ({error.reason} at byte {error.start}).") from None


def parse_study(text: str, name: str, file: str) -> Study:
    """A study from YAML text; `file` is for messages."""
    return _Reader(require("yaml"), file).study(text, name)


class _Reader:
    """Walks the nodes of the file, which know their lines."""

    def __init__(self, yaml: Any, file: str):
        self.yaml, self.file = yaml, file

    def study(self, text: str, name: str) -> Study:
        top = self.fields(
            self.compose(text), "a study", ("description", "seeds", "history", "datasets", "approaches")
        )
        for key in ("datasets", "approaches"):
            if key not in top:
                raise StudyError(f"{self.file}: the study has no {key}; list them under '{key}:'.")
        datasets = self.unique(top["datasets"], self.dataset, "dataset")
        return Study(
            name=name,
            description=self.typed(top, "description", str, ""),
            datasets=datasets,
            approaches=self.approaches(top["approaches"], datasets),
            seeds=self.seeds(top.get("seeds")),
            history=self.typed(top, "history", bool, False),
        )

    def compose(self, text: str) -> Any:
        try:
            if any(isinstance(event, self.yaml.AliasEvent) for event in self.yaml.parse(text)):
                raise StudyError(f"{self.file}: aliases (*name) are not read in a study; write it out.")
            node = self.yaml.compose(text, Loader=self.yaml.SafeLoader)
        except self.yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise StudyError(f"{self.file}, line {line}: not YAML: {error.problem}.") from None
        except (self.yaml.YAMLError, RecursionError) as error:
            raise StudyError(f"{self.file}: not YAML: {' '.join(str(error).split())}") from None
        if node is None:
            raise StudyError(f"{self.file}: the file is empty.")
        return node

    def dataset(self, node: Any) -> DatasetEntry:
        if isinstance(node, self.yaml.ScalarNode):
            return DatasetEntry(self.spec(node))
        fields = self.fields(node, "a dataset", ("name", "alias", "encoder", "published", "settings"))
        if "name" not in fields:
            raise self.error(node, "the dataset has no name.")
        name = self.spec(fields["name"])
        encoder = self.typed(fields, "encoder", str, None)
        kind = get_spec(name).kind
        if encoder is not None:
            try:
                encodes = make_encoder(encoder).kind
            except (ValueError, TypeError) as error:
                raise self.error(fields["encoder"], str(error)) from None
            if encodes != kind:
                raise self.error(fields["encoder"], f"{encoder!r} cannot encode {name}, which is {kind}.")
        elif kind == "text" or get_spec(name).needs_encoder:
            raise self.error(node, f"{name} needs an encoder, such as 'encoder: {kind}:…'.")
        settings = self.mapping(fields["settings"]) if "settings" in fields else {}
        return DatasetEntry(
            name,
            self.typed(fields, "alias", str, ""),
            encoder,
            self.typed(fields, "published", bool, False),
            self.parameters(settings, "true-base"),
        )

    def spec(self, node: Any) -> str:
        name = self.value(node)
        try:
            return get_spec(name).name
        except (ValueError, TypeError) as error:
            raise self.error(node, str(error)) from None

    def approaches(self, node: Any, datasets: Iterable[DatasetEntry]) -> tuple[ApproachEntry, ...]:
        entries: tuple[ApproachEntry, ...] = self.unique(node, self.approach, "approach")
        known = [dataset.label for dataset in datasets]
        for child, entry in zip(node.value, entries, strict=True):
            if unknown := [name for name in entry.only if name not in known]:
                raise self.error(child, f"only: {show(unknown[0])} is not among the datasets {some(known)}.")
        return entries

    def approach(self, node: Any) -> ApproachEntry:
        fields = {"approach": node} if isinstance(node, self.yaml.ScalarNode) else self.mapping(node)
        if "approach" not in fields:
            raise self.error(node, "the entry has no 'approach:'.")
        name = self.value(fields["approach"])
        try:
            get_approach(name)
        except (ValueError, TypeError) as error:
            raise self.error(fields["approach"], str(error)) from None
        label = self.typed(fields, "label", str, None)
        only = self.value(fields["only"]) if "only" in fields else []
        if not isinstance(only, list):
            raise self.error(fields["only"], f"only must be a list of datasets, found {show(only)}.")
        own = {key: value for key, value in fields.items() if key not in ("approach", "label", "only")}
        parameters = self.parameters(own, name)
        try:
            _try_out(name, parameters)
        except (ValueError, TypeError) as error:
            raise self.error(node, f"{name}: {error}") from None
        shown = ", ".join(f"{key}={value}" for key, value in parameters.items())
        return ApproachEntry(name, label or (f"{name} ({shown})" if shown else name), parameters, tuple(only))

    def parameters(self, nodes: Mapping[str, Any], approach: str) -> dict[str, Any]:
        """Parameters of an estimator, with known names and values of the types of their defaults."""
        known, parameters = parameter_defaults(approach), {}
        for name, node in nodes.items():
            if name not in known:
                raise self.error(node, f"{approach} has no parameter {name!r}.{did_you_mean(name, known)}")
            value, default = self.value(node), known[name]
            value = tuple(value) if isinstance(value, list) else value
            if isinstance(default, float) and isinstance(value, str):
                value = _number(value)
            kind: type | tuple[type, ...] = (int, float) if isinstance(default, float) else type(default)
            if (default is not None and not isinstance(value, kind)) or (
                isinstance(value, bool) and not isinstance(default, bool)
            ):
                raise self.error(node, f"{name} must be like {default!r}, found {show(value)}.")
            parameters[name] = value
        return parameters

    def seeds(self, node: Any) -> tuple[int, ...]:
        value = SEEDS if node is None else self.value(node)
        seeds = range(value) if isinstance(value, int) and not isinstance(value, bool) else value
        valid = isinstance(seeds, list | range) and len(seeds) > 0 and len(set(map(str, seeds))) == len(seeds)
        if not valid or len(seeds) > 10_000 or not all(type(s) is int and 0 <= s < 2**31 for s in seeds):
            raise self.error(node, f"seeds must be their number or a list of them, found {show(value)}.")
        return tuple(seeds)

    # ---------------------------------------------------------------- nodes

    def unique(self, node: Any, read: Any, what: str) -> tuple[Any, ...]:
        if not isinstance(node, self.yaml.SequenceNode) or not node.value:
            raise self.error(node, f"expected a list of at least one {what}.")
        entries: dict[str, Any] = {}
        for child in node.value:
            entry = read(child)
            if entry.label in entries:
                key = "alias" if what == "dataset" else "label"
                raise self.error(child, f"{entry.label!r} stands twice; give one of them a {key} of its own.")
            entries[entry.label] = entry
        return tuple(entries.values())

    def fields(self, node: Any, what: str, known: Iterable[str]) -> dict[str, Any]:
        children = self.mapping(node)
        for key, child in children.items():
            if key not in known:
                raise self.error(
                    child, f"{what} has no {key!r}.{did_you_mean(key, known)} It has {', '.join(known)}."
                )
        return children

    def mapping(self, node: Any) -> dict[str, Any]:
        if not isinstance(node, self.yaml.MappingNode):
            raise self.error(node, f"expected 'name: value' pairs, found {self.shown(node)}.")
        children: dict[str, Any] = {}
        for key_node, child in node.value:
            key = self.value(key_node)
            if not isinstance(key, str) or key in children:
                problem = "stands twice" if isinstance(key, str) else "is no name"
                raise self.error(key_node, f"{self.shown(key_node)} {problem}.")
            children[key] = child
        return children

    def typed(self, fields: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
        if key not in fields:
            return default
        value = self.value(fields[key])
        if not isinstance(value, kind):
            expected = {"str": "a text", "bool": "true or false"}[kind.__name__]
            raise self.error(fields[key], f"{key} must be {expected}, found {show(value)}.")
        return value

    def value(self, node: Any) -> Any:
        try:
            return self.yaml.constructor.SafeConstructor().construct_document(node)
        except (self.yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
            problem = getattr(error, "problem", None) or str(error) or type(error).__name__
            raise self.error(node, f"a value that cannot be read: {problem}.") from None

    def shown(self, node: Any) -> str:
        return repr(node.value[:60]) if isinstance(node, self.yaml.ScalarNode) else f"a {node.id}"

    def error(self, node: Any, problem: str) -> StudyError:
        return StudyError(f"{self.file}, line {node.start_mark.line + 1}: {problem}")


def _number(text: str) -> float | str:
    """A number where the text is one: to YAML, 1e-2 is a text and 1.0e-2 a number."""
    try:
        return float(text)
    except ValueError:
        return text


def _try_out(name: str, parameters: Mapping[str, Any]) -> None:
    """Build the approach for a small problem, which refuses values that are wrong."""
    clf = make_classifier(name, **parameters)
    check_parameters(clf, True)
    own = {key: getattr(clf, key) for key in get_approach(name).hyper_parameters()}
    with randomness(0):  # leaves torch's generator as it was
        backbone, n_hidden = make_backbone("mlp", (4,), (8,), 0.0)
        get_approach(name)(Classifier(backbone, n_hidden, 20), 3, **own)
