"""The approaches, one file each, found by name.

Every module of this package is imported, and every `Approach` in it that has a name is registered. An
approach of your own registers itself in the same way, wherever its file is: define a subclass of `Approach`
with a `name`, then call `register` on it (it also works as a decorator).
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil

from annotmix.approaches.base import Approach, Batch

_REGISTRY: dict[str, type[Approach]] = {}


def register(approach: type[Approach]) -> type[Approach]:
    """Make an approach known by its name, everywhere."""
    known = _REGISTRY.get(approach.name)
    if known is not None and known.__module__ != approach.__module__:
        raise ValueError(f"An approach named {approach.name!r} is registered already: {known!r}.")
    _REGISTRY[approach.name] = approach
    return approach


def get_approach(name: str) -> type[Approach]:
    """The approach of that name."""
    if name not in _REGISTRY:
        near = difflib.get_close_matches(str(name), _REGISTRY, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"Unknown approach {name!r}.{hint} Known: {', '.join(list_approaches())}.")
    return _REGISTRY[name]


def list_approaches() -> list[str]:
    """The names of all approaches, sorted."""
    return sorted(_REGISTRY)


for _module in pkgutil.iter_modules(__path__):
    for _member in vars(importlib.import_module(f"{__name__}.{_module.name}")).values():
        if inspect.isclass(_member) and issubclass(_member, Approach) and "name" in vars(_member):
            register(_member)

__all__ = ["Approach", "Batch", "get_approach", "list_approaches", "register"]
