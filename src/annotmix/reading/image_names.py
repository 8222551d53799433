"""Matching of the image files in a folder to the names that labels have for them.

Names are never used as paths: files are listed first, and names are compared with theirs.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

#: The prefix that Label Studio gives to the name of an uploaded file.
_UPLOADED = re.compile(r"^[0-9a-f]{8}-")
#: Its address of a file in a local folder: /data/local-files/?d=folder/photo.jpg
_LOCAL = re.compile(r"(?:^|&)d=([^&]*)")
#: Label Studio cuts a name so that `upload/12/ab12cd34-name.jpg` has this many characters, and puts a mark
#: before the ending.
_LONGEST_STORED = 100
_CUT = re.compile(r"(.+)_[A-Za-z0-9]{7}")


class ImageNames(NamedTuple):
    """Ids of image files.

    Attributes
    ----------
    ids : list of str
        One id per file, without repeats.
    rule : str
        How the files were named, in words.
    unclear : mapping of labelled item to list of str
        Items that fit several files, or share a file with another item, and the ids of these files.
    """

    ids: list[str]
    rule: str
    unclear: Mapping[str, list[str]]


def image_ids(folder: Path, paths: list[Path], wanted: Collection[str]) -> ImageNames:
    """An id for every file, by the rule that matches most of the `wanted` ids.

    Parameters
    ----------
    folder : Path
    paths : list of Path
        Files in it.
    wanted : collection of str
        Items with labels; may be empty.
    """
    inside = [path.relative_to(folder) for path in paths]
    unclear: dict[str, list[int]] = {}
    ways: dict[str, Callable[[], list[str]]] = {
        "their path in the folder": lambda: [path.as_posix() for path in inside],
        "their file name": lambda: [path.name for path in inside],
        "their file name without its ending": lambda: [path.stem for path in inside],
        "the addresses in the labels": lambda: _addressed(inside, wanted, unclear),
    }
    best: tuple[int, list[str], str] | None = None
    for called, name in ways.items():
        ids = [text.encode("utf-8", "replace").decode("utf-8") for text in name()]
        matched = len(set(wanted) & set(ids))
        if len(set(ids)) == len(ids) and (best is None or matched > best[0]):
            best = matched, ids, called
    if best is None:
        raise ValueError(f"Images in {str(folder)!r} cannot be distinguished by their names.")
    _, ids, rule = best
    known = set(ids)
    listed = {item: [ids[n] for n in places] for item, places in unclear.items() if item not in known}
    return ImageNames(ids, rule, listed)


def _addressed(inside: list[Path], wanted: Collection[str], unclear: dict[str, list[int]]) -> list[str]:
    """The id whose address is that of the file, where there is just one; else the file's path.

    Puts items that fit several files, or share a file, into `unclear`.
    """
    files = _Files(inside)
    claims: dict[int, list[str]] = defaultdict(list)
    for item in sorted(wanted):
        places = files.places(item)
        if len(places) == 1:
            claims[places[0]].append(item)
        elif places:
            unclear[item] = places
    for place, items in claims.items():
        if len(items) > 1:
            unclear.update((item, [place]) for item in items)
    return [
        claims[place][0] if len(claims.get(place, ())) == 1 else path.as_posix()
        for place, path in enumerate(inside)
    ]


class _Files:
    """Files by the names that addresses may have for them."""

    def __init__(self, inside: list[Path]):
        self._exact: dict[str, list[int]] = defaultdict(list)
        self._stored: dict[str, list[int]] = defaultdict(list)
        for place, path in enumerate(inside):
            for name in dict.fromkeys((path.as_posix(), path.name)):
                self._exact[name].append(place)
            # a name may have been composed differently (é as one or two characters) when it was uploaded
            forms = (path.name, *(unicodedata.normalize(form, path.name) for form in ("NFC", "NFD")))
            for name in dict.fromkeys((path.name, *map(stored_name, forms))):
                self._stored[name].append(place)

    def places(self, address: str) -> list[int]:
        """The files that an address may stand for, by the most specific rule that fits any.

        /data/upload/12/ab12cd34-photo.jpg: the file as it is stored, else as it was called before the upload.
        /data/local-files/?d=folder/photo.jpg: its path, else its name.
        """
        path = _path(address)
        name = path.rpartition("/")[2]
        for own in (path, name):
            if own in self._exact:
                return self._exact[own]
        uploaded = _UPLOADED.sub("", name)
        if uploaded == name:
            return []
        return self._stored.get(uploaded) or self._cut(path, uploaded)

    def _cut(self, path: str, uploaded: str) -> list[int]:
        """Files whose stored name was too long and begins and ends like this one."""
        if len(path[max(path.rfind("upload/"), 0) :]) < _LONGEST_STORED:
            return []
        ending = "".join(PurePosixPath(uploaded).suffixes)
        cut = _CUT.fullmatch(uploaded.removesuffix(ending))
        if cut is None:
            return []
        return sorted(
            {
                place
                for name, places in self._stored.items()
                if name.startswith(cut.group(1)) and name.endswith(ending)
                for place in places
            }
        )


def stored_name(name: str) -> str:
    """The name that Label Studio gives an uploaded file, after its prefix of eight hexadecimal digits.

    These are the rules of Django for the names of uploads: spaces become underscores, and only letters,
    digits, `_`, `-` and `.` stay.
    """
    printable = "".join(filter(str.isprintable, html.unescape(name).rpartition("\\")[2]))
    return re.sub(r"[^-\w.]", "", f"-{printable}".strip().replace(" ", "_"))[1:]


def plain_name(name: str) -> str:
    """The letters and digits of a name or address, to find names that may mean the same item.

    Without folders, Label Studio's prefix, the ending of a file, case, accents and leading zeros.
    """
    own = _UPLOADED.sub("", _path(name).rpartition("/")[2] or name)
    own = re.sub(r"\.[A-Za-z]\w{1,4}$", "", own)
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", own).casefold())).lstrip("0")


def _path(address: str) -> str:
    """The path in an address, "" where it is none."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    local = _LOCAL.search(parts.query)
    return unquote(local.group(1) if local else parts.path).lstrip("/")
