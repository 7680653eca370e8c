"""Processes that die with the one that started them: a killed parent leaves nobody behind who goes
on with its GPU and its run folder.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1  # of Linux's prctl: be sent a signal when the parent dies


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# What a new process does first (`preexec_fn`); other systems than Linux have no such thing.
DIE_WITH_PARENT: Callable[[], None] | None = _die_with_parent if sys.platform == "linux" else None
