"""Where files of ours are kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """The folder for what can be fetched or made again: ANNOTMIX_CACHE, else in the user's cache."""
    if named := os.environ.get("ANNOTMIX_CACHE"):
        return Path(named)
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "annotmix"
