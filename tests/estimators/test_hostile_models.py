"""Saved models whose files claim more than they hold: refused before memory is taken."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from helpers.bounded_process import run_bounded

import annotmix
from annotmix.estimators import make_classifier
from annotmix.estimators.crowd import CrowdClassifier
from annotmix.training.tensor_files import ModelFileError

ATTACKS = """
import json, shutil, struct, sys
from pathlib import Path

import numpy as np

import annotmix
from annotmix.estimators import make_classifier
from annotmix.training.tensor_files import ModelFileError

folder = Path(sys.argv[1])
rng = np.random.default_rng(0)
X, Z = rng.normal(size=(30, 4)), rng.integers(0, 3, size=(30, 4))
clf = make_classifier("annot-mix-plus", hidden=(8,), max_epochs=1, random_state=0, progress=False)
clf.fit(X, Z).save(folder)
annotmix.load(folder).predict_proba(X)  # everything that is imported late
document = json.loads((folder / "model.json").read_text())
weights = folder / document["weights"]
header = json.loads(weights.read_bytes()[8 : 8 + int.from_bytes(weights.read_bytes()[:8], "little")])
bound(300 << 20)


def attack(name, **facts):
    changed = {**document, "model": {**document["model"], **facts}}
    (folder / "model.json").write_text(json.dumps(changed))
    try:
        annotmix.load(folder)
    except ModelFileError as error:
        assert "\\n" not in str(error), name
        print(name)
    else:
        raise AssertionError(name)


def wide(hidden, shape=(4,), **more):
    network = {"hidden": hidden, "dropout": 0.0, "weight_decay": 0.0}
    attack(f"hidden of {hidden!s:.30}, shape {shape}", network=network, shape=list(shape), **more)


wide([30000, 30000])
wide([8] * 200_000)
wide([2**40])
wide([8], shape=(2**28,))
wide([8], shape=(2**53, 2**53))
for name, value in {"folds": 10**9, "levels": 10**9}.items():
    attack(name, params={**document["model"]["params"], name: value})
attack("annotators", n_modelled=2**40)
attack("deeply nested", history={"epoch": [[[[1]]]]})
whole = weights.read_bytes()
with open(weights, "r+b") as file:
    file.truncate(20 << 30)
attack("a sparse file")
padded = dict(header)
padded["huge"] = {"dtype": "F32", "shape": [5 << 30], "data_offsets": [0, 20 << 30]}
for key, entry in header.items():
    padded[key] = {**entry, "data_offsets": [own + (20 << 30) for own in entry["data_offsets"]]}
content = json.dumps(padded).encode()
weights.write_bytes(struct.pack("<Q", len(content)) + content)
with open(weights, "r+b") as file:
    file.truncate(8 + len(content) + (20 << 30) + max(own["data_offsets"][1] for own in header.values()))
attack("a sparse file with an honest header")
weights.write_bytes(struct.pack("<Q", 2**62) + whole[8:])
attack("a header of 2**62 bytes")
weights.write_bytes(whole)
(folder / "model.json").write_text(json.dumps(document))
annotmix.load(folder).predict_proba(X)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bounds memory as Linux does")
def test_models_that_claim_more_than_they_hold(tmp_path):
    assert len(run_bounded(ATTACKS, tmp_path / "model").splitlines()) == 12


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 4)), rng.integers(0, 3, size=(30, 4))


def changed(folder, **facts):
    document = json.loads((folder / "model.json").read_text())
    document["model"] |= facts
    (folder / "model.json").write_text(json.dumps(document))
    return folder


def test_a_loaded_model_does_not_write_where_its_file_says(problem, tmp_path):
    X, Z = problem
    clf = make_classifier("annot-mix", max_epochs=1, random_state=0, checkpoint=tmp_path / "mine").fit(X, Z)
    clf.save(tmp_path / "model")
    params = json.loads((tmp_path / "model" / "model.json").read_text())["model"]["params"]
    assert params["checkpoint"] is None
    changed(tmp_path / "model", params={**params, "checkpoint": str(tmp_path / "theirs")})
    annotmix.load(tmp_path / "model").fit(X, Z)
    assert not (tmp_path / "theirs").exists()


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"shape": []}, r"\$\.shape"),
        ({"shape": [2**60]}, r"\$\.shape\[0\]"),
        ({"shape": ["4"]}, r"Expected int, got str.*\$\.shape\[0\]"),
        ({"seed": -1}, r"\$\.seed"),
        ({"classes": {"type": "int", "values": [0, 1, 1], "object": False}}, "repeated"),
        ({"classes": {"type": "int", "values": [], "object": False}}, "empty"),
        ({"labels_per_annotator": [1]}, "one length"),
        ({"history": {}}, "no epoch"),
        ({"history": {"epoch": [1], "loss": []}}, "one length"),
        ({"encoder": {"kind": "sound", "params": {}, "fingerprint": ""}}, "sound"),
        ({"params": {"lr": 1e38}}, "lr must be positive and at most"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_facts_that_make_no_sense(problem, tmp_path, facts, expected):
    make_classifier("annot-mix", max_epochs=1, random_state=0).fit(*problem).save(tmp_path)
    with pytest.raises(ModelFileError, match=expected):
        annotmix.load(changed(tmp_path, **facts))


@pytest.mark.parametrize(
    "facts",
    [{"cv": 1}, {"rounds": "5"}, {"chosen": 10**6}, {"estimator": "svm"}, {"seed": None}, {"items": {}}],
)
def test_a_crowd_classifier_of_another_kind(problem, tmp_path, facts):
    CrowdClassifier(random_state=0, rounds=1, progress=False).fit(*problem).save(tmp_path)
    with pytest.raises(ModelFileError, match="does not hold a model"):
        annotmix.load(changed(tmp_path, **facts))
