"""What a run does unless it is told otherwise. Imports nothing, so that help comes at once."""

from __future__ import annotations

from typing import Any

DEFAULT_APPROACH = "annot-mix-plus"
EPOCHS = 50
#: Encoders that need no download at run time.
ENCODERS = {"text": "text:minilm", "images": "image:efficientnet-lite0"}
#: Suggestions that are made with a run.
SUGGESTIONS = 100


def network(kind: str, n_items: int, n_features: int) -> dict[str, Any]:
    """Parameters of the network: the paper's for data of that kind.

    Many features (an encoder's, or more than 256): one layer. Fewer: two layers. Dropout, but for tables of
    5000 labelled items or more, which a network of this size does not memorise.
    """
    if kind != "features" or n_features > 256:
        return {"hidden": (128,), "dropout": 0.5, "weight_decay": 1e-4}
    return {"hidden": (256, 128), "dropout": 0.5 if n_items < 5000 else 0.0, "weight_decay": 0.0}
