"""cleanlab's CROWDLAB in an environment of its own; run by practitioner.py there, it imports nothing of ours.

    python crowdlab.py IN.npz OUT.npz

IN holds `label` (n_items, n_annotators), -1 where there is none, and `proba` (n_items, n_classes). OUT holds
the `consensus` of every item and its `confidence`, the `quality` of every label in the order of
numpy.nonzero, that of the `annotators`, and the `seconds` of CPU time.
"""

import sys
import time

import numpy as np
import pandas as pd

if __name__ == "__main__":
    from cleanlab.multiannotator import get_label_quality_multiannotator

    given = np.load(sys.argv[1], allow_pickle=False)
    label, proba = given["label"], given["proba"]
    names = [f"a{m}" for m in range(label.shape[1])]
    table = pd.DataFrame(np.where(label < 0, np.nan, label), columns=names)
    table = table.dropna(axis=1, how="all")  # annotators without labels are refused
    started = time.process_time()
    found = get_label_quality_multiannotator(table, proba, verbose=False)
    seconds = time.process_time() - started
    detailed = found["detailed_label_quality"].to_numpy(dtype=float)
    stats = found["annotator_stats"]["annotator_quality"]
    np.savez(
        sys.argv[2],
        consensus=found["label_quality"]["consensus_label"].to_numpy(dtype=int),
        confidence=found["label_quality"]["consensus_quality_score"].to_numpy(dtype=float),
        quality=detailed[np.nonzero(table.notna().to_numpy())],
        annotators=stats.reindex(names).to_numpy(dtype=float),
        seconds=seconds,
    )
