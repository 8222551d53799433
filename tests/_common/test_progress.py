"""What is shown, where, and when."""

from __future__ import annotations

import io
from contextlib import redirect_stderr

import pytest

from annotmix._common import progress
from annotmix._common.progress import Progress


class Clock:
    """A clock that is set by hand, in place of the `time` module."""

    def __init__(self) -> None:
        self.now = 0.5  # a machine that has just started

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    """A screen; `sys.stderr` is one only after pytest has put its own there, so tests redirect themselves."""
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal()


def run(clock: Clock, steps: int, seconds: float, **more) -> Progress:
    with Progress("training", steps, **more) as shown:
        for step in range(steps - shown.done):
            clock.now += seconds
            shown.advance(f"loss {step}")
    return shown


def test_nothing_is_shown_in_the_first_two_seconds(clock, capsys):
    assert progress.PATIENCE == 2
    run(clock, 19, 0.1)
    assert capsys.readouterr() == ("", "")


def test_plain_lines_where_there_is_no_terminal(clock, capsys):
    assert progress.LINE_EVERY == 10
    run(clock, 30, 1.0)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "training: 2/30  loss 1",
        "training: 12/30  loss 11",
        "training: 22/30  loss 21",
        "training: 30/30  loss 29",
    ]


def test_the_end_is_shown_where_there_was_a_line(clock, capsys):
    run(clock, 3, 1.0)
    assert capsys.readouterr().err.splitlines() == ["training: 2/3  loss 1", "training: 3/3  loss 2"]


def test_a_resumed_job_goes_on_counting(clock, capsys):
    shown = run(clock, 12, 3.0, done=10)
    assert capsys.readouterr().err.splitlines() == ["training: 11/12  loss 0", "training: 12/12  loss 1"]
    assert shown.done == 12


def test_patience_and_the_distance_of_lines_can_be_set(clock, capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    run(clock, 3, 0.001)
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_silence_on_request(clock, capsys):
    shown = run(clock, 30, 10.0, show=False)
    assert capsys.readouterr() == ("", "")
    assert shown.done == 30


def test_silence_on_request_on_a_terminal(clock, terminal):
    with redirect_stderr(terminal):
        run(clock, 30, 10.0, show=False)
    assert terminal.getvalue() == ""


def test_a_bar_on_a_terminal(clock, terminal):
    with redirect_stderr(terminal):
        run(clock, 5, 1.0)
    shown = terminal.getvalue()
    assert "training" in shown
    assert "5/5" in shown
    assert "loss 4" in shown


def test_no_bar_in_the_first_two_seconds(clock, terminal):
    with redirect_stderr(terminal):
        run(clock, 19, 0.1)
    assert terminal.getvalue() == ""


def test_brackets_are_text(clock, terminal):
    with redirect_stderr(terminal), Progress("[/red] cats [bold]", 2) as shown:
        clock.now += 3
        shown.advance("[/x] [1, 2]")
    assert "[/red] cats [bold]" in terminal.getvalue()
    assert "[/x] [1, 2]" in terminal.getvalue()


def test_several_steps_at_once_and_a_part_of_a_step(clock, capsys):
    with Progress("training", 5) as shown:
        clock.now += 3
        shown.within("batch 7")
        clock.now += 10
        shown.advance("half", steps=3)
        clock.now += 1
        shown.advance("all", steps=2)
    lines = ["training: 0/5  batch 7", "training: 3/5  half", "training: 5/5  all"]
    assert capsys.readouterr().err.splitlines() == lines


def test_a_job_inside_another_is_its_note(clock, capsys):
    with Progress("training", 2) as outer:
        with Progress("counting", 4) as inner:
            clock.now += 3
            inner.advance("not shown")
        outer.advance()
    with Progress("counting", 1) as alone:
        clock.now += 3
        alone.advance()
    lines = ["training: 0/2  counting: 1/4", "counting: 1/1  "]
    assert capsys.readouterr().err.splitlines() == lines


def test_a_job_inside_a_silent_one_is_silent(clock, capsys):
    with Progress("training", 2, show=False), Progress("counting", 4) as inner:
        clock.now += 3
        inner.advance()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_passes_and_the_bar_ends(clock, terminal, error):
    shown = Progress("training", 5)

    def job():
        with shown:
            clock.now += 3
            shown.advance()
            raise error

    with redirect_stderr(terminal), pytest.raises(error):
        job()
    assert not shown._bar.live.is_started
    assert "1/5" in terminal.getvalue()


def test_real_time(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    with Progress("training", 10**9) as shown:
        shown.advance()
        assert capsys.readouterr().err == ""
        while not (err := capsys.readouterr().err):
            shown.advance("running")
    assert err.startswith("training: ")
    assert err.endswith("running\n")
