"""Processes that a run forks: they end with their parent, and pass data by flags in shared memory."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from typing import Sequence

from .errors import NoDeviceError


def die_with(parent: int) -> None:
    """Has the kernel end this process when its parent ends."""
    PR_SET_PDEATHSIG = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        pass
    if os.getppid() != parent:
        os._exit(1)


def kill(pids: Sequence[int]) -> None:
    """Ends these children and waits until they are gone."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    for pid in pids:
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass


def need_ordered_stores(what: str, instead: str = "") -> None:
    """Raises NoDeviceError where the processor may show another core a flag before the data
    that were written in front of it: all but x86-64 may, and Python has no barrier."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise NoDeviceError(f"{what} need an x86-64 processor, whose stores other cores see in their order; this one is {platform.machine()}" + (f": {instead}" if instead else ""))
