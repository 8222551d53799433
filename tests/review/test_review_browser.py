"""The page in a browser: keyboard, undo, filters, two reviewers, reload, a killed server, phone, dark mode.

After every test the console must be empty, and nothing may have been asked of another server.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import pytest
from helpers import some_findings
from helpers.browser import Keys
from helpers.review_run import served, write_run

from annotmix.reading.decisions import Decisions
from annotmix.runs.findings import Preview

NAME = "return document.querySelector('#name').innerText === arguments[0]"
SAID = "return document.querySelector('#said').innerText.includes(arguments[0])"
DECIDED = "return document.querySelector('#decided').innerText.startsWith(arguments[0])"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of one run, for all tests of this file."""
    run = write_run(tmp_path_factory.mktemp("review") / "run", some_findings.small())
    with served(run) as (address, session):
        yield address, session


@pytest.fixture
def page(browser, server):
    """The page, with nothing decided by this test's reviewer."""
    address, session = server
    while session.decisions.undo("ann") or session.decisions.undo("bob"):
        pass
    visit(browser, address)
    return browser


@pytest.fixture
def decisions(server):
    return server[1].decisions


def visit(browser, address, query=""):
    browser.visit(address + query, address)


def name(browser):
    return browser.find("#name").text


def press(browser, key):
    """A key, and the next item."""
    before = name(browser)
    browser.press(key)
    browser.wait("return document.querySelector('#name').innerText !== arguments[0]", before)


def kept(decisions, n):
    """The current decisions, when there are n."""
    for _ in range(500):
        if len(made := decisions.current()) == n:
            return made
        subprocess.run(["sleep", "0.02"], check=True)
    raise AssertionError(f"{len(made)} decisions in place of {n}")


def test_twenty_items_by_keyboard_alone(page, decisions):
    seen = []
    for n in range(20):
        seen.append(name(page))
        press(page, "1234s?x"[n % 7])
    made = kept(decisions, 20)
    assert [d.item for d in made] == seen
    assert len(set(seen)) == 20
    assert [d.label for d in made[:4]] == ["class 0", "class 1", "class 2", "class 3"]
    assert [d.verdict for d in made[4:7]] == ["skipped", "unsure", "invalid"]
    assert {d.chosen for d in made} == {"queue", "sample"}
    page.wait(DECIDED, "12, of which")
    page.wait(SAID, "Decided: unsure. Item")
    assert page.focused() == name(page)


def test_undo_and_note(page, decisions):
    first = name(page)
    page.press("n")
    page.press(*"1 is s?x", Keys.ENTER)  # letters of a note decide nothing
    press(page, "2")
    second = name(page)
    press(page, "x")
    assert [d.note for d in kept(decisions, 2)] == ["1 is s?x", ""]
    page.press("u")
    page.wait(NAME, second)
    page.press("u")
    page.wait(NAME, first)
    assert decisions.current() == []
    page.press("u")
    page.wait(SAID, "nothing to undo")
    page.press("1")
    page.wait(NAME, second)
    assert [(d.item, d.label) for d in kept(decisions, 1)] == [(first, "class 0")]


def test_back_and_forth(page, decisions):
    first = name(page)
    press(page, Keys.ARROW_RIGHT)
    second = name(page)
    press(page, "1")
    press(page, Keys.ARROW_LEFT)
    assert name(page) == second
    assert page.find("[aria-pressed=true]").text.split("\n")[1] == "class 0"
    page.press("3")  # another mind
    made = kept(decisions, 1)
    page.wait("return document.querySelector('#name').innerText !== arguments[0]", second)
    press(page, Keys.ARROW_LEFT)
    press(page, Keys.ARROW_LEFT)
    assert name(page) == first
    assert decisions.current()[0].item == made[0].item == second
    assert decisions.current()[0].label == "class 2"


def test_buttons_do_what_keys_do(page, decisions):
    first = name(page)
    page.find("#classes button:nth-child(2)").click()
    page.wait("return document.querySelector('#name').innerText !== arguments[0]", first)
    for n, text in enumerate(("Skip", "Unsure", "Not a valid item")):
        before = name(page)
        page.find(f"#actions button:nth-child({n + 1})").click()
        page.wait("return document.querySelector('#name').innerText !== arguments[0]", before)
        assert text in page.texts("#actions button")[n]
    assert [d.verdict for d in kept(decisions, 4)] == ["class", "skipped", "unsure", "invalid"]


def test_filters_are_combined_and_in_the_address(page, server):
    found = some_findings.small()
    page.script(
        "const f = document.querySelector('#filters').elements; f.label.value = 'class 1';"
        "f.disputed.checked = true; f.disputed.dispatchEvent(new Event('change', { bubbles: true }))"
    )
    items = found.items
    wanted = items.index[(items["label"] == "class 1") & (items["disagreement"] > 0)]
    page.wait(
        "return document.querySelector('#total').innerText.startsWith(arguments[0])", f"{len(wanted)} of 200"
    )
    assert {line.split(":")[0] for line in page.texts("#queue .item-name")} == set(wanted)
    page.wait("return location.search.includes('disputed=1')")
    query = parse_qs(urlsplit(page.driver.current_url).query)
    assert query["label"] == ["class 1"]
    assert query["disputed"] == ["1"]
    press(page, "s")
    second = name(page)
    page.visit(page.driver.current_url, server[0])  # a reload
    assert name(page) == second
    assert page.find("#filters select[name=label]").get_property("value") == "class 1"
    page.press("/")
    page.press(*"item 1", Keys.ENTER)
    matching = [item for item in wanted if "item 1" in item]
    page.wait(
        "return document.querySelector('#total').innerText.startsWith(arguments[0] + ' ')",
        str(sum(item != name_of_skipped(server) for item in matching)),
    )
    assert page.focused() == name(page)


def name_of_skipped(server):
    return server[1].decisions.current()[0].item


def test_an_annotator_leads_to_the_items(page):
    who = page.find("#votes .opens").text
    n = int((some_findings.small().labels["annotator"] == who).sum())
    page.find("#votes .opens").click()
    page.wait("return document.querySelector('#total').innerText === arguments[0]", f"{n} of 200 items")
    page.find("#queue li:nth-child(2) button").click()
    page.wait(
        "return document.querySelector('#queue li:nth-child(2)').getAttribute('aria-current') === 'true'"
    )


def test_the_end_of_a_queue(page, server):
    visit(page, server[0], "?search=item+19&order=doubtful")
    for _ in range(11):
        press(page, "1")
    assert name(page) == "Nothing is left in this queue"
    page.press("1")
    assert len(kept(server[1].decisions, 11)) == 11


def test_two_reviewers_do_not_meet(page, server):
    """Two pages in turn: no item is shown to both."""
    address, session = server
    seen = {"ann": [], "bob": []}
    for who in ("ann", "bob"):
        visit(page, address, f"?reviewer={who}")
        for _ in range(3):
            seen[who].append(name(page))
            press(page, "1")
        kept(session.decisions, 3 if who == "ann" else 6)
    assert not set(seen["ann"]) & set(seen["bob"])
    assert {d.reviewer for d in session.decisions.current()} == {"ann", "bob"}
    page.find("#reviewer").send_keys(Keys.CONTROL + "a" + Keys.NULL + "bob 2" + Keys.ENTER)
    page.wait("return location.search.includes('reviewer=bob+2')")


def test_a_killed_server_loses_no_decision(browser, tmp_path):
    run = write_run(tmp_path / "run", some_findings.small())

    def start():
        command = [sys.executable, "-c", "from annotmix.cli import main; main()", "review", str(run)]
        command += ["--no-browser", "--reviewer", "ann"]
        made = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in made.stdout:
            if "Review: " in line:
                return made, line.split()[-1]
        raise AssertionError("the server did not start")

    server, address = start()
    visit(browser, address)
    seen = []
    for _ in range(3):
        seen.append(name(browser))
        press(browser, "2")
    browser.wait(DECIDED, "3,")
    server.kill()
    server.wait()
    with Decisions(run / "review.db") as decisions:
        assert [d.item for d in decisions.current()] == seen
    lost = name(browser)
    browser.press("1")
    browser.wait(
        "return document.querySelector('#problem').innerText.startsWith('Not kept: The server does not')"
    )
    assert name(browser) == lost  # to decide it again
    assert all("ERR_CONNECTION_REFUSED" in text for text in browser.complaints())

    server, again = start()
    browser.requests()
    visit(browser, again)
    browser.wait(DECIDED, "3,")
    assert name(browser) not in seen
    server.send_signal(signal.SIGINT)
    assert server.wait(20) == 0
    assert "All decisions are in" in server.stdout.read()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_in_light_and_dark(page, scheme):
    page.media(scheme=scheme)
    page.screen(390, 844)
    assert page.script("return document.documentElement.scrollWidth") == 390
    ground, ink = (
        page.script(f"return getComputedStyle(document.body).{own}") for own in ("backgroundColor", "color")
    )
    bright = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ground, ink)]
    assert (bright[0] < bright[1]) == (scheme == "dark")
    for css in ("#classes button", "#actions button"):
        assert page.script("return document.querySelector(arguments[0]).offsetHeight", css) >= 32
    press(page, "1")
    top = page.script("return document.querySelector('#name').getBoundingClientRect().top")
    assert 0 <= top < 844


def test_every_control_has_a_name(page):
    nameless = page.script(
        "const named = (e) => e.labels?.length || e.innerText || e.getAttribute('aria-label');"
        "const controls = [...document.querySelectorAll('input, select, button, a, progress')];"
        "return controls.filter((e) => !named(e)).map((e) => e.outerHTML)"
    )
    assert nameless == []
    assert page.find("#said").get_attribute("aria-live") == "polite"
    tabbed = page.script("return [...document.querySelectorAll('[tabindex]')].map((e) => e.tabIndex)")
    assert set(tabbed) <= {0, -1}


def test_hostile_names_are_text(browser, tmp_path):
    names = some_findings.HOSTILE
    found = some_findings.invented(60, 20, 12, 400, names)
    found.previews[names[1]] = Preview(image=b"\xff\xd8\xff no picture at all")
    with served(write_run(tmp_path / "run", found)) as (address, session):
        visit(browser, address, "?status=all&order=sample")
        for row, hostile in enumerate(names):
            visit(browser, address, f"?status=all&item={row}")
            shown = browser.script("return document.querySelector('#name bdi').textContent")
            assert shown == hostile
            assert (
                browser.script("return document.querySelectorAll('main script, main img[src=x]').length") == 0
            )
            browser.press("c")
            browser.press(*"img", Keys.ENTER)
            kept(session.decisions, row + 1)
        assert {d.label for d in session.decisions.current()} == {some_findings.IMG}
        browser.wait("return document.querySelector('#decisions') !== null")
        browser.screen(390, 844)
        assert browser.script("return document.documentElement.scrollWidth") == 390
        browser.driver.get("about:blank")  # it would ask the server that ends


def test_decisions_are_used(page, server, monkeypatch):
    """The button, with a process that only says that it failed."""
    press(page, "1")
    page.find("#afterwards button").click()
    page.wait(
        "return document.querySelector('#problem').innerText.includes('not there any more: labels.csv')"
    )
    answers = iter(
        [
            {"state": "running", "out": "there", "lines": ["Training …"]},
            {
                "state": "done", "out": "there", "lines": [],
                "changes": {
                    "items": 200, "other": 1, "beyond": 1, "moved": 1,
                    "wrong_before": 9.5, "wrong_after": 4.2,
                    "examples": [{"item": "<b>x", "before": "a", "after": "b", "decided": False}],
                    "annotators": [{"annotator": "ann", "before": 0.5, "after": 0.9}],
                },
            },
        ]
    )  # fmt: skip
    training = server[1].training
    monkeypatch.setattr(training, "start", lambda: None)
    monkeypatch.setattr(training, "answer", lambda: next(answers))
    # the refused request before is no complaint of the page
    assert all("400" in text for text in page.complaints())
    page.find("#afterwards button").click()
    page.wait("return document.querySelector('#training').innerText.includes('1 of 200 items have')")
    text = page.find("#training").text
    assert "9.5 before, 4.2 now" in text
    assert "annotmix review there" in text
