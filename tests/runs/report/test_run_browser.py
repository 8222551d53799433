"""The report in a browser: sorting, searching, detail view, keyboard, dark mode, phone, paper, hostile names.

After every test the console must be empty, and nothing may have been asked of the network.
"""

from __future__ import annotations

import base64
import re

import numpy as np
import pandas as pd
import pytest
from helpers import some_findings
from helpers.browser import Keys
from helpers.report_views import CLOSED, OPEN, TITLE, close, column, header
from helpers.some_findings import small

ROWS = 20
ANNOTATORS = "#annotators tbody tr"


@pytest.fixture
def page(browser, reports):
    browser.open(reports("small"))
    return browser


def test_reports_of_real_runs(browser, real_run):
    """Everything a person does with the page, beside the CSV files of the same run."""
    name = real_run.parent.name
    annotators = pd.read_csv(real_run / "annotators.csv", dtype={"annotator": str}).set_index("annotator")
    labels = pd.read_csv(real_run / "labels.csv", dtype=str)
    browser.open(real_run / "report.html")
    assert re.search(rf"of {len(labels):,} labels are probably wrong", browser.find("h1").text)
    assert "annot-mix-plus" in browser.find(".lead").text
    assert column(browser, "labels", 2) == labels["annotator"].head(ROWS).tolist()
    pictures = "return [...document.querySelectorAll('#labels img')].filter((i) => i.naturalWidth > 0).length"
    assert browser.script(pictures) == (ROWS if name == "labelme" else 0)
    if name == "trec6":
        assert re.search(r"\?$", column(browser, "labels", 1)[0])  # a question
    assert bool(browser.driver.find_elements("css selector", "#checked-section figure")) == (name == "mgc")

    best = annotators.sort_values("low", ascending=False, kind="stable")["low"].head(ROWS)
    np.testing.assert_allclose(annotators.loc[column(browser, "annotators", 1), "low"], best, rtol=1e-3)
    header(browser, "annotators", "Labels").click()
    header(browser, "annotators", "Labels").click()
    assert [int(n) for n in column(browser, "annotators", 2)] == sorted(annotators["n_labels"])[:ROWS]
    who = column(browser, "annotators", 1)[-1]
    search = browser.find("#annotators-search")
    search.send_keys(who)
    matching = sum(who in annotator for annotator in annotators.index)
    assert browser.find("#annotators [role=status]").text == f"{matching} of {len(annotators)} annotators"
    assert who in column(browser, "annotators", 1)
    search.send_keys(Keys.CONTROL + "a", Keys.DELETE)

    opener = next(
        b for b in browser.driver.find_elements("css selector", f"{ANNOTATORS} .opens") if b.text == who
    )
    browser.script("arguments[0].focus()", opener)
    browser.press(Keys.ENTER)
    browser.wait(TITLE, who)
    shown = browser.texts("dialog .facts dd")
    assert shown[0] == str(annotators.loc[who, "n_labels"])
    assert float(shown[1].split("%")[0]) == pytest.approx(100 * annotators.loc[who, "accuracy"], abs=0.51)
    browser.press(Keys.ESCAPE)
    browser.wait(CLOSED)
    assert browser.focused() == who

    browser.media(scheme="dark")
    assert luminance(rgb(browser.script("return getComputedStyle(document.body).backgroundColor"))) < 0.1
    browser.screen(390, 844)
    assert browser.script("return document.documentElement.scrollWidth") == 390


def test_numbers_are_sorted_as_numbers(page):
    header(page, "annotators", "Labels").click()
    given = [int(n) for n in column(page, "annotators", 2)]
    assert given == sorted(small().annotators["n_labels"], reverse=True)[:ROWS]
    assert page.find("#annotators [aria-sort]").get_attribute("aria-sort") == "descending"
    header(page, "annotators", "Labels").click()
    assert [int(n) for n in column(page, "annotators", 2)] == sorted(small().annotators["n_labels"])[:ROWS]
    assert page.find("#annotators [aria-sort]").get_attribute("aria-sort") == "ascending"
    assert len(page.driver.find_elements("css selector", "#annotators [aria-sort]")) == 1


def test_annotators_are_sorted_by_the_lower_end_of_their_interval(page):
    low = small().annotators["low"]
    for _ in range(2):  # at the start, and after another order
        assert page.find("#annotators [aria-sort]").text == "Accuracy"
        shown = low[column(page, "annotators", 1)]
        assert shown.tolist() == sorted(low, reverse=True)[:ROWS]
        header(page, "annotators", "Labels").click()
        header(page, "annotators", "Accuracy").click()


def test_what_is_not_known_is_sorted_last(page):
    agreement = header(page, "annotators", "Agreement")
    for _ in range(2):
        agreement.click()
        page.find("#annotators .pager button:last-child").click()
        *known, a, b, c = column(page, "annotators", 4)
        assert {a, b, c} == {"–"}
        assert "–" not in known


def test_text_is_sorted_as_people_do(page):
    header(page, "annotators", "Annotator").click()
    assert column(page, "annotators", 1)[:12] == [f"annotator {i}" for i in range(12)]
    header(page, "annotators", "Annotator").click()
    assert column(page, "annotators", 1)[0] == "annotator 29"


def test_search_filters_while_typing(page):
    search = page.find("#annotators-search")
    search.send_keys("ANNOTATOR 2")
    assert set(column(page, "annotators", 1)) == {"annotator 2", *(f"annotator {i}" for i in range(20, 30))}
    assert page.find("#annotators [role=status]").text == "11 of 30 annotators"
    search.send_keys("nobody")
    assert column(page, "annotators", 1) == []
    assert page.find("#annotators [role=status]").text == "0 of 30 annotators"
    search.send_keys(Keys.CONTROL + "a", Keys.DELETE)
    assert page.find("#annotators [role=status]").text == "30 annotators"
    labels = page.find("#labels-search")
    labels.send_keys("annotator 3")
    n = int((small().labels["annotator"] == "annotator 3").sum())
    assert page.find("#labels [role=status]").text == f"{n} of {len(small().labels)} labels"
    assert column(page, "labels", 2) == ["annotator 3"] * min(n, ROWS)


def test_pages_are_turned(page):
    first = column(page, "annotators", 1)
    previous, following = page.driver.find_elements("css selector", "#annotators .pager button")
    assert previous.get_attribute("aria-disabled") == "true"
    previous.click()
    assert column(page, "annotators", 1) == first
    following.click()
    rest = column(page, "annotators", 1)
    assert len(first) == ROWS
    assert len(rest) == 10
    assert not set(first) & set(rest)
    assert page.find("#annotators .pager span").text == "21–30 of 30"
    assert following.get_attribute("aria-disabled") == "true"


def test_detail_view_shows_the_confusion_matrix(page):
    found = small()
    page.find(ANNOTATORS).click()  # anywhere on the line
    page.wait(OPEN)
    name = page.find("dialog h2").text
    assert name == column(page, "annotators", 1)[0]
    at = list(found.annotators.index).index(name)
    shown = page.script(
        "return [...document.querySelectorAll('dialog .matrix tbody tr')]"
        ".map((r) => [...r.querySelectorAll('td')].map((c) => +c.innerText))"
    )
    np.testing.assert_allclose(np.array(shown) / 100, found.confusion.whole[at], atol=0.006)
    assert page.texts("dialog .facts dd")[0] == str(found.annotators["n_labels"].iloc[at])
    close(page)


def test_everything_works_by_keyboard(page):
    page.find("#annotators-search").click()
    page.press(Keys.TAB)
    assert page.focused() == "Download CSV"
    page.press(Keys.TAB)
    assert page.focused() == "Annotator"
    page.press(Keys.ENTER)
    assert page.find("#annotators [aria-sort]").text.startswith("Annotator")
    page.press(*[Keys.TAB] * 1)
    for _ in range(4):
        page.press(Keys.TAB)
    assert page.focused() == "annotator 0"
    page.press(Keys.ENTER)
    page.wait(OPEN)
    assert page.find("dialog h2").text == page.focused() == "annotator 0"
    page.press(Keys.TAB)
    assert page.focused() == "Copy link"
    page.press(Keys.TAB)
    assert page.focused() == "Close"
    page.press(Keys.ESCAPE)
    page.wait(CLOSED)
    assert page.focused() == "annotator 0"


def test_items_and_annotators_lead_to_each_other(page):
    item = page.find("#labels tbody .opens").text
    page.find("#labels tbody .opens").click()
    page.wait(TITLE, item)
    who = page.find("dialog .own-votes .opens").text
    page.find("dialog .own-votes .opens").click()
    page.wait(TITLE, who)
    page.driver.back()
    page.wait(TITLE, item)
    page.driver.back()
    page.wait(CLOSED)


def rgb(colour):
    return np.array([int(n) for n in re.findall(r"\d+", colour)[:3]]) / 255


def luminance(colour):
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(page, scheme):
    page.media(scheme=scheme)
    ground = rgb(page.script("return getComputedStyle(document.body).backgroundColor"))
    assert (luminance(ground) < 0.1) == (scheme == "dark")
    for css in (
        "h1",
        ".lead",
        ".quiet",
        ".eyebrow",
        "a",
        ".contents a",
        ".opens",
        "thead button",
        "figcaption",
    ):
        assert contrast(rgb(page.find(css).value_of_css_property("color")), ground) >= 4.5, css
    page.find(ANNOTATORS).click()
    page.wait(OPEN)
    cells = page.script(
        "return [...document.querySelectorAll('.matrix tbody td')].map((cell) => {"
        "const own = getComputedStyle(cell), heat = getComputedStyle(cell, '::before');"
        "return [own.color, own.backgroundColor, heat.backgroundColor, +heat.opacity]; })"
    )
    assert max(strength for *_, strength in cells) > 0.2
    for ink, ground, heat, strength in cells:
        mixed = strength * rgb(heat) + (1 - strength) * rgb(ground)
        assert contrast(rgb(ink), mixed) >= 4.5


@pytest.mark.parametrize("name", ["small", "hostile", "many classes", "over time"])
def test_a_phone_needs_no_scrolling_across(browser, reports, name):
    browser.screen(390, 844)
    browser.open(reports(name))
    assert browser.script("return document.documentElement.scrollWidth") == 390
    browser.find(f"{ANNOTATORS} .opens").click()
    browser.wait(OPEN)
    edges = "const r = document.querySelector('dialog').getBoundingClientRect(); return [r.left, r.right]"
    left, right = browser.script(edges)
    assert left >= 0
    assert right <= 390
    assert browser.script("return document.querySelector('dialog').scrollWidth") <= right - left


def test_little_is_enough_for_a_report(browser, reports):
    browser.open(reports("bare"))
    assert browser.find("h1").text == "There are no labels"
    browser.find(f"{ANNOTATORS} .opens").click()
    browser.wait(OPEN)
    assert browser.texts("dialog .facts dd") == ["0", "–", "–"]


def test_names_are_text_and_never_code(browser, reports):
    browser.open(reports("hostile"))
    header(browser, "annotators", "Annotator").click()
    shown = column(browser, "annotators", 1)
    assert some_findings.IMG in shown
    assert browser.texts("#making-section li")[0] == some_findings.IMG
    assert browser.find(".eyebrow").text == some_findings.IMG
    for opener in browser.driver.find_elements("css selector", f"{ANNOTATORS} .opens")[:8]:
        browser.script("arguments[0].click()", opener)
    assert browser.script("return document.querySelectorAll('img, script:not(#data)').length") == 1  # our own
    assert browser.script("return document.title").startswith(some_findings.IMG)


def test_code_that_got_in_would_not_run(browser, reports):
    browser.open(reports("small"))
    browser.script(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title = 1\">');"
        "const s = document.createElement('script'); s.textContent = 'document.title = 2';"
        "document.body.append(s);"
    )
    assert browser.script("return document.title") == "Invented figures: annotmix report"
    refused = browser.complaints()
    assert len(refused) >= 2
    assert all("Content Security Policy" in message for message in refused)


def test_a_large_report_is_small_and_shows_a_page_at_a_time(browser, reports):
    path = reports("large")
    assert path.stat().st_size < 5_000_000  # 30,000 items, each with a text, and 100,000 labels
    browser.open(path)
    assert browser.find("#annotators [role=status]").text == "1,000 annotators"
    assert browser.find("#labels [role=status]").text == "2,000 labels"
    assert browser.script("return document.querySelectorAll('tbody tr').length") < 7 * ROWS
    browser.find("#annotators-search").send_keys("annotator 777")
    assert column(browser, "annotators", 1) == ["annotator 777"]
    assert browser.find("#items [role=status]").text == "30,000 items"
    browser.find("#items-search").send_keys("item 29876")
    assert browser.texts("#items tbody .opens") == ["item 29876"]


def test_many_classes_keep_their_largest_confusions(browser, reports):
    path = reports("many classes")
    assert path.stat().st_size < 2_000_000
    browser.open(path)
    header(browser, "annotators", "Labels").click()  # the most reliable one confuses nothing
    browser.find(ANNOTATORS).click()
    browser.wait(OPEN)
    found = some_findings.invented(2000, 300, 100, 6000)
    at = list(found.annotators.index).index(browser.find("dialog h2").text)
    assert found.confusion.whole is None
    true, given = divmod(found.confusion.cell[at, found.confusion.share[at].argmax()], 100)
    largest = f"class {true} called class {given}"
    assert any(line.startswith(largest) for line in browser.texts("dialog .confusions li"))


def test_on_paper_there_are_no_controls_and_all_details(page):
    page.media("print")
    for css in (".tools", ".pager", ".contents"):
        assert page.find(css).value_of_css_property("display") == "none"
    page.media()
    pdf = base64.b64decode(page.command("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF")
    assert page.script("return [...document.querySelectorAll('details')].every((d) => d.open)")


def test_without_a_script_the_first_rows_are_there(browser, reports):
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.driver.get(reports("small").as_uri())
        source = browser.command("DOM.getDocument", depth=-1)["root"]
        assert "annotator 0" in str(source)
        html = browser.driver.page_source
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)
    assert html.count('<tr><th scope="row">') > 30
    assert 'role="status"' not in html
