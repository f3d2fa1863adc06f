"""How much longer a core's step takes while its neighbour runs the same step, for the four
models of the accuracy test: the ratio of steps in turns with the neighbour busy with the
step and with the neighbour spinning on nothing. Wants two cores and SCHED_FIFO."""

from __future__ import annotations

import os
import signal
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python", "tests"))

import models
from placer_torch import schedule
from placer_torch import state as states
from placer_torch.capture import capture
from placer_torch.measure import Meter
from placer_torch.run_workers import Workers

TURNS = 16


def spinner(core: int) -> int:
    """A stopped process that spins on core, by its number."""
    pid = os.fork()
    if pid == 0:
        os.sched_setaffinity(0, {core})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        while True:
            pass
    os.kill(pid, signal.SIGSTOP)
    return pid


def main() -> None:
    mine, other = sorted(os.sched_getaffinity(0))[:2]
    print("| model | step beside the same step, over a step alone | middle half |\n|---|---|---|")
    for name in ("lstm", "gpt2", "inception", "moe"):
        model, loss, batch, optimizer = getattr(models, name)()
        p = capture(model, loss, batch, optimizer, name=name)
        meter = Meter(p, states.of_model(p, model), states.leaves(p, batch))
        single = schedule.make(p, [0] * len(p.ops), ["cpu:0"], schedule.critical_path_order(p, [1.0] * len(p.ops)))
        spin = spinner(other)

        def worker(core: int) -> Workers:
            return Workers(p, single, meter.state, meter.batch, specs=meter.specs, realtime=True, cores=[core])

        def step(w: Workers) -> float:
            w.run(1)
            return min(w.run(2).virtual_s)

        try:
            with worker(mine) as w, worker(other) as neighbour:
                w.run(2)
                neighbour.run(2)
                alone, beside = [], []
                for _ in range(TURNS):
                    os.kill(spin, signal.SIGCONT)
                    alone.append(step(w))
                    os.kill(spin, signal.SIGSTOP)
                    neighbour.start(6)
                    beside.append(step(w))
                    neighbour.wait()
        finally:
            os.kill(spin, signal.SIGKILL)
            os.waitpid(spin, 0)
        ratio = [b / ((a + c) / 2) for a, b, c in zip(alone, beside, alone[1:])]
        low, _, high = statistics.quantiles(ratio, n=4)
        print(f"| {name} | {statistics.median(ratio):.3f} | {low:.3f} to {high:.3f} |", flush=True)


if __name__ == "__main__":
    main()
