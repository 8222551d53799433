"""Queues, beside a slow and obvious way to make them."""

import itertools

import numpy as np
import pytest
from helpers import some_findings

from annotmix.review.orders import ORDERS, ordered
from annotmix.review.queue import STATUS, STATUSES, Filters, Index


@pytest.fixture(scope="module")
def found():
    return some_findings.small()


@pytest.fixture(scope="module")
def index(found):
    return Index(found)


def slow(found, filters, status):
    """Names of the items that pass the filters, in their order."""
    rows = ordered(filters.order, found.items, found.labels).rows
    kept = []
    for row in rows:
        name = found.items.index[row]
        item, own = found.items.iloc[row], found.labels[found.labels["item"] == name]
        if filters.label and item["label"] != filters.label:
            continue
        if filters.annotator and filters.annotator not in set(own["annotator"]):
            continue
        if filters.status != "all" and list(STATUSES)[status[row]] != filters.status:
            continue
        if filters.disputed and own["label"].nunique() < 2:
            continue
        if filters.search.lower() not in f"{name} {found.previews[name].text}".lower():
            continue
        kept.append(name)
    return kept


CASES = list(
    itertools.product(
        ["useful", "disputed"],
        ["", "class 2"],
        ["", "annotator 7"],
        ["open", "all"],
        [False, True],
        ["", "ITEM 1"],
    )
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_filters_are_combined(found, index, case):
    filters, status = Filters(*case), np.random.default_rng(0).integers(3, size=200).astype(np.int8)
    names = [index.items[row] for row in index.rows(filters, status)]
    assert names == slow(found, filters, status)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_holds_every_item_once(index, order):
    rows = index.rows(Filters(order, status="all"), np.zeros(200, np.int8))
    assert sorted(rows) == list(range(200))
    assert (index.rank(order)[rows] == np.arange(200)).all()


def test_labels_stand_with_their_item(found, index):
    for row in range(0, 200, 7):
        own = found.labels[found.labels["item"] == index.items[row]]
        place = index.votes(row)
        pairs = zip(index.vote_annotator[place], index.vote_label[place], strict=True)
        assert {(index.annotators[a], index.classes[c]) for a, c in pairs} == set(
            zip(own["annotator"], own["label"], strict=True)
        )
        assert set(found.labels["item"].iloc[index.vote_row[place]]) <= {index.items[row]}


def test_filters_are_read_from_an_address():
    assert Filters.read({}) == Filters()
    wanted = {
        "order": "sample",
        "label": "a",
        "annotator": "b",
        "status": "all",
        "disputed": "1",
        "search": "c",
    }
    assert Filters.read(wanted) == Filters("sample", "a", "b", "all", True, "c")
    assert not Filters.read({"disputed": "0"}).narrow
    assert not Filters(status="all").narrow
    for narrow in (
        {"label": "a"},
        {"annotator": "a"},
        {"disputed": "1"},
        {"search": "a"},
        {"status": "unsure"},
    ):
        assert Filters.read(narrow).narrow


@pytest.mark.parametrize(("wrong", "word"), [({"order": "x"}, "useful"), ({"status": "x"}, "open")])
def test_a_wrong_filter_says_what_there_is(wrong, word):
    with pytest.raises(ValueError, match=word):
        Filters.read(wrong)


def test_an_unknown_name_says_the_nearest_one(index):
    with pytest.raises(ValueError, match="Did you mean 'annotator 2"):
        index.rows(Filters(annotator="anotator 2"), np.zeros(200, np.int8))


def test_known_true_classes_have_a_status(found):
    found.items.loc["item 5", "gold"] = "class 1"
    try:
        assert np.flatnonzero(Index(found).gold).tolist() == [5]
    finally:
        del found.items["gold"]


def test_no_labels_and_no_texts():
    index = Index(some_findings.bare())
    assert len(index.rows(Filters(search="item 19"), np.zeros(200, np.int8))) == 11
    assert index.votes(3) == slice(0, 0)
    assert STATUS["open"] == 0
