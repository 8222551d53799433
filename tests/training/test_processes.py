"""Two processes give what one gives. One torchrun does all trainings of `together.py`."""

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from annotmix.training.team import Team, _Normalise
from helpers import together
from helpers.together import facts, fit, kinds, problem
from torch.nn import functional as F
from typer.testing import CliRunner

import annotmix
from annotmix.approaches import get_approach
from annotmix.cli import app
from annotmix.labels.annotations import Annotations
from annotmix.networks import MLP, Classifier
from annotmix.networks.features import Features
from annotmix.training import processes
from annotmix.training.loop import Labels

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


# ------------------------------------------------------------------ the same result


@pytest.mark.parametrize("kind", kinds())
def test_two_processes_have_the_losses_of_one(torchrun, kind):
    folder, _ = torchrun
    found = json.loads((folder / "0.json").read_text())[kind]
    torch.manual_seed(0)  # the weights of the backbone from outside
    alone = facts(fit(kind, progress=False))
    np.testing.assert_allclose(found["loss"], alone["loss"], rtol=1e-2 if kind == "bf16" else 1e-4)
    np.testing.assert_allclose(found["valid"], alone["valid"], atol=0.03)


def test_all_processes_end_with_the_same_bits(torchrun):
    folder, _ = torchrun
    assert json.loads((folder / "0.json").read_text()) == json.loads((folder / "1.json").read_text())


def test_one_process_shows_progress(torchrun):
    _, done = torchrun
    lines = done.stderr.splitlines()
    for name in annotmix.list_approaches():
        shown = sum(line.startswith(f"{name}: 1/2 ") for line in lines)
        assert shown == (3 if name == "annot-mix" else 1)  # it is "photos" and "bf16", too
    assert not [line for line in lines if "distributed_backend" in line or "Precision" in line]


def test_a_stopped_and_resumed_run_of_two_processes_ends_with_the_same_bits(torchrun):
    folder, _ = torchrun
    found = json.loads((folder / "0.json").read_text())
    assert found["stopped"] == found["whole"]


# ------------------------------------------------------------------ a killed process


def test_a_killed_process_ends_the_job_with_a_message_and_one_process_can_go_on(torchrun):
    folder, done = torchrun
    assert done.returncode != 0
    assert "Signal 9 (SIGKILL) received" in done.stderr  # torchrun says so
    assert [path.name for path in (folder / "killed").iterdir()] == ["checkpoint.safetensors"]
    alone = fit("annot-mix", max_epochs=5, progress=False)
    resumed = fit("annot-mix", max_epochs=5, checkpoint=folder / "killed", checkpoint_every=1, progress=False)
    np.testing.assert_allclose(resumed.history_["loss"], alone.history_["loss"], rtol=1e-4)


def fit_by_command(folder, out, *more):
    files = [str(folder / "labels.csv"), "--features", str(folder / "items.csv"), "--out", str(out)]
    return CliRunner().invoke(app, ["fit", *files, "--devices", "2", "--epochs", "15", *more])


def kill_one(checkpoint, killed):
    """Kill the second process once there is a checkpoint."""
    while not checkpoint.exists():
        time.sleep(0.01)
    workers = sorted(multiprocessing.active_children(), key=lambda worker: worker.pid)
    os.kill(workers[-1].pid, signal.SIGKILL)
    killed.append(workers[-1].pid)


def test_the_command_line_ends_with_a_message_and_goes_on(tmp_path):
    X, Z, _ = problem(100)
    ids = [f"item {n}" for n in range(len(X))]
    pd.DataFrame(X, index=pd.Index(ids, name="id")).to_csv(tmp_path / "items.csv")
    task, worker = np.nonzero(Z >= 0)
    table = {"task": np.array(ids)[task], "worker": worker, "label": np.array(list("abc"))[Z[task, worker]]}
    pd.DataFrame(table).to_csv(tmp_path / "labels.csv", index=False)

    run, killed = tmp_path / "run", []
    watcher = threading.Thread(
        target=kill_one, args=(run / "checkpoint" / "checkpoint.safetensors", killed), daemon=True
    )
    watcher.start()
    result = fit_by_command(tmp_path, run)
    assert result.exit_code == 1
    assert len(killed) == 1
    error = result.stderr.splitlines()[-1]
    assert error.startswith("Error: Process 2 of 2 was ended by SIGKILL. The same fit goes on after epoch ")
    assert error.endswith("--devices 2 --resume")
    assert not multiprocessing.active_children()

    assert fit_by_command(tmp_path, run, "--resume").exit_code == 0
    assert fit_by_command(tmp_path, tmp_path / "alone", "--devices", "1").exit_code == 0
    resumed, alone = (annotmix.load(folder / "model") for folder in (run, tmp_path / "alone"))
    np.testing.assert_allclose(resumed.history_["loss"], alone.history_["loss"], rtol=1e-3)
    assert resumed.devices is None


# ------------------------------------------------------------------ parts


def team(rank, size, approach="crowd-layer"):
    model = get_approach(approach)(Classifier(MLP(9, (8,)), 8, 3), 10)
    return Team(SimpleNamespace(global_rank=rank, world_size=size), model)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_parts_hold_every_item_once_with_its_labels(size):
    X, Z, _ = problem()
    X = np.arange(len(X), dtype=np.float32)[:, None]
    labels = Labels(Annotations.from_matrix(Z), CPU)
    for batch in labels.batches(Features(X, CPU), 20, np.random.default_rng(0)):
        whole = list(zip(batch.x[batch.item, 0], batch.annotator, batch.label, strict=True))
        found, items, weight = [], [], 0.0
        for rank in range(size):
            one = team(rank, size)
            part = one.part(batch)
            items += part.rows.tolist()
            found += list(zip(part.x[part.item, 0], part.annotator, part.label, strict=True))
            weight += float(one.weigh(torch.ones(())))
            marked = team(rank, size, "annot-mix").part(batch)
            assert torch.equal(marked.label[marked.own_labels], part.label)
            assert torch.equal(marked.x[marked.own_rows], part.x)
        assert items == batch.rows.tolist()
        assert found == whole
        assert weight == pytest.approx(1)


def test_a_batch_with_fewer_items_than_processes_is_computed_by_all():
    X, Z, _ = problem()
    annotations = Annotations.from_matrix(Z)
    batch = next(Labels(annotations, CPU).batches(Features(X, CPU), 2, np.random.default_rng(0)))
    for rank in range(3):
        one = team(rank, 3)
        assert one.part(batch) is batch
        assert float(one.weigh(torch.ones(()))) == pytest.approx(1 / 3)


@pytest.mark.parametrize("shape", [(20, 4), (6, 4, 3, 2)])
@pytest.mark.parametrize("affine", [True, False])
def test_normalising_has_torch_s_values_and_gradients(shape, affine):
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=rng).mul_(3).add_(5).requires_grad_()
    weight, bias = (torch.randn(4, generator=rng).requires_grad_() if affine else None for _ in range(2))
    wanted = F.batch_norm(x, None, None, weight, bias, training=True)
    over = [dim for dim in range(x.dim()) if dim != 1]
    var, mean = torch.var_mean(x.detach(), dim=over, correction=0)
    found = _Normalise.apply(x, weight, bias, mean, var, 1e-5, x.numel() // 4, team(0, 1))
    torch.testing.assert_close(found, wanted)
    leaves = [x, weight, bias] if affine else [x]
    g = torch.randn(shape, generator=rng)
    for a, b in zip(
        torch.autograd.grad(found, leaves, g), torch.autograd.grad(wanted, leaves, g), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


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
    error = processes._do(None, pickle.dumps((failing_alike, ())), 1)
    assert isinstance(error, FloatingPointError)


def failing_alike(fabric):
    raise FloatingPointError("The loss is nan.")


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
def test_two_gpus_have_the_losses_of_one():
    found, alone = (fit("annot-mix", device="cuda", devices=n, progress=False) for n in (2, 1))
    np.testing.assert_allclose(found.history_["loss"], alone.history_["loss"], rtol=1e-3)
