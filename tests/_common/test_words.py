import numpy as np

from annotmix._common.words import count, shorten, show, some


def test_a_long_text_is_cut_and_marked():
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde…"


def test_marks_that_turn_the_direction_of_writing_are_left_out():
    assert shorten("a\u202eb\u2066c") == "abc"


def test_numbers_of_numpy_are_shown_as_numbers():
    assert show(np.int64(3)) == "3"
    assert show(np.str_("a")) == "'a'"


def test_some_shows_the_first_few():
    assert some(np.arange(7)) == "0, 1, 2, 3, 4, … (7 in all)"
    assert some(["a", "b"]) == "'a', 'b'"
    assert some(["x" * 1000]) == "'" + "x" * 58 + "…"


def test_one_is_no_plural():
    assert [count(n, "label") for n in (0, 1, 2, 1000)] == ["0 labels", "1 label", "2 labels", "1,000 labels"]
    assert [count(n, "class is", "classes are") for n in (1, 2)] == ["1 class is", "2 classes are"]
    assert count(np.int64(1), "item") == "1 item"
