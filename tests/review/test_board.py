"""What becomes of items, who sees which, and which decisions belong to the random sample."""

import numpy as np
import pytest
from helpers import some_findings

from annotmix.reading.decisions import Decision, Decisions
from annotmix.review.board import HELD, Board, verdict_of
from annotmix.review.estimate import progress, sample_order
from annotmix.review.queue import STATUSES, Filters, Index


@pytest.fixture(scope="module")
def index():
    return Index(some_findings.small())


@pytest.fixture
def decisions(tmp_path):
    with Decisions(tmp_path / "review.db", write=True) as made:
        yield made


@pytest.fixture
def board(index, decisions):
    return Board(index, decisions)


def status(board, row):
    return list(STATUSES)[board.status[row]]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([], ("open", None)),
        (["a"], ("decided", "a")),
        (["a", "b"], ("disagreed", None)),
        (["a", "b", "a"], ("decided", "a")),
        (["a", "invalid"], ("disagreed", None)),
        (["invalid", "invalid", "a"], ("invalid", None)),
        (["unsure", "skipped"], ("unsure", None)),
        (["skipped"], ("skipped", None)),
        (["skipped", "a"], ("decided", "a")),
    ],
)
def test_the_verdict_of_several_reviewers(said, expected):
    made = [
        Decision("x", f"r{n}", "class", word) if word in "ab" else Decision("x", f"r{n}", word)
        for n, word in enumerate(said)
    ]
    assert verdict_of(made) == expected


def test_a_board_that_follows_equals_a_new_one(index, decisions, board):
    rng = np.random.default_rng(0)
    for _ in range(150):
        who = f"r{rng.integers(3)}"
        if rng.random() < 0.2:
            decisions.undo(who)
        else:
            verdict = rng.choice(["class", "class", "unsure", "invalid", "skipped"])
            label = f"class {rng.integers(2)}" if verdict == "class" else None
            decisions.add(Decision(f"item {rng.integers(12)}", who, verdict, label))
        board.refresh()
        other = Board(index, decisions)
        assert (board.status == other.status).all()
        assert board.true_labels() == other.true_labels() == decisions.true_labels()
        assert board.said(3) == other.said(3)


def test_other_processes_and_unknown_items_are_followed(tmp_path, decisions, board):
    with Decisions(tmp_path / "review.db", write=True) as elsewhere:
        elsewhere.add_all([Decision("nowhere", "bob", "invalid"), Decision("item 4", "bob", "invalid")])
    board.refresh()
    assert status(board, 4) == "invalid"


def test_two_reviewers_get_different_items(index, decisions):
    now = [0.0]
    board = Board(index, decisions, clock=lambda: now[0])
    order = index.rows(Filters(), board.status).tolist()
    assert board.following(Filters(), "ann", None, 2) == order[:2]
    assert board.following(Filters(), "bob", None, 2) == order[2:4]
    board.hold(order[0], "bob")  # no use: ann looks at it
    assert board.following(Filters(), "ann", None, 1) == order[:1]
    now[0] = HELD + 1
    assert board.following(Filters(), "bob", None, 2) == order[:2]


def test_a_queue_goes_on_after_an_item_and_begins_again(index, decisions, board):
    order = index.rows(Filters(), board.status).tolist()
    assert board.following(Filters(), "ann", order[5], 2) == order[6:8]
    assert board.following(Filters(), "ann", order[5], 2, back=True) == [order[4], order[3]]
    assert board.following(Filters(), "ann", order[-1], 2) == order[:2]
    decisions.add(Decision(index.items[order[6]], "ann", "unsure"))
    board.refresh()
    assert board.following(Filters(), "ann", order[5], 1) == [order[7]]
    assert board.following(Filters(), "ann", order[6], 1) == [order[7]]  # which is no longer in it
    unsure = Filters(status="unsure")
    assert board.following(unsure, "ann", order[0], 3) == [order[6]]
    assert board.following(unsure, "ann", order[6], 3) == []


def test_the_sample_has_no_gaps(index, decisions, board):
    """Items are sampled only where all earlier ones of the sample were reviewed, or are looked at."""
    sample, filters = sample_order(200).tolist(), Filters("sample")
    assert board.chosen(sample[0], filters, "ann") == "sample"
    assert board.chosen(sample[1], filters, "ann") == "queue"
    assert board.chosen(sample[0], Filters("sample", disputed=True), "ann") == "queue"
    assert board.chosen(sample[0], Filters("doubtful"), "ann") == "queue"
    board.hold(sample[0], "bob")
    assert board.chosen(sample[1], filters, "ann") == "sample"
    decisions.add(Decision(index.items[sample[2]], "ann", "skipped", chosen="sample"))
    board.refresh()
    assert board.chosen(sample[2], Filters("doubtful", status="all"), "bob") == "sample"  # it stays one


def test_the_useful_order_reviews_the_sample(index, decisions, board):
    """Walking through the order marks every item that it drew."""
    order = index.order("useful")
    for row, drawn in zip(order.rows[:60].tolist(), order.drawn[:60], strict=True):
        chosen = board.chosen(row, Filters(), "ann")
        assert chosen == ("sample" if drawn else "queue")
        decisions.add(Decision(index.items[row], "ann", "class", "class 1", chosen=chosen))
        board.refresh()


def test_progress_is_the_estimate(index, decisions, board):
    true, found = {}, index.findings.items
    for n, row in enumerate(sample_order(200)[:20].tolist()):
        label = "class 3" if n % 5 == 0 else found["label"].iloc[row]
        decisions.add(Decision(index.items[row], "ann", "class", label, chosen="sample"))
        true[index.items[row]] = label
    made, slow = board.progress(0.05), progress(found, true, true)
    assert made["decided"] == made["reviewed"] == 20
    assert made["agreeing"] == slow.agreeing
    assert made["left"] == slow.left._asdict()
    assert made["sample"] == slow.sample._asdict()
    assert board.progress(0.05) is made
    assert board.progress(1.0)["until"] == 0
