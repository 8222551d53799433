"""The options of `annotmix fit`. Nothing slow is imported here, so that help comes at once."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

DEFAULT_APPROACH = "annot-mix-plus"
#: What `--model` takes.
MODELS = ("network", "logistic", "boosting", "auto")
EPOCHS = 50


@dataclass(frozen=True)
class Request:
    """Options of `annotmix fit`, by their names there; None stands for the default or an automatic choice."""

    labels: tuple[Path, ...]
    out: Path = Path("annotmix-run")
    features: Path | None = None
    ids: Path | None = None
    text: Path | None = None
    text_column: str | None = None
    images: Path | None = None
    format: str | None = None
    item: str | None = None
    annotator: str | None = None
    label: str | None = None
    weight: str | None = None
    item_column: str | None = None
    missing: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    fold_case: bool = False
    rename_classes: Path | None = None
    multi_label: bool = False
    delimiter: str | None = None
    no_class: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    encoder: str | None = None
    model: str = "network"
    approach: str = DEFAULT_APPROACH
    epochs: int = EPOCHS
    valid: Path | None = None
    gold: Path | None = None
    seed: int = 0
    devices: int = 1
    resume: bool = False
    overwrite: bool = False

    def settings(self) -> dict[str, Any]:
        """The options that differ from their defaults, without --resume and --overwrite."""
        own = {
            option.name: getattr(self, option.name)
            for option in fields(self)
            if option.name not in ("labels", "resume", "overwrite")
            and getattr(self, option.name) != option.default
        }
        as_text = {name: str(value) if isinstance(value, Path) else value for name, value in own.items()}
        return {"labels": [str(path) for path in self.labels], **as_text}

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> Request:
        """The inverse of `settings`; refuses other options, and values of another type."""
        import msgspec

        known = {option.name for option in fields(cls)} - {"resume", "overwrite"}
        if unknown := settings.keys() - known:
            raise ValueError(f"the request has the unknown option {min(unknown)!r:.60}")

        def path(kind: type, value: Any) -> Any:
            if kind is not Path or not isinstance(value, str):
                raise ValueError(f"expected {kind.__name__}, found {value!r:.60}")
            return Path(value)

        try:
            return msgspec.convert(dict(settings), cls, strict=True, dec_hook=path)
        except msgspec.ValidationError as error:
            raise ValueError(f"the request is damaged ({error})") from None

    def command(self, *more: str) -> str:
        """The command line with the same options."""
        words = ["annotmix", "fit", *map(str, self.labels)]
        for name, value in self.settings().items():
            if name != "labels":
                option = "--" + name.replace("_", "-")
                for one in value if isinstance(value, tuple) else [value]:
                    words += [option] if one is True else [option, _quoted(one, name)]
        return shlex.join([*words, *more])


def request_of(run_file: Path) -> Request:
    """The options that a run was made with, from its file `run.json`."""
    from annotmix._common.schema import SchemaError, read_json

    try:
        return Request.of_settings(read_json(run_file, dict[str, Any])["request"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, SchemaError):
            raise
        raise ValueError(f"{str(run_file)!r} is damaged or not written by annotmix ({error}).") from None


def split_names(values: Iterable[str]) -> tuple[str, ...]:
    """Names of columns from options that list them, separated by commas; quotes keep a comma in a name."""
    return tuple(name.strip() for row in csv.reader(values) for name in row if name.strip())


def _quoted(value: Any, option: str) -> str:
    """A value as its option takes it; a name with a comma in quotes."""
    text = str(value)
    if option in ("annotators", "exclude") and ("," in text or '"' in text):
        return '"' + text.replace('"', '""') + '"'
    return text
