"""What was aimed at, what memory annot-mix takes, and how both grow: the figures of docs/performance.md.

    python benchmarks/speed.py [--data FOLDER] [--before FOLDER] [--only letter classes …]

`make bench-speed` runs all of it, in half an hour on quiet cores. Every case runs in a process of its own;
what is compared is measured in turn in one run. With `--before` the code of an earlier commit is measured
beside today's (`git worktree add FOLDER COMMIT`). Finished cases of the same day, those of `--only` among
them, are kept in `build/` and are not measured again. Nothing is asserted.
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
#: Where rows of finished cases are kept.
KEPT = HERE.parent / "build" / f"bench-speed-{date.today()}.json"
#: The functions of `speed_aims`, each of which returns rows (what, before, aim, measured, seconds).
AIMS = (
    "plus", "letter", "skactiveml", "start_up", "many_classes", "dawid_skene", "majority_vote", "parts",
    "two_processes",
)  # fmt: skip
#: What earlier commits can do, too: measured several times, in turn.
COMPARED = ("plus", "letter", "start_up", "majority_vote")
ROUNDS = 3
Aim = tuple[str, str, str, str, float | None]
#: Case, and the calls of `speed_cases` that it is made of.
CASES: dict[str, list[tuple[str, Any]]] = {
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


def aims(function: str, folder: str | None, before: Path | None) -> list[tuple[str, str, str, str]]:
    """The rows of a function of `speed_aims`, in fresh processes; beside the code in `before`, if given."""
    codes = [HERE.parent] if before is None or function not in COMPARED else [HERE.parent, before]
    rounds = [
        [_rows_of(function, folder, code) for code in codes]
        for _ in range(ROUNDS if function in COMPARED else 1)
    ]
    now, *then = (_least(tables) for tables in zip(*rounds, strict=True))
    if not then:
        return [row[:4] for row in now]
    told = []
    for (what, _, aim, measured, seconds), (*_, figure, earlier) in zip(now, then[0], strict=True):
        if seconds is not None and earlier is not None:
            measured += f" ({earlier / seconds:.2f} times as fast as before)"
        told.append((what, figure, aim, measured))
    return told


def _least(tables: tuple[list[Aim], ...]) -> list[Aim]:
    """Of the same row in several tables, the one with the fewest seconds."""
    return [min(row, key=lambda one: one[4] or 0.0) for row in zip(*tables, strict=True)]


def _rows_of(function: str, folder: str | None, code: Path) -> list[Aim]:
    """Rows that a function returns with the code in a folder."""
    command = [sys.executable, str(HERE / "speed_aims.py"), function, *([folder] if folder else [])]
    environment = os.environ | {"PYTHONPATH": str(code.resolve() / "src")}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return [tuple(row) for row in json.loads(done.stdout.splitlines()[-1])]


def write(begin: str, header: tuple[str, ...], told: list[list[str]], load: str) -> None:
    """Put a table in place of the one that follows the comment `begin` on the page."""
    lines = ["| " + " | ".join(row) + " |" for row in (header, ("---",) * len(header), *told)]
    said = f"{date.today():%d %B %Y}; {machine()}; one thread; {load}.".lstrip("0")
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


def finished() -> dict[str, Any]:
    """Rows of the cases that were measured today, and the load of the machine meanwhile."""
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=os.environ.get("ANNOTMIX_DATA"), help="default: ANNOTMIX_DATA")
    parser.add_argument("--before", type=Path, help="working tree of an earlier commit, to compare with")
    parser.add_argument(
        "--only", nargs="+", choices=[*AIMS, *CASES], help="measure these, and leave the page alone"
    )
    args = parser.parse_args()
    for name in args.only or [*AIMS, *CASES]:
        if name in finished() and not args.only:
            continue
        started = time.perf_counter()
        if name in AIMS:
            table: Any = aims(name, args.data, args.before)
        else:
            table = rows(name, [call(function, given, args.data) for function, given in CASES[name]])
        done = finished() | {name: {"rows": table, "load": os.getloadavg()[1]}}
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(done, ensure_ascii=False, indent=1))
        for row in table:
            print(" | ".join(row), flush=True)
        print(f"  [{name}: {time.perf_counter() - started:.0f} s]", file=sys.stderr)
    if args.only:
        return
    kept = finished()
    loads = [case["load"] for case in kept.values()]
    load = f"load average {min(loads):.0f} to {max(loads):.0f}"
    header = ("work", "before", "aim", "measured")
    write(AIMS_BEGIN, header, [row for name in AIMS for row in kept[name]["rows"]], load)
    write(BEGIN, ("measured", ""), [row for name in CASES for row in kept[name]["rows"]], load)
    print(f"written to {PAGE.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
