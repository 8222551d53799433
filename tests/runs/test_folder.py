"""A run's folder: nothing is lost whenever a process ends, and one process at a time works there."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from itertools import count

import pytest
import torch
from helpers.interrupted import (
    CHANGES,
    acting,
    as_nobody,
    die,
    exit_code,
    fail,
    fork,
    interrupt,
    killed_at,
    make_run,
    overwrite,
    public_folder,
    which,
    write_parts,
)

from annotmix._common.locks import LockedError
from annotmix.runs import folder as folder_module
from annotmix.runs.exchange import ExchangeError
from annotmix.runs.folder import RunFolder
from annotmix.training.checkpoints import Training, save_checkpoint
from annotmix.training.tensor_files import load_model, save_model


def hidden(folder):
    return sorted(path.name for path in folder.rglob(".*"))


def next_command(path):
    """What any command does first."""
    with suppress(ValueError):  # there may be none
        RunFolder(path).require()


# ---------------------------------------------------------------- old or new, at every moment


@pytest.mark.parametrize(("old", "changes"), [(True, CHANGES), (False, ("replace",))])
def test_killed_at_every_change_of_files(tmp_path, old, changes):
    results = []
    for number in count(1):
        path = tmp_path / str(number)
        make_run(path, old)
        killed = killed_at(path, number, changes)
        next_command(path)
        results.append(which(path))
        assert hidden(path) == [], number
        if not killed:
            break
        overwrite(path)
        assert which(path) == "new"
    kept = results.index("new")
    assert results == ["old" if old else "none"] * kept + ["new"] * (len(results) - kept)
    assert kept > 2
    assert len(results) - kept > 8  # every single move after the one that counts


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("act", [interrupt, fail])
def test_stopped_at_every_rename(tmp_path, act, after):
    results, raised = [], []
    for number in count(1):
        path = tmp_path / str(number)
        make_run(path)
        with acting(act, number, after=after) as seen:
            try:
                overwrite(path)
                raised.append(False)
            except (KeyboardInterrupt, OSError):
                raised.append(True)
        results.append(which(path))  # without any command after it
        assert hidden(path) == []
        if len(seen) < number:
            break
    assert set(results) == {"old", "new"}
    assert len(results) > 16
    if act is fail:  # an error that was raised means: the old run
        assert [result == "old" for result in results] == raised
    else:
        assert raised == [True] * (len(raised) - 1) + [False]


def test_every_rename_fails_from_some_moment_on(tmp_path):
    for number in count(1):
        path = tmp_path / str(number)
        make_run(path)
        original, calls = os.replace, []

        def replace(*arguments, original=original, calls=calls, number=number):
            calls.append(arguments)
            if len(calls) >= number:
                fail()
            original(*arguments)

        os.replace = replace
        try:
            overwrite(path)
        except OSError:
            pass
        finally:
            os.replace = original
        next_command(path)
        assert which(path) in ("old", "new")
        assert hidden(path) == []
        if len(calls) < number:
            break


@pytest.mark.parametrize("part", ["model", "findings", "run.json", "items.csv"])
def test_a_part_that_cannot_be_moved(tmp_path, monkeypatch, part):
    make_run(tmp_path)
    original = os.replace

    def replace(source, target):
        if os.path.basename(source) == part:
            fail()
        original(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises(ExchangeError, match=r"Permission denied.*the old ones are all there"):
            overwrite(tmp_path)
    assert which(tmp_path) == "old"
    assert hidden(tmp_path) == []
    overwrite(tmp_path)
    assert which(tmp_path) == "new"


def test_permissions_that_forbid_to_move_a_part():
    def forbid():
        model.chmod(0o555)
        with pytest.raises(PermissionError, match="model' cannot be replaced"):  # before the work
            overwrite(path)
        model.chmod(0o755)
        with pytest.raises(ExchangeError, match="Permission denied"):
            overwrite(path, before=lambda: model.chmod(0o555))

    with public_folder() as folder:
        path, model = folder / "run", folder / "run" / "model"
        make_run(path)
        assert as_nobody(folder, forbid)
        assert which(path) == "old"
        assert hidden(path) == []


def test_an_exchange_that_cannot_be_finished_later_is_undone_with_a_clear_error(tmp_path, monkeypatch):
    make_run(tmp_path)
    for number in count(1):
        shutil.rmtree(tmp_path)
        make_run(tmp_path)
        assert killed_at(tmp_path, number, ("replace",))
        if not (tmp_path / "run.json").exists():
            break
    original = os.replace

    def replace(source, target):
        if os.path.basename(source) == "model" and ".finished-" in str(source):
            fail()
        original(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(ExchangeError, match="the old ones are all there"):
        RunFolder(tmp_path).require()
    assert RunFolder(tmp_path).require().complete
    assert which(tmp_path) == "old"


def test_a_failure_while_the_parts_are_written_leaves_everything(tmp_path):
    make_run(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        overwrite(tmp_path, before=interrupt)
    assert which(tmp_path) == "old"
    assert hidden(tmp_path) == []


def test_some_parts_alone_are_replaced_beside_a_training(tmp_path):
    make_run(tmp_path)
    training, other = RunFolder(tmp_path), RunFolder(tmp_path)
    with training.claim(True, True):
        with other.require().replace() as stage:
            (stage / "report.html").write_text("another")
        assert (tmp_path / "report.html").read_text() == "another"
        assert (tmp_path / "run.json").read_text() == "old run.json"
        assert (training.checkpoint / "checkpoint.safetensors").read_text() == "state"


def test_links_in_a_journal_lead_nowhere(tmp_path):
    path, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    make_run(path)
    write_parts(elsewhere, "foreign")
    (path / ".finished-a").symlink_to(elsewhere)
    (path / ".replaced-b").symlink_to(elsewhere)
    (path / ".unfinished-c").symlink_to(elsewhere)
    RunFolder(path).require()
    assert which(path) == "old"
    assert hidden(path) == []
    assert (elsewhere / "model" / "model.json").read_text() == "foreign model"


# ---------------------------------------------------------------- one process at a time


def test_the_second_process_is_refused_at_once_and_readers_are_not(tmp_path):
    make_run(tmp_path / "run")
    with RunFolder(tmp_path / "run").claim(overwrite=True):
        expected = rf"Another annotmix fit is working in '.*run' \(process {os.getpid()} on '.+'\)\. Wait"
        with (
            pytest.raises(LockedError, match=expected),
            RunFolder(tmp_path / "run").claim(overwrite=True),
        ):
            pass
        assert RunFolder(tmp_path / "run").require().complete
    assert hidden(tmp_path) == []


def test_of_many_simultaneous_starts_one_at_a_time_is_in(tmp_path):
    inside, go = tmp_path / "inside", tmp_path / "go"

    def work():
        entered = 0
        while not go.exists():
            pass
        for _ in range(40):
            try:
                with RunFolder(tmp_path / "run").claim(resume=True):
                    os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails where another one is in
                    entered += 1
                    inside.unlink()
            except LockedError:
                pass
        assert entered

    children = [fork(work) for _ in range(4)]
    go.touch()
    assert [exit_code(child) for child in children] == [0] * 4
    assert not (tmp_path / "run").exists()


def test_a_start_just_after_another_one_is_refused_for_that_reason(tmp_path, monkeypatch):
    others, claims = RunFolder._others, []

    def beside(folder):
        if not claims:
            claims.append(RunFolder(tmp_path / "run").claim())
            claims[0].__enter__()
        return others(folder)

    monkeypatch.setattr(RunFolder, "_others", beside)
    with pytest.raises(LockedError, match="Another annotmix fit is working"):
        RunFolder(tmp_path / "run").claim().__enter__()
    claims[0].__exit__(None, None, None)


def test_what_a_killed_process_left_before_its_first_epoch_is_no_unfinished_run(tmp_path):
    def work():
        with RunFolder(tmp_path / "run").claim():
            (tmp_path / "run" / "checkpoint" / ("0" * 16)).mkdir()
            os._exit(0)

    assert exit_code(fork(work)) == 0
    with RunFolder(tmp_path / "run").claim():
        assert (tmp_path / "run" / ".fit.lock").exists()
    assert not (tmp_path / "run").exists()


def test_half_written_files_of_a_killed_process_go_with_the_next_command(tmp_path):
    make_run(tmp_path)
    (tmp_path / ".fit.lock").touch()
    (tmp_path / ".exchange.lock").touch()
    (tmp_path / ".unfinished-x" / "model").mkdir(parents=True)
    (tmp_path / "checkpoint" / ("0" * 16) / ".checkpoint.safetensors.0123abcd").touch()
    RunFolder(tmp_path).require()
    assert hidden(tmp_path) == []
    assert which(tmp_path) == "old"


def test_files_of_a_live_process_stay(tmp_path):
    make_run(tmp_path)
    folder = RunFolder(tmp_path)
    with folder.claim(True, True), folder.replace() as stage:
        half = folder.checkpoint / ".checkpoint.safetensors.0123abcd"
        half.touch()
        assert exit_code(fork(RunFolder(tmp_path).require)) == 0
        assert stage.exists()
        assert half.exists()
        write_parts(stage, "new")
    assert which(tmp_path) == "new"


def test_another_folder_called_checkpoint_is_not_touched(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "mine.pt").touch()
    with (
        pytest.raises(ValueError, match=r"holds other files \(checkpoint\)"),
        RunFolder(tmp_path).claim(overwrite=True),
    ):
        pass
    assert (tmp_path / "checkpoint" / "mine.pt").exists()


# ---------------------------------------------------------------- a process that was left behind


def checkpoint_into(folder):
    class Nothing:
        def state(self):
            return {}

        state_dict = state

    save_checkpoint(folder, Nothing(), Nothing(), Training(), "")


def test_a_lost_process_writes_no_checkpoint_into_a_run_that_another_one_continues(tmp_path):
    def work():
        with RunFolder(tmp_path).claim(resume=True) as _:
            os._exit(0)  # killed; its workers may still be there

    make_run(tmp_path, old=False)
    assert exit_code(fork(work)) == 0
    (stale,) = (tmp_path / "checkpoint").iterdir()
    folder = RunFolder(tmp_path)
    with folder.claim(resume=True):
        with pytest.raises(OSError, match=r"is gone: it was removed, or another process continues"):
            checkpoint_into(stale)
        assert list((tmp_path / "checkpoint").iterdir()) == [folder.checkpoint]
        assert (folder.checkpoint / "checkpoint.safetensors").read_text() == "state"
        checkpoint_into(folder.checkpoint)
        with folder.replace() as stage:
            write_parts(stage, "new")
        with pytest.raises(OSError, match="is gone"):
            checkpoint_into(stale)
    assert which(tmp_path) == "new"


def test_a_process_whose_folder_was_removed_and_used_again_writes_nothing_into_it(tmp_path):
    path = tmp_path / "run"
    stale, other = RunFolder(path), RunFolder(path)
    with stale.claim():
        shutil.rmtree(path)
        with other.claim():
            checkpoint_into(other.checkpoint)
            for _ in range(2):  # while the other one trains, and after it
                with pytest.raises(OSError, match="was removed or taken by another process"):
                    stale.replace().__enter__()
                with pytest.raises(OSError, match="is gone"):
                    checkpoint_into(stale.checkpoint)
                if not other.complete:
                    with other.replace() as stage:
                        write_parts(stage, "new")
    assert which(path) == "new"
    assert hidden(path) == []


# ---------------------------------------------------------------- readers


@pytest.fixture
def plain(monkeypatch):
    """Readers of the small files of `write_parts`."""
    readers = {
        "preparation": lambda run: (run / "model" / "preparation.json").read_text().split()[0],
        "model": lambda run: (run / "model" / "model.json").read_text().split()[0],
        "findings": lambda run: (run / "findings" / "findings.json").read_text().split()[0],
    }
    monkeypatch.setattr(folder_module, "_READERS", readers)
    return readers


def test_parts_that_are_read_belong_to_one_run(tmp_path, plain):
    make_run(tmp_path)
    read, calls = plain["model"], []

    def beside_an_exchange(run):
        if not calls:
            calls.append(1)
            overwrite(tmp_path)
        return read(run)

    plain["model"] = beside_an_exchange
    assert RunFolder(tmp_path).read("findings", "model") == ("new", "new")


def test_readers_beside_a_process_that_replaces_runs_all_the_time(tmp_path, plain):
    path, stop = tmp_path / "run", tmp_path / "stop"
    make_run(path)

    def work():
        for number in count():
            if stop.exists():
                break
            overwrite(path, f"run-{number}")

    child = fork(work)
    try:
        read = []
        while len(read) < 100 or (read[-1] == read[0] and len(read) < 100_000):  # until it has begun
            read.append(RunFolder(path).read("findings", "preparation", "model"))
    finally:
        stop.touch()
    assert exit_code(child) == 0
    assert all(len(set(marks)) == 1 for marks in read)
    assert len(set(read)) > 1


def replace_model(path, seed):
    folder = RunFolder(path)
    with folder.claim(overwrite=True), folder.replace() as stage:
        write_parts(stage, "new")
        save_model(stage / "model", {"seed": torch.full((3,), seed)}, {"seed": seed})


def loaded_seed(path):
    weights, facts = load_model(path / "model")
    assert weights["seed"].tolist() == [facts["seed"]] * 3
    return facts["seed"]


def test_the_model_of_a_run_can_be_loaded_whenever_an_exchange_is_killed(tmp_path):
    seen = []
    for number in count(1):
        path = tmp_path / str(number)
        replace_model(path, 0)

        def work(path=path, number=number):
            with acting(die, number):
                replace_model(path, 1)

        killed = exit_code(fork(work)) != 0
        seen.append(loaded_seed(path))
        next_command(path)
        assert loaded_seed(path) >= seen[-1]
        if not killed:
            break
    assert seen == sorted(seen)
    assert seen.count(1) > 8


def test_loading_the_model_of_a_run_that_is_replaced_all_the_time(tmp_path):
    path, stop = tmp_path / "run", tmp_path / "stop"
    replace_model(path, 0)

    def work():
        for number in count():
            if stop.exists():
                break
            replace_model(path, number)

    child = fork(work)
    try:
        seeds = []
        while len(seeds) < 1000 or (seeds[-1] == seeds[0] and len(seeds) < 100_000):  # until it has begun
            seeds.append(loaded_seed(path))
    finally:
        stop.touch()
    assert exit_code(child) == 0
    assert len(set(seeds)) > 1


def test_a_run_that_may_not_be_written_can_be_read(plain):
    def work():
        with pytest.raises(PermissionError):
            (folder / "run" / "file").touch()
        assert RunFolder(folder / "run").read("findings", "model") == ("old", "old")

    with public_folder() as folder:
        make_run(folder / "run")
        (folder / "run" / ".fit.lock").touch()
        (folder / "run").chmod(0o555)
        assert as_nobody(folder, work)
        (folder / "run").chmod(0o755)
