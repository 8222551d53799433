"""Locks: one holder at a time, whose end, however it comes, lets the next one in."""

from __future__ import annotations

import os
import time

import pytest
from helpers.interrupted import die, exit_code, fork

from annotmix._common.locks import LockedError, hold

MESSAGE = ("The store is in use", "Wait.")


def test_the_file_is_there_only_meanwhile(tmp_path):
    path = tmp_path / "new" / "lock"
    with hold(path, 0, *MESSAGE) as lock:
        assert path.is_file()
        assert not lock.lost
    assert list(path.parent.iterdir()) == []


def test_another_one_is_refused_and_told_by_whom(tmp_path):
    with hold(tmp_path / "lock", 0, *MESSAGE):
        expected = rf"^The store is in use \(process {os.getpid()} on '.*'\)\. Wait\.$"
        with pytest.raises(LockedError, match=expected), hold(tmp_path / "lock", 0, *MESSAGE):
            pass
        (tmp_path / "lock").write_text("[1]")
        with pytest.raises(LockedError, match=r"^The store is in use\. Wait\.$"):
            hold(tmp_path / "lock", 0, *MESSAGE).__enter__()


def test_a_kill_lets_the_next_one_in(tmp_path):
    def work():
        with hold(tmp_path / "lock", 0, *MESSAGE):
            die()

    assert exit_code(fork(work)) < 0
    assert (tmp_path / "lock").exists()
    with hold(tmp_path / "lock", 0, *MESSAGE):
        pass
    assert not (tmp_path / "lock").exists()


def test_waiting(tmp_path):
    def work():
        with hold(tmp_path / "lock", 0, *MESSAGE):
            (tmp_path / "held").touch()
            time.sleep(0.2)

    child = fork(work)
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    with hold(tmp_path / "lock", 60, *MESSAGE):
        pass
    assert exit_code(child) == 0


def test_the_lock_of_another_holder_is_not_removed(tmp_path):
    path = tmp_path / "lock"
    with hold(path, 0, *MESSAGE) as lost:
        path.unlink()
        assert lost.lost
        with hold(path, 0, *MESSAGE) as other:
            assert lost.lost
            assert not other.lost
            path.rename(tmp_path / "kept")
            (tmp_path / "kept").rename(path)
            kept = path.read_bytes()
        path.write_bytes(kept)
    assert path.read_bytes() == kept
