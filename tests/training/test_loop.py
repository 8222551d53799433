import os
import random
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

import annotmix
from annotmix._common.progress import Progress
from annotmix.labels.annotations import Annotations
from annotmix.labels.heldout import hold_out
from annotmix.networks import generator
from annotmix.networks.features import Features
from annotmix.training import loop as engine
from annotmix.training.batches import Labels
from annotmix.training.loop import randomness
from annotmix.training.tensor_files import ModelFileError

CPU = torch.device("cpu")


def classifier(**params):
    defaults = {"hidden": (16, 8), "dropout": 0.3, "max_epochs": 6, "batch_size": 32, "random_state": 0}
    return annotmix.AnnotMixClassifier(**(defaults | params))


def same_weights(a, b):
    a, b = a.module_.state_dict(), b.module_.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# ------------------------------------------------------------------ batches


def test_batches_bring_every_labelled_item_once_with_all_its_labels(noisy):
    X, Z, _ = noisy
    Z = Z.copy()
    Z[::7] = -1  # items without labels
    annotations = Annotations.from_matrix(Z, classes=[0, 1, 2])
    X = np.arange(len(Z), dtype=np.float32)[:, None]  # a row's feature is its number
    seen = []
    labels, rng = Labels(annotations, CPU), np.random.default_rng(0)
    for batch in labels.batches(Features(X, CPU), rng.permutation(labels.labelled), 32, rng):
        assert len(batch.x) <= 32
        items = batch.x[:, 0].long().numpy()
        assert np.all(np.diff(batch.item.numpy()) >= 0)
        for row, m, k in zip(batch.item.numpy(), batch.annotator.numpy(), batch.label.numpy(), strict=True):
            seen.append((items[row], m, k))
    wanted = [(n, m, Z[n, m]) for n in range(len(Z)) for m in range(Z.shape[1]) if Z[n, m] >= 0]
    assert sorted(seen) == wanted
    assert len(seen) == len(set(seen))


def test_batches_follow_the_order(noisy):
    X, Z, _ = noisy
    labels, order = Labels(Annotations.from_matrix(Z), CPU), np.random.default_rng(0).permutation(len(Z))
    batches = list(labels.batches(Features(X, CPU), order, 32, np.random.default_rng(0)))
    assert torch.cat([batch.rows for batch in batches]).tolist() == order.tolist()
    assert torch.equal(torch.cat([batch.x for batch in batches]), torch.from_numpy(X[order]).float())


# ------------------------------------------------------------------ randomness


def test_same_seed_same_bits_and_other_seed_other_weights(noisy):
    X, Z, _ = noisy
    first, second, other = (classifier(random_state=s).fit(X, Z) for s in (3, 3, 4))
    assert same_weights(first, second)
    assert not same_weights(first, other)


def test_global_random_state_is_left_alone(noisy):
    X, Z, _ = noisy
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    before = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    classifier().fit(X, Z, validation=(X, np.zeros(len(X), dtype=int))).predict(X)
    classifier(random_state=None, max_epochs=1).fit(X, Z)
    assert random.getstate() == before[0]
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2])


@pytest.mark.parametrize("before", [False, True])
def test_denormal_numbers_are_zero_in_training_only(before):
    def is_zero():
        return float(torch.tensor([1e-39]) * 1) == 0

    torch.set_flush_denormal(before)
    try:
        with engine.flushed_denormals():
            assert is_zero()
        assert is_zero() == before
    finally:
        torch.set_flush_denormal(False)


def test_global_random_state_has_no_influence(noisy):
    X, Z, _ = noisy
    torch.manual_seed(1)
    first = classifier().fit(X, Z)
    torch.manual_seed(2)
    assert same_weights(first, classifier().fit(X, Z))


def test_streams_of_randomness_differ():
    drawn = set()
    for seed in (0, 1):
        for stream in ((1,), (2, 0), (2, 1), (3,)):
            with randomness(seed, *stream) as rng:
                drawn.add((float(rng.random()), float(torch.rand(()))))
    assert len(drawn) == 8


# ------------------------------------------------------------------ resuming


def stop_after(monkeypatch, epochs):
    """Let training die after that many epochs."""
    advance = Progress.advance

    def dying(self, note=""):
        advance(self, note)
        if self.done == epochs:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "advance", dying)


@pytest.mark.parametrize("stop", [1, 3, 4, 5])
def test_a_stopped_and_resumed_run_ends_with_the_same_bits(noisy, tmp_path, monkeypatch, stop):
    X, Z, y = noisy
    params = {"checkpoint": tmp_path / "run", "checkpoint_every": 2, "select": "best"}
    with monkeypatch.context() as patch:
        stop_after(patch, stop)
        with pytest.raises(KeyboardInterrupt):
            classifier(**params).fit(X, Z, validation=(X[:60], y[:60]))
    assert (tmp_path / "run" / "checkpoint.safetensors").exists() == (stop >= 2)
    resumed = classifier(**params).fit(X, Z, validation=(X[:60], y[:60]))
    whole = classifier(select="best").fit(X, Z, validation=(X[:60], y[:60]))
    assert same_weights(whole, resumed)
    assert same_weights(whole.use("last"), resumed.use("last"))
    assert whole.best_epoch_ == resumed.best_epoch_
    columns = ["loss", "lr", "valid/clf-acc"]
    assert whole.history_[columns].equals(resumed.history_[columns])


def test_a_run_killed_by_the_system_resumes_to_the_same_bits(noisy, tmp_path):
    X, Z, _ = noisy
    np.savez(tmp_path / "data.npz", X=X, Z=Z)
    script = f"""
        import os, signal, numpy as np, annotmix, torch
        from annotmix._common.progress import Progress
        torch.set_num_threads(1)
        data = np.load({str(tmp_path / "data.npz")!r})
        def killing(self, note=""):
            self.done += 1
            if self.done == 5:
                os.kill(os.getpid(), signal.SIGKILL)
        Progress.advance = killing
        annotmix.AnnotMixClassifier(hidden=(16, 8), dropout=0.3, max_epochs=6, batch_size=32, random_state=0,
                                    checkpoint={str(tmp_path / "run")!r}, checkpoint_every=1
                                    ).fit(data["X"], data["Z"])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert done.returncode == -9
    resumed = classifier(checkpoint=tmp_path / "run", checkpoint_every=1).fit(X, Z)
    assert resumed.n_iter_ == 6
    assert same_weights(classifier().fit(X, Z), resumed)


def test_a_checkpoint_of_another_run_is_refused(noisy, tmp_path):
    X, Z, _ = noisy
    classifier(checkpoint=tmp_path).fit(X, Z)
    for other in ({"lr": 0.02}, {"random_state": 1}, {"alpha": 0.5}, {"hidden": (8, 8)}, {"max_epochs": 7}):
        with pytest.raises(ModelFileError, match="another run"):
            classifier(checkpoint=tmp_path, **other).fit(X, Z)
    changed = Z.copy()
    changed[0, 0] = 1 if changed[0, 0] != 1 else 2
    with pytest.raises(ModelFileError, match="another run"):
        classifier(checkpoint=tmp_path).fit(X, changed)
    with pytest.raises(ModelFileError, match="another run"):
        classifier(checkpoint=tmp_path).fit(X + 1, Z)


def test_a_damaged_checkpoint_is_refused(noisy, tmp_path):
    X, Z, _ = noisy
    classifier(checkpoint=tmp_path).fit(X, Z)
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match="damaged"):
        classifier(checkpoint=tmp_path).fit(X, Z)


def test_checkpoint_needs_a_fixed_seed(noisy, tmp_path):
    X, Z, _ = noisy
    with pytest.raises(ValueError, match="random_state"):
        classifier(checkpoint=tmp_path, random_state=None).fit(X, Z)


# ------------------------------------------------------------------ optimisation


def test_learning_rate_is_torch_s_cosine_annealing(noisy):
    X, Z, _ = noisy
    history = classifier(max_epochs=9, lr=0.03).fit(X, Z).history_
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.03)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=9)
    expected = []
    for _ in range(9):
        expected.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    np.testing.assert_allclose(history["lr"], expected, rtol=1e-9)


def test_weight_decay_shrinks_the_classifier(noisy):
    X, Z, _ = noisy
    size = [
        sum(
            float(p.detach().square().sum())
            for p in classifier(weight_decay=w).fit(X, Z).module_.classifier.parameters()
        )
        for w in (0.0, 0.3)
    ]
    assert size[1] < 0.9 * size[0]


def test_a_loss_that_is_not_finite_stops_with_advice(noisy):
    X, Z, _ = noisy

    class Exploding(nn.Linear):
        def forward(self, x):
            return super().forward(x) * (float("nan") if self.training else 1.0)

    with pytest.raises(FloatingPointError, match="lr"):
        classifier(backbone=Exploding(X.shape[1], 4)).fit(X, Z)


def test_mixed_precision_learns(noisy):
    X, Z, y = noisy
    params = {"hidden": (64, 32), "dropout": 0.0, "max_epochs": 10}  # single precision has 0.95 on average
    fitted = [classifier(precision="bf16-mixed", random_state=seed, **params).fit(X, Z) for seed in range(5)]
    assert np.mean([clf.score(X, y) for clf in fitted]) > 0.85
    assert all(p.dtype == torch.float32 for clf in fitted for p in clf.module_.parameters())


# ------------------------------------------------------------------ data that stays on disk


def test_memory_mapped_features_give_the_same_weights_and_are_read_in_pieces(noisy, tmp_path, monkeypatch):
    X, Z, _ = noisy
    np.save(tmp_path / "X.npy", X.astype(np.float64))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    pieces = []
    take = Features.take

    def recording(self, rows):
        piece = take(self, rows)
        pieces.append(len(piece))
        return piece

    monkeypatch.setattr(Features, "take", recording)
    on_disk = classifier().fit(mapped, Z)
    *batches, without_labels, reference = pieces
    assert max(batches) <= 32
    assert without_labels == (Z < 0).all(axis=1).sum()
    assert reference == 256
    monkeypatch.undo()
    in_memory = classifier().fit(X.astype(np.float64), Z)
    assert same_weights(in_memory, on_disk)
    np.testing.assert_allclose(on_disk.predict_proba(mapped), in_memory.predict_proba(X), atol=1e-6)


def test_a_nan_in_memory_mapped_features_is_found(noisy, tmp_path):
    X, Z, _ = noisy
    X = X.copy()
    X[-1, 2] = np.nan
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="NaN"):
        classifier().fit(np.load(tmp_path / "X.npy", mmap_mode="r"), Z)


# ------------------------------------------------------------------ selection and history


def test_history_has_losses_and_the_paper_s_scores(noisy):
    X, Z, y = noisy
    clf = classifier().fit(X, Z, validation=(X, y, Z), monitor={"train": (X, None, Z)})
    assert clf.history_.index.tolist() == [1, 2, 3, 4, 5, 6]
    scores = {"valid/clf-acc", "valid/annot-acc", "valid/perf-auroc", "train/annot-acc"}
    scores |= {"valid/label-ll", "train/label-ll"}
    assert scores | {"loss", "lr", "seconds"} == set(clf.history_.columns)
    final = clf.evaluate(X, y, Z)
    last = clf.history_.iloc[-1]
    for name, value in final.items():
        assert value == last[f"valid/{name}"]
    assert last["train/annot-acc"] == final["annot-acc"]


def test_labels_that_are_held_out_select_the_epoch(noisy):
    X, Z, _ = noisy
    params = {"select": "best", "max_epochs": 25, "lr": 0.05, "alpha": 0}  # it learns by heart
    clf = classifier(**params).fit(X, Z, validation="labels")
    curve = clf.history_["valid/label-ll"]
    assert clf.best_epoch_ == curve.idxmax() < 25
    annotations = Annotations.from_matrix(Z)
    with engine.randomness(clf.seed_, engine.HELD_OUT) as rng:
        kept, held = hold_out(annotations, rng=rng)
    assert clf.evaluate(X, None, held)["label-ll"] == pytest.approx(curve.max())
    with pytest.warns(UserWarning, match="have no labels"):
        same = classifier(**params).fit(X, kept, validation=(X, None, held))
    np.testing.assert_array_equal(clf.predict_proba(X), same.predict_proba(X))
    assert clf.use("last").evaluate(X, None, held)["label-ll"] == pytest.approx(curve.iloc[-1])


def test_held_out_labels_survive_a_checkpoint(noisy, tmp_path, monkeypatch):
    X, Z, _ = noisy
    params = {"select": "best", "max_epochs": 6, "lr": 0.05, "checkpoint_every": 2}
    whole = classifier(**params).fit(X, Z, validation="labels")
    clf = classifier(**params, checkpoint=tmp_path)
    after_epoch, calls = engine.scores, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return after_epoch(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "scores", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, Z, validation="labels")
    clf.fit(X, Z, validation="labels")
    assert clf.best_epoch_ == whole.best_epoch_
    assert clf.history_["valid/label-ll"].tolist() == whole.history_["valid/label-ll"].tolist()
    np.testing.assert_array_equal(clf.predict_proba(X), whole.predict_proba(X))
    with pytest.raises(ModelFileError, match="belongs to another run"):
        clf.set_params(select="last").fit(X, Z)


def test_what_cannot_select(noisy):
    X, Z, _ = noisy
    with pytest.raises(ValueError, match="validation must be a tuple or \"labels\", found 'label'"):
        classifier().fit(X, Z, validation="label")
    for validation in ("labels", (X, None, Z)):
        with pytest.raises(AttributeError, match=r"mv-base has no annotator model.*annot-mix"):
            annotmix.make_classifier("mv-base").fit(X, Z, validation=validation)


def test_best_is_the_epoch_with_the_highest_validation_accuracy(noisy):
    X, Z, y = noisy
    clf = classifier(select="best", max_epochs=12, lr=0.05).fit(X, Z, validation=(X, y))
    curve = clf.history_["valid/clf-acc"]
    assert clf.best_epoch_ == curve.idxmax()
    assert clf.score(X, y) == curve.max()
    assert clf.use("last").score(X, y) == curve.iloc[-1]


def test_best_needs_validation(noisy):
    X, Z, _ = noisy
    with pytest.raises(ValueError, match="validation"):
        classifier(select="best").fit(X, Z)
    with pytest.raises(ValueError, match="best"):
        classifier().fit(X, Z).use("best")


# ------------------------------------------------------------------ threads


def test_fits_in_several_threads_end_with_the_same_bits(noisy):
    X, Z, _ = noisy
    alone = [classifier(random_state=seed).fit(X, Z) for seed in range(3)]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda seed: classifier(random_state=seed).fit(X, Z), range(3)))
    for one, other in zip(alone, together, strict=True):
        assert same_weights(one, other)


def test_loading_in_another_thread_does_not_change_the_bits_of_a_fit(noisy, tmp_path, monkeypatch):
    X, Z, _ = noisy
    classifier(max_epochs=1).fit(X, Z).save(tmp_path)
    loading, drawn = threading.Event(), threading.Event()
    make_module = annotmix.AnnotMixClassifier._make_module

    def slow(self, *arguments):
        if threading.current_thread() is not threading.main_thread():
            loading.set()
            drawn.wait()
        return make_module(self, *arguments)

    monkeypatch.setattr(annotmix.AnnotMixClassifier, "_make_module", slow)
    with randomness(0):
        expected = torch.rand(4)
    other = threading.Thread(target=annotmix.load, args=(tmp_path,))
    with randomness(0):
        other.start()
        began = loading.wait(0.5)  # it should wait for this thread instead
        first = torch.rand(2)
        drawn.set()
        if began:
            other.join(5)
        assert torch.equal(torch.cat([first, torch.rand(2)]), expected)
    other.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_threads_that_it_does_not_have():
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with randomness(0):
            inside.set()
            leave.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()
    child = os.fork()
    if not child:
        os._exit(not generator._one_thread.acquire(timeout=5))
    code = os.waitpid(child, 0)[1]
    leave.set()
    holder.join()
    assert code == 0
