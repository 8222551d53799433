"""Code in a child process with little memory, so that a crash or a lack of memory is only its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: Runs before the code: `bound(n)` lets the process take n bytes more than it has.
_BOUND = """
import resource

def bound(more):
    pages = int(open("/proc/self/statm").read().split()[0])
    size = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
"""


def run_bounded(code: str, *arguments: object) -> str:
    """The output of the code, which must end by itself; `bound(bytes)` in it limits its further memory."""
    command = [sys.executable, "-c", _BOUND + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout
