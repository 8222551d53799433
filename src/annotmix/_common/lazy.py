"""Names of a package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    package : str
        Its `__name__`.
    homes : mapping of str to str
        Public name → module of the package that holds it.
    """

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return find, lambda: sorted(homes)
