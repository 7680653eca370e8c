"""Stands in for a slow machine: every conversation with a model takes 40 s of a made-up clock, and
60 s after the first hour, on top of the real time. All processes share the clock: the size of the
file `SLOW_CLOCK`, in seconds.
"""

import os
import time
from pathlib import Path

from logtriage.play.tools import ToolSession

CLOCK = Path(os.environ["SLOW_CLOCK"])
real, opened = time.perf_counter, ToolSession.__init__


def slow(self, *arguments):
    with CLOCK.open("ab") as file:
        file.write(b"." * (40 if CLOCK.stat().st_size < 3600 else 60))
    opened(self, *arguments)


time.perf_counter = lambda: real() + CLOCK.stat().st_size
ToolSession.__init__ = slow
