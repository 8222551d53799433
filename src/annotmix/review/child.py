"""A process that learns a run: `python -m annotmix.review.child`, with the request as JSON on stdin.

It ends with the process that started it: stdin is closed then.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

#: Seconds to end in an orderly way.
GRACE = 20.0


def _end_with_the_parent(parent: Any) -> None:
    parent.read()
    threading.Timer(GRACE, os._exit, (130,)).start()
    signal.raise_signal(signal.SIGINT)


def main() -> int:
    """Read the request, learn, and return the exit code."""
    from annotmix.runs.request import Request

    request = Request.of_settings(json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_the_parent, args=(sys.stdin,), daemon=True).start()
    try:
        from annotmix.runs.fit import fit

        fit(request, lambda line: print(line, flush=True))
    except (OSError, ValueError, ImportError, ArithmeticError) as error:
        print(f"Error: {' '.join(str(error).split())}", flush=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the thread that waits for the parent keeps stdin locked
