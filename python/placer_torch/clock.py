"""The clocks of a step.

Wall time is perf_counter's. Virtual time is the processor time of a worker's
thread, raised on receipt of a tensor to the sender's stamp plus the latency:
what wall time would be on cores that nobody else uses. Only the ratio of a
thread's own processor time to work done enters it, so it holds on a busy host.
"""

from __future__ import annotations

import time

from placer_runtime.clock import Load, spread

__all__ = ["Load", "VIRTUAL", "WALL", "spread", "thread", "wall"]

WALL, VIRTUAL = "wall", "virtual"

wall = time.perf_counter
thread = time.thread_time
