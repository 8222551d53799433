from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from filelock import FileLock

from annotmix.labels.aggregation import majority_vote
from annotmix.labels.annotations import Annotations
from annotmix.labels.dawid_skene import dawid_skene
from annotmix.reading import Columns
from annotmix.runs import aggregate_parts as module
from annotmix.runs.aggregate_parts import aggregate_parts

pytest.importorskip("distributed")


def some_labels(seed: int = 0) -> pd.DataFrame:
    """3000 labels of 400 items by 30 annotators, with repeats, in random order."""
    rng = np.random.default_rng(seed)
    true, skill = rng.integers(4, size=400), rng.uniform(0.3, 0.95, size=30)
    item, annotator = rng.integers(400, size=3000), rng.integers(30, size=3000)
    right = rng.random(3000) < skill[annotator]
    label = np.where(right, true[item], rng.integers(4, size=3000))
    return pd.DataFrame(
        {"task": item, "worker": [f"w{m}" for m in annotator], "label": np.array(list("abcd"))[label]}
    )


@pytest.fixture
def files(tmp_path):
    table = some_labels()
    table.loc[17, "label"] = None
    paths = []
    for number, rows in enumerate(np.array_split(np.arange(len(table)), 3)):
        paths.append(tmp_path / f"labels-{number}.parquet")
        table.iloc[rows].to_parquet(paths[-1], index=False)
    table["task"] = table["task"].astype(str)
    return paths, Annotations.from_long(table.dropna(), duplicates="last")


def read(out) -> pd.DataFrame:
    parts = [pd.read_parquet(path) for path in sorted(out.glob("items-*.parquet"))]
    assert len(parts) > 3
    return pd.concat(parts).set_index("item").sort_index()


def test_two_processes_give_the_same_as_memory(files, tmp_path):
    paths, annotations = files
    outcome = aggregate_parts(paths, tmp_path / "ds", "ds", workers=2, part_size=500, progress=False)
    expected = dawid_skene(annotations)
    result = read(tmp_path / "ds")
    pd.testing.assert_series_equal(result["label"], expected.labels.sort_index(), check_dtype=False)
    probability = expected.probabilities.max(axis=1).sort_index()
    np.testing.assert_allclose(result["probability"], probability, atol=1e-6)
    assert (result["n_labels"].sum(), outcome.n_labels) == (len(annotations), len(annotations))
    assert outcome.n_iter == expected.n_iter
    assert any("repeat" in note for note in outcome.notes)
    assert any(note.startswith("1 row without") for note in outcome.notes)
    table = pd.read_csv(tmp_path / "ds" / "annotators.csv").set_index("annotator")
    assert table["n_labels"].to_dict() == dict(
        zip(annotations.annotators, annotations.labels_per_annotator, strict=True)
    )
    chance = expected.probabilities.to_numpy()[annotations.item, annotations.label]
    right = np.bincount(annotations.annotator, chance) / annotations.labels_per_annotator
    np.testing.assert_allclose(table["accuracy"].loc[annotations.annotators], right, atol=1e-5)
    assert not (tmp_path / "ds" / ".work").exists()

    aggregate_parts(paths, tmp_path / "mv", "mv", workers=2, part_size=500, seed=3, progress=False)
    voted = majority_vote(annotations, random_state=3).sort_index()
    pd.testing.assert_series_equal(read(tmp_path / "mv")["label"], voted, check_dtype=False)


def test_a_dask_dataframe_gives_the_same_as_memory(files, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    paths, annotations = files
    frame = dask.read_parquet([str(path) for path in paths]).repartition(npartitions=5)
    frame["label"] = frame["label"].astype("category")
    frame = frame.rename(columns={"label": "said"}).assign(other=1)
    with pytest.raises(ValueError, match="no column for the label"):
        aggregate_parts(frame, tmp_path / "ds", progress=False)
    outcome = aggregate_parts(
        frame, tmp_path / "ds", columns=Columns(label="said"), workers=2, part_size=500, progress=False
    )
    expected = dawid_skene(annotations)
    result = read(tmp_path / "ds")
    pd.testing.assert_series_equal(result["label"], expected.labels.sort_index(), check_dtype=False)
    probability = expected.probabilities.max(axis=1).sort_index()
    np.testing.assert_allclose(result["probability"], probability, atol=1e-6)
    assert (outcome.n_labels, outcome.n_iter) == (len(annotations), expected.n_iter)
    assert any(note.startswith("1 row without") for note in outcome.notes)


def test_an_interrupted_command_continues_with_the_next_round(files, tmp_path, monkeypatch):
    paths, annotations = files
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as client:

        @contextmanager
        def connect(*_):
            yield client

        monkeypatch.setattr(module, "connect", connect)
        keep, titles = module._Job._keep, []

        def stop(job, sums, first=False):
            keep(job, sums, first)
            if len(job.state["history"]) == 2:
                raise KeyboardInterrupt

        monkeypatch.setattr(module._Job, "_keep", stop)
        with pytest.raises(KeyboardInterrupt):
            aggregate_parts(paths, tmp_path / "out", part_size=500, progress=False)
        monkeypatch.setattr(module._Job, "_keep", keep)
        do = module._Job._map
        monkeypatch.setattr(
            module._Job, "_map", lambda job, title, work: (titles.append(title), do(job, title, work))[1]
        )
        aggregate_parts(paths, tmp_path / "out", part_size=500, progress=False)
        assert titles[0] == "Round 3"
        labels = dawid_skene(annotations).labels.sort_index()
        pd.testing.assert_series_equal(read(tmp_path / "out")["label"], labels, check_dtype=False)

        with FileLock(tmp_path / "out" / ".lock"), pytest.raises(ValueError, match="Another process"):
            aggregate_parts(tmp_path, tmp_path / "out")
        broken = tmp_path / "broken.parquet"
        broken.write_bytes(b"PAR1 nothing")
        with pytest.raises(ValueError, match=r"broken\.parquet.*Parquet"):
            aggregate_parts(tmp_path, tmp_path / "other")
        (tmp_path / "empty").mkdir()
        with pytest.raises(ValueError, match=r"has no files \*\.parquet"):
            aggregate_parts(tmp_path / "empty", tmp_path / "other")
