"""Names that the documentation mentions exist: Python names, commands and their options."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import typer

from annotmix.cli import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOTTED = re.compile(r"(?<![\w./-])annotmix(?:\.[A-Za-z_]\w*)+")
CODE = re.compile(r"```(\w*)\n(.*?)```|`([^`\n]+)`", re.DOTALL)
#: A regular expression that finds fewer names than this is broken.
MANY = 30


def page_name(page):
    return page.relative_to(ROOT).as_posix()


def dotted_names(text):
    return set(DOTTED.findall(text))


def resolve(name):
    """The object of a dotted name: the longest part that is a module, then attributes."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if not name.startswith(str(error.name)):
                raise
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def commands(text):
    """Command lines `annotmix …` in code: as text up to a comment, a pipe or the end of the line."""
    for language, block, inline in CODE.findall(text):
        for line in (block or inline).splitlines() if language != "python" else ():
            for part in re.split(r"(?:^|[`(\s])annotmix\s+(?=[a-z-])", line)[1:]:
                yield re.split(r"\s#|[|`;]|\sthen\s", part)[0].split()


def misfits(words):
    """What is wrong with the words after `annotmix`; empty where the command line has them all."""
    command, rest = typer.main.get_command(app), list(words)
    path = []
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        path.append(rest.pop(0))
        if path[-1] not in command.commands:
            return [f"annotmix {' '.join(path)}: no such command"]
        command = command.commands[path[-1]]
    known = {option for parameter in command.params for option in parameter.opts}
    known |= {"--help", "--install-completion", "--show-completion"}
    named = [word.split("=")[0].rstrip(".,:)") for word in rest if re.match(r"--?[a-z]", word)]
    return [f"annotmix {' '.join(path)}: no option {option}" for option in named if option not in known]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_python_names_exist(page):
    missing = []
    for name in sorted(dotted_names(page.read_text("utf-8"))):
        try:
            resolve(name)
        except (ImportError, AttributeError) as error:
            missing.append(f"{name}: {error}")
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_commands_and_options_exist(page):
    assert not [misfit for words in commands(page.read_text("utf-8")) for misfit in misfits(words)]


def test_the_documentation_has_names_and_commands_to_check():
    texts = [page.read_text("utf-8") for page in PAGES]
    assert len(set().union(*map(dotted_names, texts))) > MANY
    assert sum(len(list(commands(text))) for text in texts) > MANY


def test_what_does_not_exist_is_noticed():
    with pytest.raises(AttributeError):
        resolve("annotmix.labels.Annotations.no_such_method")
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        resolve("annotmix.no_such_module.name")
    text = "`annotmix fit x.csv --no-such` and\n```\nannotmix bench fly  # up\nannotmix fit x --out y\n```\n"
    found = [misfit for words in commands(text) for misfit in misfits(words)]
    assert found == ["annotmix fit: no option --no-such", "annotmix bench fly: no such command"]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_linked_files_exist(page):
    """mkdocs checks the pages of the site; README and CONTRIBUTING are none."""
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))
    local = [link for link in links if not link.startswith(("https:", "#"))]
    assert not [link for link in local if not (page.parent / link).exists()]
