"""What a series of steps was taken beside: its spread, and the load of others."""

from __future__ import annotations

import os
import statistics
import time
from typing import Sequence


def spread(seconds: Sequence[float]) -> float:
    """(third quartile - first) / median; 0 of fewer than four."""
    if len(seconds) < 4:
        return 0.0
    q = statistics.quantiles(seconds, n=4)
    return (q[2] - q[0]) / statistics.median(seconds)


class Load:
    """Share of a core that processes which are not ours use, between two readings of /proc/stat."""

    def __init__(self) -> None:
        self._at = self._read()

    def others(self) -> float | None:
        """Since the last call or the beginning; None where the host does not say."""
        before, self._at = self._at, self._read()
        if before is None or self._at is None or self._at[2] - before[2] <= 0:
            return None
        busy = self._at[0] - before[0]
        ours = self._at[1] - before[1]
        return max(0.0, (busy - ours) / (self._at[2] - before[2]))

    @staticmethod
    def _read() -> tuple[float, float, float] | None:
        try:
            with open("/proc/stat") as f:
                fields = [int(x) for x in f.readline().split()[1:9]]
        except OSError:
            return None
        busy = (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")
        t = os.times()
        return busy, t.user + t.system + t.children_user + t.children_system, time.monotonic()
