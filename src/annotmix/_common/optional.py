"""Optional dependencies."""

from __future__ import annotations

import importlib
from typing import Any


def require(module: str, extra: str, what: str) -> Any:
    """Import an optional module, or say which extra brings it; `what` needs it, for the message."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(
            f'{what} needs {error.name}. Install it with: pip install "annotmix[{extra}]"'
        ) from error
