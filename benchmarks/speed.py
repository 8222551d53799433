"""What was aimed at, what memory annot-mix takes, and how both grow: the figures of docs/performance.md.

    python benchmarks/speed.py [--data FOLDER] [--only letter classes …]

`make bench-speed` runs all of it, in half an hour on quiet cores. Every case runs in a process of its
own; what is compared is measured in turn in one run. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "performance.md"
#: Where the table of aims stands on the page, and that of growth.
AIMS_BEGIN, BEGIN = "<!-- aims: benchmarks/speed.py -->", "<!-- figures: benchmarks/speed.py -->"
END = "<!-- end of figures -->"
#: The functions of `speed_aims`, each of which returns rows (what, before, aim, measured).
AIMS = ("start_up", "many_classes", "dawid_skene", "majority_vote", "parts", "two_processes")
#: Case, and the calls of `speed_cases` that it is made of.
CASES: dict[str, list[tuple[str, Any]]] = {
    "letter": [("letter", "DATA")],
    "plus": [("plus", "DATA")],
    "annotators": [("annotators", "DATA"), ("annotator_memory", 20), ("annotator_memory", 100_000)],
    "classes": [("classes", 0), ("classes", 8)],
    "labels": [("labels", 50_000), ("labels", 1_000_000)],
    "study": [("study", "DATA")],
}


def call(function: str, argument: Any, folder: str | None) -> dict[str, Any]:
    """A function of `speed_cases` in a fresh process."""
    given = json.dumps(folder if argument == "DATA" else argument)
    command = [sys.executable, str(HERE / "speed_cases.py"), function, given]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def rows(case: str, found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What the page says of a case: what was measured, and the figure."""
    if case == "letter":
        (f,) = found
        times = f["seconds"] / f["products"]
        told = [
            (
                f"letter ({f['labels']} labels): an epoch, and its matrix products alone",
                f"{f['seconds']:.2f} s, {f['products']:.2f} s: **{times:.2f} times**",
            )
        ]
        for size, seconds in f["skactiveml"].items():
            theirs = f"{seconds:.2f} s: ours is **{seconds / f['seconds']:.2f} times** as fast"
            told.append((f"the same networks, scikit-activeml 1.0.1, {size} labels a batch", theirs))
        return told
    if case == "plus":
        return [
            (
                f"annot-mix-plus on {name}: an epoch, and its matrix products alone (aim: ≤ 3.0 times)",
                f"{f['seconds']:.3f} s, {f['products']:.3f} s: **{f['seconds'] / f['products']:.2f} times** "
                f"(before: {f['before']})",
            )
            for name, f in found[0].items()
        ]
    if case == "annotators":
        f, small, large = found
        ratios = ", ".join(f"{int(M):,}: {r:.2f}" for M, r in f["ratio"].items() if int(M) > 20)
        memory = (
            f"{small['memory']:.2f} GB, {large['memory']:.2f} GB (the table with its moments: "
            f"{large['table']:.2f} GB)"
        )
        return [
            ("the same labels by more annotators, an epoch as a multiple of 20 annotators", ratios),
            ("highest memory with 20 and with 100,000 annotators", memory),
        ]
    if case == "classes":
        return [
            (
                f"1000 classes, {kind}: a step of 64 labels; p_perf of 1000 items × 20 annotators",
                f"**{f['seconds a step']:.3f} s**, {f['memory']:.2f} GB; {f['perf seconds']:.0f} s, "
                f"{f['perf memory']:.2f} GB",
            )
            for kind, f in zip(("dense", "rank 8"), found, strict=True)
        ]
    if case == "labels":
        many = found[1]
        a, b = (f["microseconds a label"] for f in found)
        memory = f"{many['memory']:.2f} GB, of which {many['of its own']:.2f} GB are its own"
        return [
            (
                "a label at 50,000 and at 1,000,000 labels, memory-mapped features",
                f"{a:.1f} µs, {b:.1f} µs: **{b / a:.2f} times**",
            ),
            (f"highest memory with 1,000,000 labels (features: {many['features']:.2f} GB on disk)", memory),
        ]
    (f,) = found
    return [
        (f"{f['what']}: two workers as a multiple of one", f"{f['two workers']:.2f} times as fast"),
        ("Dask, store, reading and scoring, as a share of the training", f"{100 * f['overhead']:.1f} %"),
    ]


def aims(function: str, folder: str | None) -> list[tuple[str, str, str, str]]:
    """The rows of a function of `speed_aims`, in a fresh process."""
    command = [sys.executable, str(HERE / "speed_aims.py"), function, *([folder] if folder else [])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [tuple(row) for row in json.loads(done.stdout.splitlines()[-1])]


def write(begin: str, header: tuple[str, ...], told: list[tuple[str, ...]]) -> None:
    """Put a table in place of the one that follows the comment `begin` on the page."""
    lines = ["| " + " | ".join(row) + " |" for row in (header, ("---",) * len(header), *told)]
    said = f"{date.today():%d %B %Y}; {machine()}; one thread.".lstrip("0")
    before, rest = PAGE.read_text().split(begin)
    after = rest.split(END, 1)[1]
    PAGE.write_text("\n".join([f"{before}{begin}", said, "", *lines, f"{END}{after}"]))


def machine() -> str:
    """The processor and what computes on it."""
    import torch

    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
    return (
        f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores, PyTorch {torch.__version__}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=os.environ.get("ANNOTMIX_DATA"), help="default: ANNOTMIX_DATA")
    parser.add_argument(
        "--only", nargs="+", choices=[*AIMS, *CASES], help="print these, and leave the page alone"
    )
    args = parser.parse_args()
    told: list[tuple[str, str]] = []
    reached: list[tuple[str, str, str, str]] = []
    for function in [name for name in AIMS if name in (args.only or AIMS)]:
        reached += (rows_of := aims(function, args.data))
        for what, before, aim, figure in rows_of:
            print(f"{what}: {figure} (before {before or '–'}, aim {aim or '–'})", flush=True)
    for case in [name for name in CASES if name in (args.only or CASES)]:
        started = time.perf_counter()
        told += (new := rows(case, [call(function, given, args.data) for function, given in CASES[case]]))
        for what, figure in new:
            print(f"{what}: {figure}", flush=True)
        print(f"  [{case}: {time.perf_counter() - started:.0f} s]", file=sys.stderr)
    if args.only:
        return
    write(AIMS_BEGIN, ("work", "before", "aim", "measured"), reached)
    write(BEGIN, ("measured", ""), told)
    print(f"written to {PAGE.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
