"""Attacks annotmix: kills, races, damaged and hostile files, network; and says how much of it survived.

    python benchmarks/attack.py                      # everything, in about ten minutes
    python benchmarks/attack.py --minutes 60         # more of the same
    python benchmarks/attack.py --only saves loads --count 1000
    python benchmarks/attack.py --page docs/promises.md

Everything happens in temporary folders and on the loopback interface. A trial survives if nothing is lost and
every error is one clear line. `--page` writes the table into a page, between its two marks.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import attack_files
import attack_hostile
import attack_names
import attack_processes
import attack_runs
from attack_tools import CONTEXT, PRELOADED, Trials

BEGIN, END = "<!-- table: benchmarks/attack.py -->", "<!-- end of table -->"


class Campaign(NamedTuple):
    """A way to attack.

    Parameters
    ----------
    attack : callable
        Does the trials.
    tried, promise : str
        What is tried and what must be true afterwards, for the table.
    count : int
        Most trials.
    share : float
        Part of the time, relative to the others.
    """

    attack: Callable[[Trials], None]
    tried: str
    promise: str
    count: int
    share: float = 1.0


CAMPAIGNS = {
    # the first three have a fixed number of trials; the others share the time that is left
    "hostile": Campaign(
        attack_hostile.hostile,
        "models of enormous or 200,000 layers or of 20 GB, arrays that claim 14 TB, with little memory",
        "refused in one clear line",
        1000,
        2,
    ),
    "encoders": Campaign(
        attack_hostile.encoders,
        "checkpoints whose index names a pickle or another folder; runs that name a cache folder",
        "refused, and nothing is written there",
        50,
    ),
    "report": Campaign(
        attack_names.report,
        "hostile names of items, annotators and classes in the report, in Chromium",
        "no script runs, and nothing is requested",
        1000,
    ),
    "overwrite": Campaign(
        attack_runs.overwrite,
        "`fit --overwrite` is stopped at every rename and removal",
        "the old or the new run is whole, and the next `fit` leaves no rest",
        1000,
        5,
    ),
    "starts": Campaign(
        attack_runs.starts,
        "two `fit` start on one folder at the same moment",
        "one makes a whole run, the other is refused in one line",
        200,
        2,
    ),
    "saves": Campaign(
        attack_runs.saves,
        "two processes `save` into one folder at the same moment",
        "one of the two models is there, whole",
        300,
    ),
    "loads": Campaign(
        attack_runs.loads,
        "`load` while another process saves two models in turn",
        "one of the two models, whole",
        300,
    ),
    "resumes": Campaign(
        attack_runs.resumes,
        "`fit` is killed once or twice at random moments, then resumed",
        "the same bits, and no rest",
        100,
        2,
    ),
    "pickles": Campaign(
        attack_files.pickles,
        "mutated and crafted CIFAR pickles and PyTorch files, with little memory",
        "read, or refused in one clear line",
        20_000,
    ),
    "runs": Campaign(
        attack_files.runs,
        "one file of a run of each `--model` is mutated (JSON, safetensors, NPY); then `predict`, "
        "`evaluate`, `suggest`, `report` or `export` reads it",
        "right, or refused in one clear line",
        20_000,
        2,
    ),
    "labels": Campaign(
        attack_files.labels,
        "mutated label files of every format",
        "read, or refused in one clear line",
        20_000,
    ),
    "names": Campaign(
        attack_names.names,
        "random names through the files of `fit` into the next `fit`",
        "the same names",
        200,
        2,
    ),
    "sockets": Campaign(
        attack_processes.sockets,
        "two processes train, and their parent is killed",
        "they listen on the loopback interface alone, end within ten seconds, and the run can be resumed",
        10,
        4,
    ),
    "workers": Campaign(
        attack_processes.workers,
        "a Dask worker is killed while the cluster comes up",
        "the study is finished, or one clear line says what to do",
        10,
        4,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="for all campaigns together")
    parser.add_argument(
        "--only", nargs="+", choices=list(CAMPAIGNS), metavar="CAMPAIGN", help=", ".join(CAMPAIGNS)
    )
    parser.add_argument("--count", type=int, help="most trials of each campaign")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, help="page to write the table into")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attack-cache-") as cache:
        os.environ["ANNOTMIX_CACHE"] = cache
        CONTEXT.set_forkserver_preload(PRELOADED)
        sys.exit(attack(arguments))


def attack(arguments: argparse.Namespace) -> int:
    """Do the campaigns; 0 where everything survived."""
    chosen = {name: CAMPAIGNS[name] for name in arguments.only or CAMPAIGNS}
    warm_up()
    begun, results = time.monotonic(), {}
    share = sum(campaign.share for campaign in chosen.values())
    for name, campaign in chosen.items():
        left = 60 * arguments.minutes - (time.monotonic() - begun)
        seconds = max(0.0, left) * campaign.share / share
        share -= campaign.share
        results[name] = trials = run(campaign, seconds, arguments)
        took = time.monotonic() - trials.begun
        print(
            f"{name:10} tried {trials.tried:6}  survived {trials.survived:6}  {took:4.0f} s  {trials.note}",
            flush=True,
        )
        for failure in list(dict.fromkeys(trials.failures))[:5]:
            print(f"           - {failure}", flush=True)
    if arguments.page is not None:
        write_page(arguments.page, table(results, time.monotonic() - begun))
    return int(any(trials.survived < trials.tried for trials in results.values()))


def warm_up() -> None:
    """Start the server of the child processes, whose imports belong to no campaign."""
    process = CONTEXT.Process(target=time.sleep, args=(0,))
    process.start()
    process.join()


def run(campaign: Campaign, seconds: float, arguments: argparse.Namespace) -> Trials:
    """The trials of a campaign in a folder of its own; an attack that breaks down is a failure."""
    with tempfile.TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as folder:
        count = min(campaign.count, arguments.count or campaign.count)
        trials = Trials(count, seconds, Path(folder).resolve(), arguments.seed)
        try:
            campaign.attack(trials)
        except Exception as error:
            trials.record(f"the attack itself failed: {type(error).__name__}: {error}")
        return trials


def table(results: dict[str, Trials], seconds: float) -> str:
    """The results as Markdown."""
    lines = [
        f"{date.today():%-d %B %Y}; {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"{platform.system()}; {seconds / 60:.0f} minutes.",
        "",
        "| campaign | what is tried | what must be true | tried | survived |",
        "|---|---|---|---:|---:|",
    ]
    for name, trials in results.items():
        campaign = CAMPAIGNS[name]
        tried = campaign.tried + (f" ({trials.note})" if trials.note else "")
        figure = f"{trials.survived:,}" if trials.survived == trials.tried else f"**{trials.survived:,}**"
        lines.append(f"| {name} | {tried} | {campaign.promise} | {trials.tried:,} | {figure} |")
    return "\n".join(lines)


def write_page(page: Path, content: str) -> None:
    """Put the table between the marks of a page."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{content}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
