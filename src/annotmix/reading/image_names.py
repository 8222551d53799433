"""Matching of the image files in a folder to the names that labels have for them.

Names are never used as paths: files are listed first, and names are compared with theirs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: The prefix that Label Studio gives to the name of an uploaded file.
_UPLOADED = re.compile(r"^[0-9a-f]{8}-")
#: Its address of a file in a local folder: /data/local-files/?d=folder/photo.jpg
_LOCAL = re.compile(r"(?:^|&)d=([^&]*)")


def image_ids(folder: Path, paths: list[Path], wanted: Collection[str]) -> tuple[list[str], str]:
    """An id for every file, by the rule that matches most of the `wanted` ids, and the name of the rule.

    Parameters
    ----------
    folder : Path
    paths : list of Path
        Files in it.
    wanted : collection of str
        Items with labels; may be empty.
    """
    inside = [path.relative_to(folder) for path in paths]
    ways: dict[str, Callable[[], list[str]]] = {
        "their path in the folder": lambda: [path.as_posix() for path in inside],
        "their file name": lambda: [path.name for path in inside],
        "their file name without its ending": lambda: [path.stem for path in inside],
        "the addresses in the labels": lambda: _addressed(inside, wanted),
    }
    best: tuple[int, list[str], str] | None = None
    for called, name in ways.items():
        ids = [text.encode("utf-8", "replace").decode("utf-8") for text in name()]
        matched = len(set(wanted) & set(ids))
        if len(set(ids)) == len(ids) and (best is None or matched > best[0]):
            best = matched, ids, called
    if best is None:
        raise ValueError(f"Images in {str(folder)!r} cannot be distinguished by their names.")
    return best[1], best[2]


def _addressed(inside: list[Path], wanted: Collection[str]) -> list[str]:
    """The id whose address ends in the file, where there is just one; else the file's path."""
    places: dict[str, set[int]] = defaultdict(set)
    for place, path in enumerate(inside):
        places[path.as_posix()].add(place)
        places[path.name].add(place)
    claims: dict[int, list[str]] = defaultdict(list)
    for item in wanted:
        for place in next((places[name] for name in _file_names(item) if len(places.get(name, ())) == 1), ()):
            claims[place].append(item)
    return [
        claims[place][0] if len(claims.get(place, ())) == 1 else path.as_posix()
        for place, path in enumerate(inside)
    ]


def _file_names(address: str) -> list[str]:
    """Files that an address may stand for, most specific first.

    /data/upload/12/ab12cd34-photo.jpg: the file as it is stored, and as it was called before the upload.
    /data/local-files/?d=folder/photo.jpg: its path, and its name.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return []
    local = _LOCAL.search(parts.query)
    path = unquote(local.group(1) if local else parts.path).lstrip("/")
    name = path.rpartition("/")[2]
    return [path, name, _UPLOADED.sub("", name)]
