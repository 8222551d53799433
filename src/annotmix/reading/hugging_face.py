"""Datasets of Hugging Face as files: folders of Arrow or Parquet, with the names of their classes.

`save_to_disk` writes `state.json`, `dataset_info.json` and `data-00000-of-00001.arrow` (a stream of Arrow),
and with several splits one such folder per split beside `dataset_dict.json`. A repository of the hub holds
`data/train-00000-of-00001.parquet`. The names of the classes are in the metadata of each file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annotmix._common.optional import require
from annotmix._common.words import count
from annotmix.reading.input_files import InputFile, Source, fingerprint

_ENDINGS = (".arrow", ".parquet")
#: `train` in train-00000-of-00001.parquet.
_SHARD = re.compile(r"(.+?)-\d{5}-of-\d{5}")
_DEEPEST = 4


def is_dataset(path: Path) -> bool:
    """Whether a path is a folder of a dataset, a file of Arrow, or Parquet with nested or named values."""
    if path.is_dir():
        return bool(_files(path))
    if path.suffix.lower() == ".arrow":
        return path.is_file()
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return False
    try:
        from pyarrow import parquet

        schema = parquet.read_schema(path)
    except Exception:  # the usual reader says what is wrong
        return False
    return b"huggingface" in (schema.metadata or {}) or any(map(_is_nested, schema))


class DatasetFiles(InputFile):
    """A dataset of Hugging Face, read like one file; all of its splits, one after the other.

    Parameters
    ----------
    path : Path
        A folder, or a file of Arrow or Parquet.
    """

    def __init__(self, path: Path):
        require("pyarrow", "parquet", f"{path.name!r} holds Arrow or Parquet; its reader")
        files = _files(path) if path.is_dir() else {"": [path]}
        self.path, self.notes, self.records = path, list[str](), []
        digest, nested = hashlib.sha256(), False
        for split, listed in files.items():
            rows = 0
            for file in listed:
                table = _read(file)
                nested |= any(map(_is_nested, table.schema))
                self.records += _named(table, self.notes)
                rows += len(table)
                digest.update(fingerprint(file).encode())
            if len(files) > 1:
                self.notes.append(f"{path.name}: {count(rows, 'row')} of the split {split!r}.")
        if not self.records:
            raise ValueError(f"{str(path)!r} holds no rows.")
        self.notes = list(dict.fromkeys(self.notes))
        self._rows, self._sha256 = len(self.records), digest.hexdigest()
        if not nested:
            self.table = self.table  # like any other table from here on
            self.records = None

    def source(self, role: str) -> Source:
        """The facts about this dataset that a run keeps."""
        return Source(role, self.name, self._sha256, self._rows)


def _files(folder: Path) -> dict[str, list[Path]]:
    """The files of every split; empty where a folder is no dataset."""
    if (folder / "dataset_dict.json").is_file():
        names = _json(folder / "dataset_dict.json").get("splits")
        listed = [str(name) for name in names] if isinstance(names, list) else []
        splits = {name: _saved(folder / name) for name in listed if Path(name).name == name}
        return {name: files for name, files in splits.items() if files}
    if (folder / "state.json").is_file():
        return {"": files} if (files := _saved(folder)) else {}
    if any(file.suffix.lower() in (".json", ".jsonl", ".ndjson", ".csv") for file in folder.iterdir()):
        return {}  # a folder of other files
    splits = {}
    for file in sorted(folder.rglob("*")):
        inside = file.relative_to(folder)
        if file.suffix.lower() in _ENDINGS and file.is_file() and len(inside.parts) <= _DEEPEST:
            shard = _SHARD.fullmatch(file.stem)
            split = shard.group(1) if shard else inside.parts[-2] if len(inside.parts) > 1 else file.stem
            splits.setdefault(split, []).append(file)
    # several files at the top that are no shards of one table may be one file per annotator
    alone = all(_SHARD.fullmatch(file.stem) is None for files in splits.values() for file in files)
    top = all(file.parent == folder for files in splits.values() for file in files)
    return {} if alone and top and len(splits) > 1 else splits


def _saved(folder: Path) -> list[Path]:
    """The files that `save_to_disk` wrote, in their order; their names are compared, not used as paths."""
    there = {file.name: file for file in sorted(folder.glob("*.arrow")) if not file.name.startswith("cache-")}
    state = _json(folder / "state.json").get("_data_files") if (folder / "state.json").is_file() else None
    names = [entry.get("filename") for entry in state or [] if isinstance(entry, dict)]
    return [there[name] for name in names if name in there] or list(there.values())


def _json(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(f"{str(path)!r} is no whole JSON file; save the dataset again.") from None
    return content if isinstance(content, dict) else {}


def _read(path: Path) -> Any:
    """The table in a file of Arrow or Parquet, checked: offsets in a damaged file may point anywhere."""
    try:
        table = _open(path)
        table.validate(full=True)
    except Exception as error:  # the readers raise many kinds
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{str(path)!r} is not a whole file of Arrow or Parquet: {first:.200}") from None
    return table


def _open(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    if path.suffix.lower() == ".parquet":
        return parquet.read_table(path)
    with pa.OSFile(str(path)) as file:
        try:
            return pa.ipc.open_stream(file).read_all()
        except pa.ArrowInvalid:
            file.seek(0)
            return pa.ipc.open_file(file).read_all()


def _named(table: Any, notes: list[str]) -> list[dict[str, Any]]:
    """Rows with the names of classes in place of their numbers, without images and sounds."""
    binary = [field.name for field in table.schema if _is_binary(field.type)]
    if binary:
        notes.append(f"Columns with images, sounds or other bytes are not read: {', '.join(binary[:5])}.")
    rows: list[dict[str, Any]] = table.drop_columns(binary).to_pylist()
    features = _features(table.schema)
    for column in table.column_names:
        feature = features.get(column)
        if column not in binary and _has_names(feature):
            for row in rows:
                row[column] = _with_names(row[column], feature)
            notes.append(f"The numbers in {column!r} are classes and were read by their names.")
    return rows


def _features(schema: Any) -> Mapping[str, Any]:
    """The types of the columns, as Hugging Face writes them into the metadata of a file."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError, RecursionError):
        return {}
    return features if isinstance(features, dict) else {}


def _has_names(feature: Any) -> bool:
    if isinstance(feature, list):
        return any(map(_has_names, feature))
    if not isinstance(feature, dict):
        return False
    if feature.get("_type") == "ClassLabel":
        return isinstance(feature.get("names"), list)
    return any(map(_has_names, feature.values()))


def _with_names(value: Any, feature: Any) -> Any:
    """A value with names in place of the numbers of classes; None for a number without a name, such as -1."""
    if isinstance(feature, list):
        feature = {"feature": feature[0] if feature else None}
    if not isinstance(feature, dict) or value is None:
        return value
    if feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        if isinstance(names, list) and isinstance(value, int) and 0 <= value < len(names):
            return str(names[value])
        return None
    if "feature" in feature:
        inner = feature["feature"]
        if isinstance(value, list):
            return [_with_names(own, inner) for own in value]
        if isinstance(value, dict) and isinstance(inner, dict):  # a sequence of records is a record of lists
            return {key: _with_names(own, {"feature": inner.get(key)}) for key, own in value.items()}
        return value
    if isinstance(value, dict):
        return {key: _with_names(own, feature.get(key)) for key, own in value.items()}
    return value


def _is_nested(field: Any) -> bool:
    return bool(field.type.num_fields) and not _is_binary(field.type)


def _is_binary(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return True
    return any(_is_binary(kind.field(n).type) for n in range(kind.num_fields))
