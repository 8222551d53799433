"""The views of items and annotators, their addresses, files and pictures, in a browser.

After every test the console must be empty, and nothing may have been asked of the network.
"""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pandas as pd
import pytest
from helpers import some_findings
from helpers.report_views import CLOSED, OPEN, TITLE, close, column, header
from helpers.some_findings import small
from PIL import Image

from annotmix.runs import storage
from annotmix.runs.findings import Preview
from annotmix.runs.report.run import write_report

COMMAND = "annotmix fit 'my labels.csv' --features " + "/".join(["a long folder"] * 30) + "/items.csv"
#: Texts, and the cell of a CSV file that no spreadsheet runs.
GUARDED = {
    "'=1+1": "''=1+1", "''@x": "'''@x", "'-5": "''-5", "'quoted'": "'quoted'", "it's": "it's",
    "' =1": "' =1", " '=1": " ''=1",
}  # fmt: skip
TRICKY = [
    "=1+1", "+1", "-1.5", "-1,5e3", "-1-1", "--1", "@name", "+49 30 1", "\tx", "-", "-->", "1e5", "plain",
    'with "quotes"', "a,b", "two\nlines", "-0x10", "=", " =1",
]  # fmt: skip


@pytest.fixture
def page(browser, reports):
    browser.open(reports("small"))
    return browser


def show(browser, tmp_path, findings):
    write_report(findings, tmp_path / "report.html")
    browser.open(tmp_path / "report.html")


def votes_of(found, item):
    """Annotator, label and chance of every label of an item, the most probable first."""
    own = found.labels[found.labels["item"] == item].sort_values("probability", ascending=False)
    return [(row.annotator, row.label, f"{float(f'{row.probability:.4g}'):.1%}") for row in own.itertuples()]


def test_an_item_has_an_address_that_can_be_opened_again(browser, reports):
    found = small()
    item = found.items["n_labels"].idxmax()
    browser.open(reports("small"), f"#item={item.replace(' ', '+')}")
    for _ in range(2):
        browser.wait(TITLE, item)
        rows = [tuple(line.split("\t")[:3]) for line in browser.texts("dialog .own-votes tbody tr")]
        assert sorted(rows) == sorted(votes_of(found, item))
        assert browser.texts("dialog .facts dd")[:2] == [
            found.items.loc[item, "label"],
            f"{found.items.loc[item, 'probability']:.1%}",
        ]
        browser.driver.refresh()
    browser.wait(TITLE, item)
    close(browser)
    assert browser.script("return location.hash") == ""


def test_close_leaves_all_views_and_back_one(page):
    found = small()
    wrong = found.labels[found.labels["label"] != found.labels["consensus"]]
    who = wrong["annotator"].iloc[0]
    page.find("#annotators-search").send_keys(who)
    page.wait("return document.querySelectorAll('#annotators tbody tr').length < 20")
    next(a for a in page.driver.find_elements("css selector", "#annotators .opens") if a.text == who).click()
    page.wait(TITLE, who)
    item = page.find("dialog .examples .opens").text
    assert item == wrong[wrong["annotator"] == who]["item"].iloc[0]
    page.find("dialog .examples .opens").click()
    page.wait(TITLE, item)
    close(page)
    assert page.focused() == who
    page.driver.forward()
    page.wait(TITLE, who)
    page.driver.back()
    page.wait(CLOSED)


def test_an_address_of_nothing_opens_nothing(browser, reports):
    browser.open(reports("small"), "#item=nobody+knows&number=x")
    assert browser.script(OPEN) is False


def test_hostile_names_have_addresses(browser, reports):
    browser.open(reports("hostile"))
    links = browser.script(
        "return [...document.querySelectorAll('#items .opens')].map((a) => [a.textContent, a.href])"
    )[: len(some_findings.HOSTILE)]
    assert any("onerror" in name for name, _ in links)
    for name, address in links:
        browser.driver.get(address)
        browser.wait(TITLE, name)
    assert browser.script("return document.querySelectorAll('img').length") == 0


def test_names_that_are_cut_alike_have_addresses_of_their_own(browser, tmp_path):
    names = ["n" * 300 + end for end in "abc"]
    show(browser, tmp_path, some_findings.invented(20, 5, 3, 60, names))
    labels = {}
    for number in (1, 2, 3):
        browser.driver.get(f"{(tmp_path / 'report.html').as_uri()}#item={'n' * 199}…&number={number}")
        browser.wait(OPEN)
        labels[number] = browser.texts("dialog .own-votes tbody tr")
    found = some_findings.invented(20, 5, 3, 60, names)
    assert [len(rows) for rows in labels.values()] == found.items.loc[names, "n_labels"].tolist()


def test_a_search_is_kept_in_the_address(page):
    page.find("#items-search").send_keys("item 17")
    page.wait("return location.hash === '#items-search=item+17'")
    page.driver.refresh()
    page.wait("return document.documentElement.dataset.ready === 'yes'")
    matching = [item for item in small().items.index if "item 17" in item]
    assert page.texts("#items tbody .opens") == matching
    assert page.find("#items [role=status]").text == f"{len(matching)} of 200 items"


def test_disputed_items_show_who_said_what_the_least_sure_first(page):
    found = small()
    disputed = found.items[found.items["disagreement"] > 0].sort_values("probability", kind="stable")
    assert page.texts("#disputed tbody .opens") == disputed.index[:20].tolist()
    assert page.find("#disputed [aria-sort=ascending]").text == "Sure"
    for item, cell in zip(disputed.index[:20], column(page, "disputed", 5), strict=True):
        for annotator, label, chance in votes_of(found, item):
            assert any(
                line.startswith(f"{label} {chance}") and annotator in line for line in cell.split("\n")
            )


def test_an_item_without_labels_says_so(page):
    item = small().items.query("n_labels == 0").index[0]
    page.find("#items-search").send_keys(item)
    page.find("#items tbody .opens").click()
    page.wait(TITLE, item)
    assert "Nobody labelled this item" in page.find("dialog").text


def saved(browser, folder, table):
    """The rows of the CSV file that a table is downloaded as."""
    browser.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    browser.script("document.querySelector(`#${arguments[0]} .tools button`).click()", table)
    path = folder / f"report-{table}.csv"
    for _ in range(400):
        if path.exists() and path.stat().st_size:
            break
        browser.script("return new Promise((done) => setTimeout(done, 25))")
    return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8"), newline="")))


def test_tables_are_saved_as_they_are_shown(page, tmp_path):
    found = small()
    header(page, "annotators", "Labels").click()
    page.find("#annotators-search").send_keys("annotator 1")
    head, *rows = saved(page, tmp_path, "annotators")
    own = found.annotators[found.annotators.index.str.contains("annotator 1")]
    assert head == [*found.annotators.reset_index().columns]
    assert [int(row[1]) for row in rows] == sorted(own["n_labels"], reverse=True)
    table = pd.DataFrame(rows, columns=head).set_index("annotator").loc[own.index]
    pd.testing.assert_series_equal(
        table["accuracy"].astype(float), own["accuracy"], rtol=1e-3, check_names=False
    )


def test_saved_texts_are_guarded_as_in_the_files_of_a_run(browser, tmp_path):
    names = [*GUARDED, *TRICKY]
    show(browser, tmp_path, some_findings.invented(60, 40, 4, 200, names))
    _, *rows = saved(browser, tmp_path, "items")
    cells = [row[0] for row in rows]
    assert cells[: len(GUARDED)] == list(GUARDED.values())
    text = storage.to_csv(pd.DataFrame({"item": TRICKY}))
    written = [row[0] for row in csv.reader(io.StringIO(text, newline=""))]
    assert cells[len(GUARDED) : len(names)] == written[1:]


def test_the_command_is_whole_and_can_be_copied(browser, tmp_path):
    show(browser, tmp_path, replace(small(), settings={"command": COMMAND}))
    assert browser.find(".command code").text == COMMAND
    browser.command("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    button = browser.find(".command button")
    button.click()
    browser.wait("return document.querySelector('.command button').textContent === 'Copied'")
    assert browser.script("return navigator.clipboard.readText()") == COMMAND
    browser.command("Browser.resetPermissions")


def test_the_command_is_selected_where_the_browser_does_not_copy(browser, tmp_path):
    show(browser, tmp_path, replace(small(), settings={"command": COMMAND}))
    browser.script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    browser.find(".command button").click()
    browser.wait("return document.querySelector('.command button').textContent !== 'Copy'")
    assert browser.script("return String(getSelection())") == COMMAND


def test_pictures_are_whole_and_larger_in_the_view(browser, tmp_path):
    found, buffer = small(), io.BytesIO()
    Image.new("RGB", (240, 60), (10, 90, 160)).save(buffer, "JPEG")
    picture = Preview("", buffer.getvalue())
    show(browser, tmp_path, replace(found, previews=dict.fromkeys(found.items.index, picture)))
    measure = (
        "const i = document.querySelector(arguments[0]), s = getComputedStyle(i);"
        "return [i.naturalWidth / i.naturalHeight, s.objectFit, i.clientWidth, i.clientHeight]"
    )
    ratio, fit, small_width, _ = browser.script(measure, "#labels img")
    assert (ratio, fit) == (4, "contain")
    browser.find("#labels tbody .opens").click()
    browser.wait(OPEN)
    _, fit, width, height = browser.script(measure, "dialog img")
    assert fit == "contain"
    assert min(width, 4 * height) > 3 * small_width  # of the picture itself, not of the space around it


@pytest.mark.parametrize("width", [1600, 1920])
def test_a_wide_screen_is_used(page, width):
    page.screen(width, 1000)
    left, right = page.script(
        "const box = (css) => document.querySelector(css).getBoundingClientRect();"
        "return [box('.contents').right - box('main').left, box('#annotators table').width]"
    )
    assert left < 0  # the list of sections stands beside the tables
    assert right > 0.7 * width
    assert page.script("return document.documentElement.scrollWidth") <= width
