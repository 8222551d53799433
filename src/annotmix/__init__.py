"""annotmix: learn a classifier from the noisy class labels of many annotators.

The public names stand in `__init__.pyi`, where editors and type checkers find them. Each is imported when it
is first used, so that `import annotmix` takes no time.
"""

import ast as _ast
import os as _os
from importlib import import_module as _import_module

__version__ = "0.1.0"


def _read_homes() -> dict[str, str]:
    """Public name → module that holds it."""
    with open(_os.path.splitext(__file__)[0] + ".pyi", encoding="utf-8") as stub:
        imports = [node for node in _ast.parse(stub.read()).body if isinstance(node, _ast.ImportFrom)]
    return {name.asname: node.module for node in imports for name in node.names if name.asname}


_HOMES = _read_homes()
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'annotmix' has no attribute {name!r}")
    return getattr(_import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
