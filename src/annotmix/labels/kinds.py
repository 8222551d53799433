"""Kinds of annotators: people, language models and other models, rules."""

from __future__ import annotations

import re

UNKNOWN = "unknown"
#: The kinds, and words for them; compared without case, punctuation and a plural s.
_WORDS = {
    "people": (
        "people", "person", "human", "expert", "crowd", "crowdworker", "worker", "labeler", "labeller",
        "student", "volunteer", "professional",
    ),
    "models": (
        "model", "llm", "languagemodel", "largelanguagemodel", "slm", "vlm", "ai", "machine", "network",
        "classifier",
    ),
    "rules": (
        "rule", "labelingfunction", "labellingfunction", "lf", "heuristic", "regex", "keyword", "program",
        "script",
    ),
    UNKNOWN: ("", UNKNOWN, "other"),
}  # fmt: skip
#: The names of the kinds, as results have them.
KINDS = tuple(_WORDS)


def kind_called(word: str) -> str | None:
    """The kind that a word stands for: "LLM" and "models" are "models"; None for other words."""
    plain = re.sub(r"[^a-z]", "", word.lower()[:100])
    wanted = {plain, plain.removesuffix("s")}
    return next((kind for kind, words in _WORDS.items() if wanted & {*words}), None)
