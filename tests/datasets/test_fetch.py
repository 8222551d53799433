"""Finding and downloading files, from a server on this machine."""

from __future__ import annotations

import email.utils
import hashlib
import io
import socket
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from annotmix._common.cache import cache_folder
from annotmix.datasets import DatasetFileError, DatasetMissingError, fetch
from annotmix.datasets.fetch import data_folders, find, matches, obtain
from annotmix.datasets.spec import File

CONTENT = bytes(range(256)) * 40
SHA256 = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
JANUARY, MARCH = 1_700_000_000, 1_705_000_000


class Handler(BaseHTTPRequestHandler):
    """Serves `server.content`; breaks off after `server.stop` bytes; knows ranges where `server.ranges`."""

    def do_GET(self):
        server = self.server
        server.seen.append(dict(self.headers))
        time.sleep(server.delay)
        if self.path not in ("/file", "/file.tar.gz"):
            self.send_error(404, "Not Found")
            return
        modified = email.utils.formatdate(server.modified, usegmt=True)
        first, wanted = 0, self.headers.get("Range")
        if wanted and server.ranges and self.headers.get("If-Range") == modified:
            first = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if first >= len(server.content):
                self.send_error(416, "Range Not Satisfiable")
                return
        body = server.content[first:]
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", modified)
        self.end_headers()
        self.wfile.write(body[: server.stop])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.content, server.modified, server.stop, server.ranges, server.delay = (
        CONTENT,
        JANUARY,
        None,
        True,
        0,
    )
    server.seen = []
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def archive(**files):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return raw.getvalue()


# -------------------------------------------------------------------- finding


def test_folders_in_order(tmp_path, monkeypatch, own_cache):
    assert cache_folder() == own_cache
    assert data_folders() == [own_cache / "data"]
    monkeypatch.setenv("ANNOTMIX_DATA", str(tmp_path / "b"))
    assert data_folders(tmp_path / "a") == [tmp_path / "a", tmp_path / "b", own_cache / "data"]
    file = File("set/file", also=("file",))
    assert find(file, data_folders(tmp_path / "a")) is None
    for place in (own_cache / "data" / "set", tmp_path / "b", tmp_path / "a" / "set"):
        place.mkdir(parents=True)
        (place / "file").touch()
        assert find(file, data_folders(tmp_path / "a")) == place / "file"


def test_cache_of_the_user(monkeypatch, tmp_path):
    monkeypatch.delenv("ANNOTMIX_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "annotmix"


def test_what_is_there_is_never_downloaded(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"mine")
    monkeypatch.setattr("urllib.request.urlopen", None)
    assert obtain({"x": File("file", "http://nowhere.invalid/file", SHA256)}, tmp_path) == {
        "x": tmp_path / "file"
    }


@pytest.mark.parametrize("url", ["http://nowhere.invalid/file", None])
def test_missing_without_downloads(url, tmp_path, monkeypatch, own_cache):
    monkeypatch.setattr("urllib.request.urlopen", None)
    with pytest.raises(DatasetMissingError) as error:
        obtain({"x": File("set/file", url)}, tmp_path, download=url is None)
    text = str(error.value)
    assert repr(str(tmp_path / "set" / "file")) in text
    assert str(own_cache / "data") in text
    assert ("It has no public home." in text) == (url is None)
    assert ("Downloads are switched off." in text) == (url is not None)


# -------------------------------------------------------------------- downloading


@pytest.mark.parametrize("checksum", [SHA256, f"md5:{hashlib.md5(CONTENT).hexdigest()}", None])
def test_download(server, tmp_path, checksum):
    paths = obtain({"x": File("set/file", f"{server.url}/file", checksum)}, tmp_path / "new")
    assert paths == {"x": tmp_path / "new" / "set" / "file"}
    assert paths["x"].read_bytes() == CONTENT
    assert [path.name for path in paths["x"].parent.iterdir()] == ["file"]
    assert matches(paths["x"], SHA256)
    obtain({"x": File("set/file", f"{server.url}/file", checksum)}, tmp_path / "new")
    assert len(server.seen) == 1


def test_wrong_checksum_leaves_nothing(server, tmp_path):
    server.content = CONTENT[:-1] + b"?"
    with pytest.raises(DatasetFileError, match=f"does not have the {SHA256}; it was deleted"):
        obtain({"x": File("set/file", f"{server.url}/file", SHA256)}, tmp_path)
    assert list((tmp_path / "set").iterdir()) == []


@pytest.mark.parametrize("checksum", [SHA256, None])
def test_a_broken_download_goes_on(server, tmp_path, checksum):
    file = {"x": File("file", f"{server.url}/file", checksum)}
    server.stop = 5000
    with pytest.raises(DatasetMissingError, match=r"5000 of 10240 bytes arrived; try again"):
        obtain(file, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file.part"]
    server.stop = None
    assert obtain(file, tmp_path)["x"].read_bytes() == CONTENT
    assert server.seen[-1]["Range"] == "bytes=5000-"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_changed_meanwhile_is_fetched_anew(server, tmp_path):
    file = {"x": File("file", f"{server.url}/file")}
    server.stop = 5000
    with pytest.raises(DatasetMissingError):
        obtain(file, tmp_path)
    server.stop, server.content, server.modified = None, b"new" * 3000, MARCH
    assert obtain(file, tmp_path)["x"].read_bytes() == b"new" * 3000


def test_a_server_without_ranges(server, tmp_path):
    file = {"x": File("file", f"{server.url}/file", SHA256)}
    server.stop, server.ranges = 5000, False
    with pytest.raises(DatasetMissingError):
        obtain(file, tmp_path)
    server.stop = None
    assert obtain(file, tmp_path)["x"].read_bytes() == CONTENT


def test_a_part_that_was_whole_or_too_long(server, tmp_path):
    part = tmp_path / "file.part"
    part.write_bytes(CONTENT)
    fetch._keep_for_later(part, email.utils.formatdate(JANUARY, usegmt=True))
    assert obtain({"x": File("file", f"{server.url}/file", SHA256)}, tmp_path)["x"].read_bytes() == CONTENT
    assert len(server.seen) == 2


def test_several_at_once_fetch_once(server, tmp_path):
    server.delay = 0.1
    file = {"x": File("file", f"{server.url}/file", SHA256)}
    threads = [threading.Thread(target=obtain, args=(file, tmp_path)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert len(server.seen) == 1


def test_no_network_is_said_at_once(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/file"
    started = time.monotonic()
    with pytest.raises(DatasetMissingError) as error:
        obtain({"x": File("set/file", url)}, tmp_path)
    assert time.monotonic() - started < 5
    text = str(error.value)
    assert "'set/file'" in text
    assert f"It comes from {url}. It could not be downloaded (" in text
    assert f"Put it at {str(tmp_path / 'set' / 'file')!r}" in text
    assert list(tmp_path.iterdir()) == []


def test_a_silent_server_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "TIMEOUT", 0.2)
    server.delay = 1
    with pytest.raises(DatasetMissingError, match="timed out"):
        obtain({"x": File("file", f"{server.url}/file")}, tmp_path)


def test_a_server_that_has_no_such_file(server, tmp_path):
    with pytest.raises(DatasetMissingError, match="the server says 404 Not Found"):
        obtain({"x": File("file", f"{server.url}/other")}, tmp_path)


def test_the_first_folder_that_can_be_written_to(server, tmp_path, monkeypatch, own_cache):
    (tmp_path / "taken").write_text("a file, not a folder")
    monkeypatch.setenv("ANNOTMIX_DATA", str(tmp_path / "b"))
    file = {"x": File("file", f"{server.url}/file")}
    assert obtain(file, tmp_path / "taken") == {"x": tmp_path / "b" / "file"}


# -------------------------------------------------------------------- archives


def two(server):
    url = f"{server.url}/file.tar.gz"
    return {"a": File("set/one", url, inside="top/1.txt"), "b": File("set/folder", url, inside="top/2")}


def test_archive_is_unpacked_once(server, tmp_path):
    server.content = archive(**{"top/1.txt": b"one", "top/2/x": b"two", "top/other": b"-"})
    paths = obtain(two(server), tmp_path)
    assert paths["a"].read_bytes() == b"one"
    assert (paths["b"] / "x").read_bytes() == b"two"
    assert sorted(path.name for path in (tmp_path / "set").iterdir()) == ["folder", "one"]
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (archive(**{"top/1.txt": bytes(9999), "top/2/x": b"two"})[:-20], "not a whole archive"),
        (archive(**{"top/1.txt": b"one"}), "there is no 'top/2' in this archive"),
        (archive(**{"../../evil": b"one"}), "not a whole archive"),
        (b"<html>Sorry</html>", "not a whole archive"),
    ],
)
def test_bad_archives_leave_nothing(server, tmp_path, content, message):
    server.content = content
    folder = tmp_path / "data"
    files = dict(reversed(two(server).items()))
    with pytest.raises(DatasetFileError, match=message):
        obtain(files, folder)
    assert list((folder / "set").iterdir()) == []
    assert not list(tmp_path.rglob("evil"))
