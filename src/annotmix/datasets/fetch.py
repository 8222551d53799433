"""Finding the files of datasets in the user's folders, or downloading them.

Why not pooch: every call downloads into a temporary file of its own, so that a download that broke off starts
again (archives here have up to 600 MB) and several processes fetch the same file several times (its issue 411
declines a lock); and it would bring requests and six more packages. `_download` and the three functions below
it do both with urllib.
"""

from __future__ import annotations

import email.utils
import hashlib
import http
import http.client
import os
import shutil
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from annotmix._common.cache import cache_folder
from annotmix._common.progress import Progress
from annotmix.datasets.rows import DatasetFileError
from annotmix.datasets.spec import File

#: Environment variable that names a data folder.
VARIABLE = "ANNOTMIX_DATA"
#: Seconds without a response after which a server counts as unreachable.
TIMEOUT = 10.0
_MEGABYTE = 1 << 20


class DatasetMissingError(FileNotFoundError):
    """A file that is in none of the folders; says where it comes from and where to put it."""


def data_folders(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """The folders in which files are looked for, in this order: `data_dir`, ANNOTMIX_DATA, the cache."""
    named = [data_dir, os.environ.get(VARIABLE), cache_folder() / "data"]
    return list(dict.fromkeys(Path(folder).expanduser() for folder in named if folder))


def find(file: File, folders: Iterable[Path]) -> Path | None:
    """The path of a file or folder, None where it is in no folder."""
    places = (folder / path for folder in folders for path in (file.path, *file.also))
    return next((place for place in places if place.exists()), None)


def obtain(
    files: Mapping[str, File],
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    progress: bool = True,
) -> dict[str, Path]:
    """The paths of files by their keys; missing files are downloaded.

    A download goes into the first of the folders that can be written to.
    """
    folders, paths = data_folders(data_dir), {}
    for key, file in files.items():
        path = find(file, folders)
        if path is None and download and file.url is not None:
            target = _writable(folders)
            try:
                _fetch(file, files.values(), target, progress)
            except (OSError, http.client.HTTPException) as error:
                raise _missing(file, folders, f"It could not be downloaded ({_reason(error)}).") from error
            path = target / file.path
        if path is None:
            raise _missing(file, folders, "" if download else "Downloads are switched off.")
        paths[key] = path
    return paths


def matches(path: Path, checksum: str) -> bool:
    """Whether a file has the checksum "sha256:…" or "md5:…"."""
    kind, _, expected = checksum.partition(":")
    digest = hashlib.new(kind, usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(_MEGABYTE):
            digest.update(block)
    return digest.hexdigest() == expected


def _fetch(file: File, others: Iterable[File], folder: Path, progress: bool) -> None:
    """Download a file, or the archive it is in together with all others from there, into `folder`."""
    assert file.url is not None
    if file.inside is None:
        _download(file.url, folder / file.path, file.checksum, progress)
        return
    archive = folder / Path(file.path).parent / Path(file.url).name
    _download(file.url, archive, file.checksum, progress)
    try:
        _unpack(archive, [other for other in others if other.url == file.url], folder, progress)
    finally:
        archive.unlink(missing_ok=True)


def _download(url: str, path: Path, checksum: str | None, progress: bool) -> None:
    """Fetch `url` as `path`, which appears only when it is whole and has its checksum.

    A broken download stays beside it as `.part`, and the next try resumes there if the server supports it
    and its file is still the same.
    """
    locks = cache_folder() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:16]):
        if path.exists():  # another process was quicker
            return
        part = path.with_name(f"{path.name}.part")
        _receive(url, part, progress)
        if checksum is not None and not matches(part, checksum):
            part.unlink()
            raise DatasetFileError(path, f"the file from {url} does not have the {checksum}; it was deleted.")
        part.replace(path)


def _receive(url: str, part: Path, progress: bool) -> None:
    """Bring `part` to its full length."""
    with _open(url, part) as reply:
        resumes = reply.status == http.HTTPStatus.PARTIAL_CONTENT
        done = part.stat().st_size if resumes else 0
        length = reply.headers["Content-Length"]
        total = None if length is None else done + int(length)
        steps = Progress(f"{part.stem} (MB)", _megabytes(total or 0), done // _MEGABYTE, show=progress)
        part.parent.mkdir(parents=True, exist_ok=True)  # not before: without a network no folder is made
        try:
            with open(part, "ab" if resumes else "wb") as file, steps:
                while block := reply.read(_MEGABYTE):
                    file.write(block)
                    steps.advance()
        finally:
            _keep_for_later(part, reply.headers["Last-Modified"])
    if total is not None and part.stat().st_size != total:
        raise ConnectionError(f"{part.stat().st_size} of {total} bytes arrived; try again to resume there")


def _open(url: str, part: Path) -> Any:
    """The server's response: the missing bytes of `part` where possible, else the whole file."""
    # some servers refuse clients that call themselves Python
    request = urllib.request.Request(url, headers={"User-Agent": "annotmix"})
    if part.exists():
        request.add_header("Range", f"bytes={part.stat().st_size}-")
        request.add_header("If-Range", email.utils.formatdate(part.stat().st_mtime, usegmt=True))
    try:
        return urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        part.unlink()  # it is complete, or longer than the file: start again
        return _open(url, part)


def _keep_for_later(part: Path, modified: str | None) -> None:
    """Give a part the time of the server's file, by which the server knows whether it is still the same."""
    stamp = email.utils.mktime_tz(parsed) if (parsed := email.utils.parsedate_tz(modified)) else time.time()
    os.utime(part, (stamp, stamp))


def _unpack(archive: Path, files: Iterable[File], folder: Path, progress: bool) -> None:
    """Extract the needed files of a tar archive to their paths, each in one step."""
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".unpacking-") as temporary:
        try:
            with open(archive, "rb") as raw, tarfile.open(fileobj=raw, mode="r:*") as tar:
                size = _megabytes(archive.stat().st_size)
                with Progress(f"Unpacking {archive.name} (MB)", size, show=progress) as steps:
                    for member in tar:
                        tar.extract(member, temporary, filter="data")
                        while steps.done < raw.tell() // _MEGABYTE:
                            steps.advance()
        except (tarfile.TarError, EOFError, zlib.error) as error:
            raise DatasetFileError(archive, f"not a whole archive ({error}).") from error
        for file in files:
            source, target = Path(temporary, file.inside or ""), folder / file.path
            if not source.exists():
                raise DatasetFileError(archive, f"there is no {file.inside!r} in this archive.")
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(source, target)


def _writable(folders: Iterable[Path]) -> Path:
    """The first folder that can be written to, or made."""
    for folder in folders:
        existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
        if existing.is_dir() and os.access(existing, os.W_OK):
            return folder
    raise PermissionError(f"None of these folders can be written to: {', '.join(map(str, folders))}.")


def _missing(file: File, folders: list[Path], why: str) -> DatasetMissingError:
    within = f", as {file.inside!r} in that archive" if file.inside else ""
    home = f"It comes from {file.url}{within}." if file.url else "It has no public home."
    looked = ", ".join(repr(str(folder)) for folder in folders)
    return DatasetMissingError(
        f"{file.path!r} is in none of the data folders {looked}. {home} {why}{' ' if why else ''}Put it at "
        f"{str(folders[0] / file.path)!r}, or name the folder that has it with data_dir= or {VARIABLE}."
    )


def _megabytes(size: int) -> int:
    return -(-size // _MEGABYTE)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server says {error.code} {error.reason}"
    return str(getattr(error, "reason", None) or error)
