"""A process that dies with the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1  # of Linux's prctl: be sent a signal when the parent dies
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # not loaded between fork and exec


def dying_with_this() -> Callable[[], None] | None:
    """For `preexec_fn` of a process that this one starts: it dies with this one, so that a killed
    parent leaves nobody behind who goes on with its GPU and its run folder. Only Linux has this.
    """
    parent = os.getpid()

    def die_with_parent() -> None:
        assert LIBC is not None
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before it could be asked for
            os._exit(1)

    return None if LIBC is None else die_with_parent
