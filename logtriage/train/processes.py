"""What processes that train have to agree on: who works in a folder, and who dies with whom."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

PR_SET_PDEATHSIG = 1  # of Linux's prctl: be sent a signal when the parent dies
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # not loaded between fork and exec


@contextmanager
def locked(folder: Path, wait: bool = False) -> Iterator[None]:
    """Hold a folder, which need not be there yet, against other processes.

    Args:
        folder: the lock is a file beside it.
        wait: whether to wait for another process that holds it.

    Raises:
        ValueError: when another process holds it, and this one is not to wait.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.parent / f".{folder.name}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        if not wait:
            raise ValueError(
                f"another process is at work in {folder}; wait for its end, or choose another "
                "folder"
            ) from None
        print(f"waiting for another process that is at work in {folder}", flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


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
