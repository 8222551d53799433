"""Two processes learn as well as one. One torchrun does all trainings of `together.py`."""

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from helpers import together
from helpers.together import accuracy, facts, fit, kinds, problem
from typer.testing import CliRunner

import annotmix
from annotmix.cli import app
from annotmix.networks.features import Features
from annotmix.training import processes
from annotmix.training.processes import Processes

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def torchrun(tmp_path_factory):
    """What `together.py` did under torchrun: its folder, what it printed, its exit code."""
    folder = tmp_path_factory.mktemp("torchrun")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = Path(together.__file__)
    done = subprocess.run(
        [*command, script, folder], capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert (folder / "0.json").exists(), done.stderr
    return folder, done


def reported(torchrun, rank=0):
    return json.loads((torchrun[0] / f"{rank}.json").read_text())


# ------------------------------------------------------------------ learning


@pytest.mark.parametrize("name", ["annot-mix", "annot-mix-plus"])
def test_two_processes_learn_as_well_as_one(torchrun, name):
    """Accuracy on 400 new items: its standard error is 0.02 where it is 0.8."""
    alone, spawned, by_torchrun = (
        accuracy(name),
        accuracy(name, devices=2),
        reported(torchrun)["accuracy"][name],
    )
    assert alone > 0.6
    assert spawned == by_torchrun  # the same seeds and shares
    assert abs(spawned - alone) < 0.06


@pytest.mark.parametrize("kind", kinds())
def test_every_approach_trains_in_two_processes(torchrun, kind):
    found = reported(torchrun)[kind]
    torch.manual_seed(0)  # the weights of the backbone from outside
    alone = facts(fit(kind, progress=False))
    np.testing.assert_allclose(found["loss"], alone["loss"], rtol=0.25)
    assert found["weights"] != alone["weights"]


def test_all_processes_end_with_the_same_bits(torchrun):
    assert reported(torchrun, 0) == reported(torchrun, 1)


def test_one_process_shows_progress(torchrun):
    _, done = torchrun
    lines = done.stderr.splitlines()
    for name in annotmix.list_approaches():
        shown = sum(line.startswith(f"{name}: 1/2  loss") for line in lines)
        assert shown == (3 if name == "annot-mix" else 1)  # it is "photos" and "bf16", too
    assert not [line for line in lines if "Warning" in line]


def test_a_stopped_and_resumed_run_of_two_processes_ends_with_the_same_bits(torchrun):
    found = reported(torchrun)
    assert found["stopped"] == found["whole"]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_shares_hold_every_item_and_are_equally_many(size):
    items, shares = np.arange(10, 99), []
    for rank in range(size):
        one = Processes()
        one.rank, one.size = rank, size
        with torch.random.fork_rng():
            order, batch_size, rng = one.share(items, 20, np.random.default_rng(0))
        assert batch_size == -(-20 // size)
        shares.append((order, rng.random()))
    assert len({len(order) for order, _ in shares}) == 1
    assert {item for order, _ in shares for item in order} == set(items)
    assert sum(len(order) for order, _ in shares) < len(items) + size
    assert len({drawn for _, drawn in shares}) == size  # mixing and dropout differ


# ------------------------------------------------------------------ a killed process


def test_a_killed_process_ends_the_job_with_a_message_and_one_process_can_continue(torchrun):
    folder, done = torchrun
    assert done.returncode != 0
    assert "Signal 9 (SIGKILL) received" in done.stderr  # torchrun says so
    # torchrun may end the other process before it says a word: its message has a test of its own
    assert [path.name for path in (folder / "killed").iterdir()] == ["checkpoint.safetensors"]
    resumed = fit("annot-mix", max_epochs=5, checkpoint=folder / "killed", checkpoint_every=1, progress=False)
    assert resumed.n_iter_ == 5


def test_a_process_that_lost_another_one_says_so(monkeypatch):
    monkeypatch.setattr(processes, "PATIENCE", 0)
    group = Processes()
    group.size = 2
    message = r"Process 1 of 2 failed, or lost another one \(reset by peer\)"
    with pytest.raises(ChildProcessError, match=message), group.watch():
        raise RuntimeError("reset by peer")


def fit_by_command(folder, out, *more):
    files = [str(folder / "labels.csv"), "--features", str(folder / "items.csv"), "--out", str(out)]
    return CliRunner().invoke(app, ["fit", *files, "--devices", "2", "--epochs", "15", *more])


def our_processes():
    """The processes of this one, but for those that joblib keeps for other tests."""
    return [child for child in multiprocessing.active_children() if not child.name.startswith("Loky")]


def kill_one(folder, killed):
    """Kill the second process once there is a checkpoint."""
    while not any(folder.glob("*/checkpoint.safetensors")):
        time.sleep(0.01)
    workers = sorted(our_processes(), key=lambda worker: worker.pid)
    os.kill(workers[-1].pid, signal.SIGKILL)
    killed.append(workers[-1].pid)


def test_the_command_line_ends_with_a_message_and_resumes(tmp_path):
    X, Z, _ = problem(100)
    ids = [f"item {n}" for n in range(len(X))]
    pd.DataFrame(X, index=pd.Index(ids, name="id")).to_csv(tmp_path / "items.csv")
    task, worker = np.nonzero(Z >= 0)
    table = {"task": np.array(ids)[task], "worker": worker, "label": np.array(list("abc"))[Z[task, worker]]}
    pd.DataFrame(table).to_csv(tmp_path / "labels.csv", index=False)

    run, killed = tmp_path / "run", []
    watcher = threading.Thread(target=kill_one, args=(run / "checkpoint", killed), daemon=True)
    watcher.start()
    result = fit_by_command(tmp_path, run)
    assert result.exit_code == 1
    assert len(killed) == 1
    error = result.stderr.splitlines()[-1]
    assert error.startswith("Error: Process 2 of 2 was ended by SIGKILL. The same fit resumes after epoch ")
    assert error.endswith("--devices 2 --resume")
    assert not our_processes()

    assert fit_by_command(tmp_path, run, "--resume").exit_code == 0
    assert fit_by_command(tmp_path, tmp_path / "whole").exit_code == 0
    resumed, whole = (annotmix.load(folder / "model") for folder in (run, tmp_path / "whole"))
    assert resumed.history_["loss"].tolist() == whole.history_["loss"].tolist()
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    assert resumed.devices is None


SCRIPT = """
    import numpy as np
    import annotmix

    if __name__ == "__main__":
        X, Z = np.random.default_rng(0).normal(size=(400, 5)), np.tile([[0, 1], [1, -1]], (200, 1))
        annotmix.AnnotMixClassifier(devices=2, max_epochs=100_000, random_state=0, progress=False).fit(X, Z)
"""


def children(pid):
    """The processes that a process has started, and those that these have started."""
    own = [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return own + [deeper for child in own for deeper in children(child)]


def listening(pid):
    """Addresses on which a process waits for connections, as /proc has them."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(link) if link.is_symlink() else ""
        inodes |= {target[8:-1]} if target.startswith("socket:[") else set()
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    ]
    return [row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks into /proc")
def test_workers_listen_on_the_loopback_only_and_end_with_their_parent(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    parent = subprocess.Popen([sys.executable, tmp_path / "script.py"])
    try:
        deadline, connected = time.monotonic() + 180, []
        while len(connected) < 2 and time.monotonic() < deadline:
            time.sleep(0.2)
            connected = [pid for pid in children(parent.pid) if listening(pid)]
        assert len(connected) == 2
        everyone = [parent.pid, *children(parent.pid)]
        assert {address for pid in everyone for address in listening(pid)} == {"0100007F"}  # 127.0.0.1
    finally:
        workers = children(parent.pid)
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 60
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(alive, workers))


STALE = """
    import os, signal, sys, time
    from pathlib import Path

    from annotmix.training import checkpoints, processes

    folder, write = Path(sys.argv[1]), checkpoints.save_tensors

    def slowly(path, tensors, facts):
        write(path, tensors, facts)
        if facts["epoch"] == 3:  # the file is written, and has not got its name yet
            # nothing else ends this process before it has written
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            processes._INTERVAL = 3600.0
            time.sleep(1)
            (folder / "waiting").write_text(str(os.getpid()))
            while not (folder / "continue").exists():
                time.sleep(0.05)

    checkpoints.save_tensors = slowly
    if os.environ.get("WORLD_SIZE") is None:
        processes.wait = lambda *_: time.sleep(3600)

    from helpers.together import fit

    if __name__ == "__main__":
        devices = {} if "WORLD_SIZE" in os.environ else {"devices": 2}
        fit("mv-base", max_epochs=9, checkpoint=folder / "run", checkpoint_every=1, progress=False, **devices)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks into /proc")
@pytest.mark.parametrize("starter", ["devices", "torchrun"])
def test_a_process_whose_parent_was_killed_writes_nothing_into_the_run(tmp_path, starter):
    (tmp_path / "stale.py").write_text(textwrap.dedent(STALE))
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [sys.executable, *(torchrun if starter == "torchrun" else []), tmp_path / "stale.py", tmp_path]
    path = os.pathsep.join([str(Path(together.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    parent = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "waiting").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        writer = int((tmp_path / "waiting").read_text())
        before = (tmp_path / "run" / "checkpoint.safetensors").read_bytes()
    finally:
        workers = children(parent.pid)
        parent.kill()
        parent.wait()
    (tmp_path / "continue").touch()
    deadline = time.monotonic() + 60
    while any(map(alive, [writer, *workers])) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(alive, [writer, *workers]))
    assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == before


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# ------------------------------------------------------------------ what is handed to processes


def test_a_memory_mapped_file_is_named_and_a_piece_of_one_is_copied(tmp_path):
    X = np.arange(40.0).reshape(10, 4)
    for name, array in (("C", X), ("F", np.asfortranarray(X))):
        np.save(tmp_path / f"{name}.npy", array)
        mapped = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        whole = pickle.loads(pickle.dumps(Features(mapped, CPU)))
        assert isinstance(whole._mapped, np.memmap)
        assert whole._mapped.filename == mapped.filename
        piece = pickle.loads(pickle.dumps(Features(mapped[3:9:2], CPU)))
        assert torch.equal(whole.take(slice(None)), torch.tensor(X).float())
        assert torch.equal(piece.take(slice(None)), torch.tensor(X[3:9:2]).float())


def test_errors_that_all_processes_meet_come_back():
    X, Z, _ = problem()
    clf = annotmix.AnnotMixClassifier(devices=2, precision="half", random_state=0)
    with pytest.raises(ValueError, match='precision must be "32-true" or "bf16-mixed", found \'half\''):
        clf.fit(X, Z)


def test_what_cannot_be_handed_over_is_said():
    class Local(torch.nn.Linear):
        pass

    X, Z, _ = problem()
    clf = annotmix.AnnotMixClassifier(backbone=Local(9, 4), devices=2, random_state=0)
    with pytest.raises(ValueError, match=r"devices=2 .* top level of a module, or .* torchrun"):
        clf.fit(X, Z)


@pytest.mark.parametrize("devices", [0, -1, "two", 1.5])
def test_devices_must_be_a_number(devices):
    X, Z, _ = problem()
    with pytest.raises(ValueError, match="devices must be a positive integer or None"):
        annotmix.AnnotMixClassifier(devices=devices).fit(X, Z)


def test_more_processes_than_cores_are_refused():
    X, Z, _ = problem()
    with pytest.raises(ValueError, match=r"devices=100000 are too many: .* a core"):
        annotmix.AnnotMixClassifier(devices=100_000, device="cpu").fit(X, Z)


def test_under_torchrun_the_number_is_torchrun_s(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert processes.to_start(None) == processes.to_start(1) == processes.to_start(2) == 0
    with pytest.raises(ValueError, match=r"devices=3, but torchrun has started 2"):
        processes.to_start(3)
    X, Z, _ = problem()
    alone = annotmix.make_classifier("mv-base", devices=1, max_epochs=1, random_state=0).fit(X, Z)
    assert alone.n_iter_ == 1
    result = CliRunner().invoke(app, ["fit", "labels.csv"])
    assert result.exit_code == 1
    assert "--devices in place of torchrun" in result.stderr


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_gpus_learn_as_well_as_one():
    found, alone = (accuracy("annot-mix", device="cuda", devices=n) for n in (2, 1))
    assert abs(found - alone) < 0.06
