"""Tables as text for a terminal, Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from annotmix.bench.tables import Cell, Table

FORMATS = ("terminal", "markdown", "csv", "latex")
_NONE = "–"
_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "α": r"$\alpha$",
    "χ": r"$\chi$",
    "²": r"$^2$",
    "−": "$-$",
}
_MARKDOWN = {c: f"\\{c}" for c in "\\`*_[]|#"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def render(tables: Sequence[Table], form: str) -> str:
    """Tables in one of FORMATS."""
    if form == "csv":
        return _csv(tables)
    return "\n".join({"terminal": terminal, "markdown": markdown, "latex": latex}[form](t) for t in tables)


def terminal(table: Table) -> str:
    """For a terminal; marks are signs as well as styles, so that they survive a pipe."""
    grid = Grid()
    grid.add_column("approach", no_wrap=True)
    for dataset, source in table.columns:
        grid.add_column(Text(f"{dataset}\n{source}" if source else dataset), justify="right", no_wrap=True)
    for label, row in table.rows.items():
        grid.add_row(Text(label), *(_styled(cell) for cell in row))
    file = io.StringIO()
    tty = sys.stdout.isatty()
    console = Console(file=file, force_terminal=tty, width=None if tty else 1000)
    console.print(Text(table.title, style="bold"))
    console.print(grid)
    for note in ("¹ best (bold), ² second best (italic), ↓ worse than mv-base (underlined).", *table.notes):
        console.print(Text(note))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def _styled(cell: Cell | None) -> Text:
    if cell is None:
        return Text(_NONE)
    styles = {"bold": cell.best, "italic": cell.second, "underline": cell.worse}
    signs = ("¹" if cell.best else "²" if cell.second else " ") + ("↓" if cell.worse else " ")
    return Text.assemble((str(cell), " ".join(s for s, on in styles.items() if on)), signs)


def markdown(table: Table) -> str:
    """Best bold, second best italic, worse than the baseline underlined."""
    heads = ["approach", *(f"{dataset} {source}".strip() for dataset, source in table.columns)]
    lines = [f"**{_escape(table.title, _MARKDOWN)}**", ""]
    lines += [
        _row([_escape(head, _MARKDOWN) for head in heads]),
        _row(["---", *["---:"] * len(table.columns)]),
    ]
    for label, row in table.rows.items():
        lines.append(_row([_escape(label, _MARKDOWN), *map(_markdown_cell, row)]))
    signs = "**Best**, *second best*, <u>worse than mv-base</u>."
    lines += ["", *(f"- {note}" for note in [signs, *(_escape(n, _MARKDOWN) for n in table.notes)]), ""]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return _NONE
    text = f"**{cell}**" if cell.best else f"*{cell}*" if cell.second else str(cell)
    return f"<u>{text}</u>" if cell.worse else text


def latex(table: Table) -> str:
    """A tabular (package booktabs); notes as comments."""
    heads = ["approach", *(f"{dataset} {source}".strip() for dataset, source in table.columns)]
    lines = [f"% {table.title}", *(f"% {note}" for note in table.notes)]
    lines += [rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}", r"\toprule"]
    lines += [" & ".join(_escape(head, _LATEX) for head in heads) + r" \\", r"\midrule"]
    for label, row in table.rows.items():
        lines.append(" & ".join([_escape(label, _LATEX), *map(_latex_cell, row)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return "--"
    text = _escape(str(cell), _LATEX)
    text = rf"\textbf{{{text}}}" if cell.best else rf"\textit{{{text}}}" if cell.second else text
    return rf"\underline{{{text}}}" if cell.worse else text


def _csv(tables: Sequence[Table]) -> str:
    """One row a cell, in the form that `annotmix bench stats FILE` reads."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    score = tables[0].score.replace("-", "_").replace("/", "_")
    with_paper = any(source for _, source in tables[0].columns)
    heads = ["epoch", "approach", "dataset", f"{score}_mean", f"{score}_std", "seeds"]
    writer.writerow(heads + ["paper_mean", "paper_std"] * with_paper)
    for table in tables:
        for label, row in table.rows.items():
            cells = dict(zip(table.columns, row, strict=True))
            for dataset in dict.fromkeys(dataset for dataset, _ in table.columns):
                ours, theirs = cells[dataset, ""], cells.get((dataset, "paper"))
                if ours is not None:
                    figures = [*_figures(ours), ours.n, *(_figures(theirs) if with_paper else ())]
                    writer.writerow([table.epoch, label, dataset, *figures])
    return file.getvalue()


def _figures(cell: Cell | None) -> list[str]:
    if cell is None:
        return ["", ""]
    return [f"{cell.mean:.4f}", "" if cell.std is None else f"{cell.std:.4f}"]


def _escape(text: str, replacements: dict[str, str]) -> str:
    return "".join(replacements.get(character, character) for character in text)
