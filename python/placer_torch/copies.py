"""What it costs on this host that a tensor crosses between two workers, and that both use the memory at once."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Sequence

import torch

from . import clock, schedule
from .program import Op, Program, Ref, Spec
from .run_workers import LATENCY, Workers
from .steps import Steps

_SIZES = (256, 8 << 10, 64 << 10, 256 << 10)  # elements of 4 bytes
_EACH = 8  # tensors of each size
_WEIGHTS = 8  # matrices of 1 MB that ops between copies read in turn
_CHAIN = 200  # hops of the chain that goes to and fro


@dataclasses.dataclass
class Copies:
    """Seconds and bytes a second. A copy takes the sender send_s + bytes /
    send_bandwidth; the tensor is there delivery_s later; the first op that reads
    it on a device takes receive_s + bytes / receive_bandwidth longer. A core
    streams at `stream`, one of two that stream at once at `stream_shared`.
    `issue_s` is what the smallest op costs."""

    send_s: float
    send_bandwidth: float
    delivery_s: float
    receive_s: float
    receive_bandwidth: float
    stream: float
    stream_shared: float
    issue_s: float


def measure(cores: Sequence[int] | None = None, *, rounds: int = 3, realtime: bool = False) -> Copies:
    """Measures between two workers, with the runner that runs schedules."""
    p, device = _crossing()
    s = schedule.make(schedule.ops(p), device, ["cpu:0", "cpu:1"])
    names = {o.name: i for i, o in enumerate(p.ops)}
    sends: dict[int, list[list[float]]] = {n: [] for n in _SIZES}  # by size: of a step, each tensor's time
    reads: dict[int, list[list[float]]] = {n: [] for n in _SIZES}
    local: dict[int, list[list[float]]] = {n: [] for n in _SIZES}
    empty: list[float] = []  # of a step, what the clock readings around nothing take
    for _ in range(rounds):
        with Workers(p, s, {}, p.batch, cores=cores, trace=clock.VIRTUAL, realtime=realtime) as w:
            w.run(2)
            for _ in range(4):
                sender, reader = w.run(1).records
                source = [end - start for i, out, start, end in sender if out < 0 and p.ops[i].role == "batch"]
                empty.append(statistics.median(source))
                time = {i: end - start for i, out, start, end in reader if out < 0}
                starts = {i: start for i, _, start, _ in reader}
                ends = {i: end for i, _, _, end in reader}
                sent = {p.ops[i].name: end - start for i, out, start, end in sender if out >= 0}
                for n in _SIZES:
                    sends[n].append([sent[f"made.{n}.{k}"] for k in range(_EACH)])
                    local[n].append([time[names[f"local.{n}.{k}"]] for k in range(_EACH)])
                    remote = [names[f"remote.{n}.{k}"] for k in range(_EACH)]
                    # with the wait, which finds the flag raised: from the end of the op before
                    reads[n].append([time[i] + starts[i] - ends[i - 1] for i in remote])
    # least first, difference then: the least difference would be that of the step whose other part was slow
    clocks = min(empty)
    alone = {n: _typical(v) for n, v in local.items()}
    send_s, send_bandwidth = _line({4 * n: _typical(v) - clocks for n, v in sends.items()})
    receive_s, receive_bandwidth = _line({4 * n: _typical(v) - alone[n] - clocks for n, v in reads.items()})
    stream, shared = _streams(cores, realtime)
    return Copies(send_s, send_bandwidth, _delivery(cores, realtime), receive_s, receive_bandwidth, stream, shared, alone[_SIZES[0]] - clocks)


def _typical(steps: list[list[float]]) -> float:
    """The median over tensors in the step whose sum is least: the least of each tensor
    would be less than any step takes."""
    return statistics.median(min(steps, key=sum))


def _line(times: dict[int, float]) -> tuple[float, float]:
    """Seconds and bytes a second of t = base + bytes / bandwidth; relative errors
    squared are least, base at least 0.1 us, bandwidth at most 1 TB/s."""
    pairs = [(b, max(t, 1e-7)) for b, t in times.items()]
    # weighted normal equations of [1, b] x = t with weights 1/t
    s11 = sum(1 / t**2 for _, t in pairs)
    s1b = sum(b / t**2 for b, t in pairs)
    sbb = sum(b * b / t**2 for b, t in pairs)
    y1, yb = sum(1 / t for _, t in pairs), sum(b / t for b, t in pairs)
    det = s11 * sbb - s1b * s1b
    base, slope = (y1 * sbb - yb * s1b) / det, (yb * s11 - y1 * s1b) / det
    return max(base, 1e-7), 1 / max(slope, 1e-12)


def _op(name: str, target: str, args: tuple[object, ...], s: Spec) -> Op:
    return Op(name=name, role="call", target=target, args=args, outputs=(s,))


def _vector(n: int) -> Spec:
    return Spec((n,), (1,), torch.float32)


def _program(ops: list[Op], batch: dict[str, torch.Tensor], last: Ref) -> Program:
    return Program("copies", ops, [last], {}, {}, batch, False)


def _crossing() -> tuple[Program, list[int]]:
    """Device 0 makes tensors that device 1 reads, behind products that keep
    device 1 busy until all are there; between them device 1 reads its own. As in a
    model's step, products with other weights run between the copies on both
    sides, so that caches hold no more of the copies' code and memory than they
    would there."""
    ops: list[Op] = []
    device: list[int] = []
    batch: dict[str, torch.Tensor] = {}

    def add(o: Op, d: int) -> Ref:
        ops.append(o)
        device.append(d)
        return Ref(len(ops) - 1, 0)

    def source(name: str, s: Spec, d: int) -> Ref:
        batch[name] = torch.ones(s.shape)
        return add(Op(name, "batch", name, outputs=(s,)), d)

    inputs = {(n, d): source(f"x.{n}.{d}", _vector(n), d) for n in _SIZES for d in (0, 1)}
    square = Spec((1024, 1024), (1024, 1), torch.float32)
    weight, rows = Spec((512, 512), (512, 1), torch.float32), Spec((32, 512), (512, 1), torch.float32)
    weights = [[source(f"weight.{d}.{k}", weight, d) for k in range(_WEIGHTS)] for d in (0, 1)]
    activation = [source(f"activation.{d}", rows, d) for d in (0, 1)]
    between = 0

    def product(d: int) -> None:
        nonlocal between
        between += 1
        add(_op(f"between.{between}", "aten.mm.default", (activation[d], weights[d][between % _WEIGHTS]), rows), d)

    a = source("square", square, 1)
    made = {}
    for n in _SIZES:
        for k in range(_EACH):
            product(0)
            made[n, k] = add(_op(f"made.{n}.{k}", "aten.add.Tensor", (inputs[n, 0], 1), _vector(n)), 0)
    for k in range(2):
        a = last = add(_op(f"busy.{k}", "aten.mm.default", (a, a), square), 1)
    for n in _SIZES:
        for k in range(_EACH):
            product(1)
            mine = add(_op(f"mine.{n}.{k}", "aten.add.Tensor", (inputs[n, 1], 1), _vector(n)), 1)
            product(1)
            add(_op(f"local.{n}.{k}", "aten.add.Tensor", (mine, 1), _vector(n)), 1)
            product(1)
            last = add(_op(f"remote.{n}.{k}", "aten.add.Tensor", (made[n, k], 1), _vector(n)), 1)
    return _program(ops, batch, last), device


def _delivery(cores: Sequence[int] | None, realtime: bool) -> float:
    """From a raised flag to a reader that runs on, by a chain of ops to and fro:
    wall time of a hop less its processor time."""
    s = _vector(16)
    ops = [Op("x", "batch", "x", outputs=(s,))]
    for k in range(_CHAIN):
        ops.append(_op(f"hop.{k}", "aten.add.Tensor", (Ref(k, 0), 1), s))
    p = _program(ops, {"x": torch.ones(16)}, Ref(_CHAIN, 0))
    crossed = schedule.make(schedule.ops(p), [k % 2 for k in range(_CHAIN + 1)], ["cpu:0", "cpu:1"])
    with Workers(p, crossed, {}, p.batch, cores=cores, realtime=realtime, latency=0.0) as w:
        w.run(2)
        got: Steps = w.run(10)
    hop = min(wall - virtual for wall, virtual in zip(got.wall_s, got.virtual_s)) / _CHAIN
    return min(max(hop, LATENCY / 4), 10 * LATENCY)


def _streams(cores: Sequence[int] | None, realtime: bool) -> tuple[float, float]:
    """Bytes a second that a core reads and writes in large copies: alone, and beside another."""
    n = 4 << 20
    big = _vector(n)

    def rate(both: bool) -> float:
        ops = [Op("x.0", "batch", "x.0", outputs=(big,)), Op("x.1", "batch", "x.1", outputs=(big,))]
        device = [0, 1]
        for d in (0, 1) if both else (0,):
            for k in range(6):
                ops.append(_op(f"copy.{d}.{k}", "aten.clone.default", (Ref(d, 0),), big))
                device.append(d)
        p = _program(ops, {"x.0": torch.ones(n), "x.1": torch.ones(n)}, Ref(2, 0))
        p.outputs = []
        placed = schedule.make(schedule.ops(p), device, ["cpu:0", "cpu:1"])
        with Workers(p, placed, {}, p.batch, cores=cores, realtime=realtime) as w:
            w.run(2)
            return 6 * 8 * n / min(x[0] for x in w.run(5).compute_s)

    return rate(False), rate(True)
