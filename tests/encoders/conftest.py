"""Small checkpoints of the real architectures, with random weights, and a cache of its own for every test."""

import json

import numpy as np
import pytest
import torch

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "rug", "big", "red", "and", "very", "happy"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The cache folder, new for every test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ANNOTMIX_CACHE", str(folder))
    return folder


def write_bert(folder, seed):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=5 + len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=0.3,  # far from the start of training: features that differ
    )
    transformers.BertModel(config).save_pretrained(folder)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 32}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return str(folder)


def write_dino(folder, seed):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(seed)
    config = transformers.Dinov2Config(
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=42,
        patch_size=14,
        initializer_range=0.3,
    )
    transformers.Dinov2Model(config).save_pretrained(folder)
    settings = {
        "image_processor_type": "BitImageProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"shortest_edge": 32},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": 28, "width": 28},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.485, 0.456, 0.406],
        "image_std": [0.229, 0.224, 0.225],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return str(folder)


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("bert"), 0)


@pytest.fixture(scope="session")
def other_bert(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("bert"), 1)


@pytest.fixture(scope="session")
def dino(tmp_path_factory):
    return write_dino(tmp_path_factory.mktemp("dino"), 0)


@pytest.fixture
def images():
    """Eight images of different sizes, as arrays."""
    rng = np.random.default_rng(0)
    return [rng.integers(256, size=(30 + 3 * n, 45 - 2 * n, 3), dtype=np.uint8) for n in range(8)]


@pytest.fixture
def files(images, tmp_path):
    """The same images as files."""
    Image = pytest.importorskip("PIL.Image")
    paths = [tmp_path / f"image{n}.png" for n in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        Image.fromarray(image).save(path)
    return [str(path) for path in paths]


@pytest.fixture
def forward_calls(monkeypatch):
    """The batches that reach a network."""
    from annotmix.encoders import Encoder

    calls, forward = [], Encoder._forward

    def counting(self, batch):
        calls.append(len(batch))
        return forward(self, batch)

    monkeypatch.setattr(Encoder, "_forward", counting)
    return calls
