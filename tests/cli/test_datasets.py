"""`annotmix datasets`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from annotmix.cli import app
from annotmix.datasets import overview

runner = CliRunner()


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ANNOTMIX_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ANNOTMIX_DATA", raising=False)


def run(*arguments):
    return runner.invoke(app, ["datasets", *map(str, arguments)])


def test_lists_all(tmp_path):
    result = run("--data", tmp_path)
    assert result.exit_code == 0
    assert "| mgc " in result.output
    assert f"Looked for in {tmp_path}" in result.output


def test_one_beside_the_paper(data_dir, data_file):
    data_file("mgc/music_genre_gold.csv")
    result = run("mgc", "--data", data_dir)
    assert result.exit_code == 0
    assert "Licence: " in result.output
    assert "| mgc     | files | 700 " in result.output
    assert "|         | paper | 700 " in result.output


def test_folder_from_the_environment(data_dir, data_file, monkeypatch):
    data_file("mgc/music_genre_gold.csv")
    monkeypatch.setenv("ANNOTMIX_DATA", str(data_dir))
    assert "| mgc     | files | 700 " in run("mgc").output


def test_all(monkeypatch, tmp_path):
    monkeypatch.setattr(overview, "list_datasets", lambda: ["digits", "trec6"])
    result = run("--all", "--data", tmp_path)
    assert result.exit_code == 0
    assert "| digits  | files | 1,197 " in result.output
    assert "trec6: missing: trec6/train_5500.label, trec6/TREC_10.label" in result.output


def test_published_reaches_the_figures(monkeypatch):
    seen = []
    monkeypatch.setattr(overview, "describe", lambda *arguments: seen.append(arguments) or "")
    assert run("letter", "--published").exit_code == 0
    assert seen == [("letter", None, True)]


def test_mistakes_are_one_line(tmp_path):
    result = run("mcg")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: There is no dataset 'mcg'. Did you mean 'mgc'?")
    (tmp_path / "letter").mkdir()
    (tmp_path / "letter" / "letter-recognition.data").write_text("")
    result = run("letter", "--data", tmp_path)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


def test_download_without_a_network_is_one_line(monkeypatch, tmp_path):
    def refuse(*args, **kwargs):
        raise ConnectionError("no network here")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    result = run("trec6", "--download", "--data", tmp_path)
    assert result.exit_code == 1
    assert "could not be downloaded (no network here)" in result.stderr
    assert result.stderr.count("\n") == 1
