"""JSON files against a declared type."""

from __future__ import annotations

import pytest

from annotmix._common import schema
from annotmix._common.schema import Count, Strict, read_json, require_equal_lengths


class Shop(Strict):
    name: str
    counts: list[Count]
    prices: list[float]

    def __post_init__(self) -> None:
        require_equal_lengths(counts=self.counts, prices=self.prices)


def test_a_file_of_the_declared_type(tmp_path):
    (tmp_path / "a.json").write_text('{"name": "é", "counts": [1], "prices": [2]}')
    shop = read_json(tmp_path / "a.json", Shop)
    assert (shop.name, shop.counts, shop.prices) == ("é", [1], [2.0])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ("[" * 100_000, "recursion"),
        ("[]", "Expected object, got array"),
        ('{"name": "a", "counts": []}', "missing required field prices"),
        ('{"name": 1, "counts": [], "prices": []}', r"Expected str, got int - at \$.name"),
        ('{"name": "a", "counts": [1, -1], "prices": []}', r"at \$.counts\[1\]"),
        ('{"name": "a", "counts": [1.0], "prices": []}', r"Expected int, got float - at \$.counts\[0\]"),
        ('{"name": "a", "counts": [true], "prices": []}', r"Expected int, got bool - at \$.counts\[0\]"),
        ('{"name": "a", "counts": [1' + "0" * 30 + '], "prices": [1]}', r"at \$.counts\[0\]"),
        ('{"name": "a", "counts": [1], "prices": [1' + "0" * 400 + "]}", r"at \$.prices\[0\]"),
        ('{"name": "a", "counts": [' + "9" * 5000 + '], "prices": [1]}', "digits"),
        ('{"name": "a", "counts": [1], "prices": []}', "1 of counts, 0 of prices"),
        ('{"name": "a", "counts": [], "prices": [], "more": 1}', "unknown field more"),
        (b"\xff\xfe", "utf-8"),
    ],
)
def test_any_other_file_is_one_line_that_names_the_place(tmp_path, text, reason):
    path = tmp_path / "a.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(
        ValueError, match=rf"a\.json' is damaged or not written by annotmix \(.*{reason}"
    ) as error:
        read_json(path, Shop)
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 600


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "LARGEST", 10)
    (tmp_path / "a.json").write_text('{"name": "a", "counts": [], "prices": []}')
    with pytest.raises(ValueError, match="41 bytes; at most 10 are read"):
        read_json(tmp_path / "a.json", Shop)
