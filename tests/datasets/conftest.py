"""No test here touches the user's cache or the network."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ANNOTMIX_CACHE", str(folder))
    monkeypatch.delenv("ANNOTMIX_DATA", raising=False)
    return folder
