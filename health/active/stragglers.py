# ruff: noqa: UP006, UP035  runs with the Python of old nodes
"""Time the same work on every CPU, all at once; print one JSON object with the seconds of each.

A CPU whose core runs slower than the others holds back every job that waits for it. Python 3.6 and later.
"""

import json
import os
import sys
import time
from typing import List

WORK = 400000


def spin(amount: int) -> float:
    """Do a fixed amount of work; returns the seconds it took."""
    began = time.time()
    value = 1
    for n in range(amount):
        value = (value * 1103515245 + 12345 + n) & 0x7FFFFFFF
    return time.time() - began


def main(arguments: List[str]) -> int:
    """Time all CPUs."""
    rounds = int(arguments[0]) if arguments else 5
    amount = int(arguments[1]) if len(arguments) > 1 else WORK
    readers = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        source, sink = os.pipe()
        if os.fork() == 0:
            os.sched_setaffinity(0, {cpu})
            spin(amount)
            # The best of several: what else runs on a CPU for a moment is not the CPU's fault.
            os.write(sink, b"%f" % min(spin(amount) for _ in range(rounds)))
            os._exit(0)
        os.close(sink)
        readers[cpu] = source
    seconds = {}
    for cpu, source in readers.items():
        seconds[str(cpu)] = float(os.read(source, 64) or b"-1")
        os.close(source)
    sys.stdout.write(json.dumps({"cpus": len(seconds), "seconds": seconds}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
