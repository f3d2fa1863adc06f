"""What a runner says of the steps it ran."""

from __future__ import annotations

import dataclasses

Record = tuple[int, int, float, float]  # op, output that is sent (-1: the op itself), start, end


@dataclasses.dataclass
class Steps:
    """What n steps took, in seconds: [n] of the step, and [n][device]. Processor time is
    known of worker processes alone; empty lists elsewhere."""

    wall_s: list[float]
    virtual_s: list[float] = dataclasses.field(default_factory=list)
    worker_virtual_s: list[list[float]] = dataclasses.field(default_factory=list)
    compute_s: list[list[float]] = dataclasses.field(default_factory=list)  # processor time of a worker, its waiting left out
    records: list[list[Record]] = dataclasses.field(default_factory=list)  # per device, of the last step where it is traced
