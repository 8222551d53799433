"""A page of the documentation for every approach, made from its file when the site is built."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from annotmix.approaches import Approach, get_approach, list_approaches
from annotmix.estimators import class_name

FOLDER = "approach"
#: Section of the navigation that lists the pages.
SECTION = "Choose an approach"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages into the navigation, after the overview."""
    entries: list[Any] = next(entry[SECTION] for entry in config.nav or [] if SECTION in entry)
    entries[1:1] = [{"Each approach": [{name: f"{FOLDER}/{name}.md"} for name in list_approaches()]}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name in list_approaches():
        page = f"{FOLDER}/{name}.md"
        files.append(File.generated(config, page, content=approach_page(get_approach(name))))
    return files


def approach_page(approach: type[Approach]) -> str:
    """What the file of an approach says about itself, and how to use it."""
    said = inspect.getdoc(sys.modules[approach.__module__]) or ""
    first, _, rest = said.partition("\n")
    idea = first.removeprefix(f"{approach.name}:").strip()
    estimator = class_name(approach.name)
    own = approach.hyper_parameters()
    shown = ", ".join(f"{name}={parameter.default!r}" for name, parameter in list(own.items())[:2])
    return f"""# {approach.name}

{idea[:1].upper()}{idea[1:]}

{rest}

```python
clf = annotmix.{estimator}({shown}).fit(X, labels)
```

`annotmix.make_classifier("{approach.name}")` makes the same.

On the command line: `annotmix fit labels.csv --features items.csv --approach {approach.name}`.

Besides the parameters below, the estimator has the
[shared parameters](../api.md#annotmix.estimators.multi_annotator.MultiAnnotatorClassifier).

::: {approach.__module__}.{approach.__name__}
    options:
      heading_level: 2
      members: []
      show_bases: false
      show_signature: false
"""
