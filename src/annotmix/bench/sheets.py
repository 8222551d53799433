"""Sheets of text for a terminal, Markdown and LaTeX, and their figures as CSV."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from annotmix._common.spreadsheet import to_csv

FORMATS = ("terminal", "markdown", "csv", "latex")
NONE = "–"
_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}", "\n": " "},
    **{"±": r"$\pm$", "–": "--", "−": "$-$", "…": r"\dots{}", "★": r"$\star$"},
    **{"α": r"$\alpha$", "η": r"$\eta$", "λ": r"$\lambda$", "χ": r"$\chi$", "²": "$^2$"},
}
_MARKDOWN = {c: f"\\{c}" for c in "\\`*_[]|#~"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "\n": " "}


@dataclass(frozen=True)
class Shown:
    """A text in a sheet, perhaps marked."""

    text: str
    best: bool = False
    second: bool = False
    worse: bool = False


@dataclass
class Sheet:
    """The content of one table.

    Attributes
    ----------
    heads : list of str
        The first is the heading of the row names.
    rows : list of (str, list of Shown)
    notes : list of str
        Lines below the table.
    records : DataFrame
        The figures, for CSV.
    """

    title: str
    heads: list[str]
    rows: list[tuple[str, list[Shown]]]
    records: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    def legend(self, best: str, second: str, worse: str) -> list[str]:
        """Explains the marks that occur, in these words."""
        cells = [cell for _, row in self.rows for cell in row]
        marks = {
            best: any(cell.best for cell in cells),
            second: any(cell.second for cell in cells),
            worse: any(cell.worse for cell in cells),
        }
        used = [text for text, occurs in marks.items() if occurs]
        return [f"{', '.join(used)}."] if used else []


def render(sheets: Sequence[Sheet], form: str) -> str:
    """Sheets in one of FORMATS."""
    if form == "csv":
        return to_csv(pd.concat([sheet.records for sheet in sheets]), float_format=None)
    return "\n".join({"terminal": terminal, "markdown": markdown, "latex": latex}[form](s) for s in sheets)


def terminal(sheet: Sheet) -> str:
    """For a terminal; marks are signs as well as styles, so that they survive a pipe."""
    grid = Grid()
    grid.add_column(Text(sheet.heads[0]), no_wrap=True)
    for head in sheet.heads[1:]:
        grid.add_column(Text(head), justify="right", no_wrap=True)
    legend = sheet.legend("¹ best (bold)", "² second best (italic)", "↓ worse than mv-base (underlined)")
    for label, row in sheet.rows:
        grid.add_row(Text(label), *(_styled(cell, bool(legend)) for cell in row))
    file = io.StringIO()
    # wide enough for any table: a narrow terminal wraps its lines, but no figure is cut off
    console = Console(file=file, force_terminal=sys.stdout.isatty(), width=1000)
    console.print(Text(sheet.title, style="bold"))
    console.print(grid)
    for note in (*legend, *sheet.notes):
        console.print(Text(note))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def _styled(cell: Shown, marked: bool) -> Text:
    styles = {"bold": cell.best, "italic": cell.second, "underline": cell.worse}
    signs = ("¹" if cell.best else "²" if cell.second else " ") + ("↓" if cell.worse else " ")
    return Text.assemble((cell.text, " ".join(s for s, on in styles.items() if on)), signs if marked else "")


def markdown(sheet: Sheet) -> str:
    """Best bold, second best italic, worse than mv-base underlined."""
    lines = [f"**{_escape(sheet.title, _MARKDOWN)}**", ""]
    lines += [_row([_escape(head, _MARKDOWN) for head in sheet.heads])]
    lines += [_row(["---", *["---:"] * (len(sheet.heads) - 1)])]
    lines += [_row([_escape(label, _MARKDOWN), *map(_markdown_cell, row)]) for label, row in sheet.rows]
    legend = sheet.legend("**best**", "*second best*", "<u>worse than mv-base</u>")
    notes = [*legend, *(_escape(note, _MARKDOWN) for note in sheet.notes)]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes), ""])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Shown) -> str:
    text = _escape(cell.text, _MARKDOWN)
    text = f"**{text}**" if cell.best else f"*{text}*" if cell.second else text
    return f"<u>{text}</u>" if cell.worse else text


def latex(sheet: Sheet) -> str:
    """A tabular (package booktabs); title and notes as comments."""
    comments = [f"% {' '.join(text.split())}" for text in (sheet.title, *sheet.notes)]
    lines = [*comments, rf"\begin{{tabular}}{{l{'r' * (len(sheet.heads) - 1)}}}", r"\toprule"]
    lines += [" & ".join(_escape(head, _LATEX) for head in sheet.heads) + r" \\", r"\midrule"]
    for label, row in sheet.rows:
        lines.append(" & ".join([_escape(label, _LATEX), *map(_latex_cell, row)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_cell(cell: Shown) -> str:
    text = _escape(cell.text, _LATEX)
    text = rf"\textbf{{{text}}}" if cell.best else rf"\textit{{{text}}}" if cell.second else text
    return rf"\underline{{{text}}}" if cell.worse else text


def _escape(text: str, replacements: dict[str, str]) -> str:
    return "".join(replacements.get(character, character) for character in text)
