"""What browser tests do with the tables of a report and the views behind them."""

from __future__ import annotations

from typing import Any

from helpers.browser import Browser

#: The view of an item or annotator is open; or closed, with an address that names none; or shows a name.
OPEN = "return document.querySelector('dialog').open"
CLOSED = "return !document.querySelector('dialog').open && !/item=|annotator=/.test(location.hash)"
TITLE = "return document.querySelector('dialog[open] h2')?.textContent === arguments[0]"


def column(page: Browser, table: str, at: int) -> list[str]:
    """The texts of a column, counted from 1."""
    return page.texts(f"#{table} tbody tr > :nth-child({at})")


def header(page: Browser, table: str, title: str) -> Any:
    """The button that sorts by a column."""
    return next(
        b for b in page.driver.find_elements("css selector", f"#{table} thead button") if b.text == title
    )


def close(page: Browser) -> None:
    """Close the view by its button."""
    page.find("dialog .buttons button:last-child").click()
    page.wait(CLOSED)
