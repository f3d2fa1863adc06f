"""Writes schedules of random graphs and their steps by replay.py, which the Go simulator is held to.

    python3 python/tests/replay_fixture.py > sim/testdata/replay.json

Needs no torch: of placer_torch replay.py uses names that stand in here."""

from __future__ import annotations

import collections
import dataclasses
import json
import random
import sys
import types
from typing import Any, Iterator

Ref = collections.namedtuple("Ref", "op out")
Spec = collections.namedtuple("Spec", "shape stride dtype")
Type = collections.namedtuple("Type", "itemsize")
Copies = collections.namedtuple("Copies", "send_s send_bandwidth delivery_s receive_s receive_bandwidth")


@dataclasses.dataclass
class Op:
    reads: list[Ref]
    control: list[int]
    bytes: list[int]  # of each output

    def inputs(self) -> Iterator[Ref]:
        return iter(self.reads)


@dataclasses.dataclass
class Program:
    ops: list[Op]

    def spec(self, r: Ref) -> Spec:
        return Spec((self.ops[r.op].bytes[r.out],), (1,), Type(1))


def stand_in() -> None:
    for name, has in {
        "placer_torch": {},
        "placer_torch.graph": {"update_control": lambda p: {i: o.control for i, o in enumerate(p.ops)}},
        "placer_torch.copies": {"Copies": Copies},
        "placer_torch.program": {"Program": Program, "Ref": Ref},
    }.items():
        m = types.ModuleType(name)
        m.__dict__.update(has)
        sys.modules[name] = m
    sys.modules["placer_torch"].graph = sys.modules["placer_torch.graph"]  # type: ignore[attr-defined]


def case(rng: random.Random, devices: int, static: bool) -> tuple[Program, list[int], list[float]]:
    """A graph, its placement and times. Of a static order an op reads one tensor of
    another device at most, for replay waits for the second when it has the first.
    Of a simulated order every op has one output, for replay has an op's outputs
    delivered together, and control dependencies stay on one device."""
    n, ops = 30, []
    device = [rng.randrange(devices) for _ in range(n)]
    for i in range(n):
        reads: list[Ref] = []
        for _ in range(rng.randrange(4) if i else 0):
            j = rng.randrange(max(0, i - 12), i)
            r = Ref(j, rng.randrange(len(ops[j].bytes)))
            foreign = {x for x in reads if device[x.op] != device[i]}
            if not static or device[j] == device[i] or not foreign - {r}:
                reads.append(r)
        control = sorted({j for j in range(i) if rng.random() < 0.05 and (static or device[j] == device[i])})
        ops.append(Op(reads, control, [rng.randrange(1, 200_000) for _ in range(rng.randrange(1, 4) if static else 1)]))
    return Program(ops), device, [rng.uniform(1e-6, 60e-6) for _ in range(n)]


def document(rng: random.Random, devices: int, static: bool) -> dict[str, Any]:
    from replay import Replay

    p, device, seconds = case(rng, devices, static)
    c = Copies(rng.uniform(1e-6, 3e-6), rng.uniform(5e9, 2e10), rng.uniform(0.5e-6, 2e-6), rng.uniform(0.5e-6, 2e-6), rng.uniform(2e10, 6e10))
    sim = Replay(p, seconds, c)
    order, step = sim.order(device, devices)
    if static:
        step = sim.predict(device, order, devices)
    priority = sorted(range(len(seconds)), key=lambda i: (-sim.rank[i], i))
    return {
        "static": static,
        "copies": c._asdict(),
        "ops": [{"inputs": [list(r) for r in o.reads], "control": o.control, "bytes": o.bytes, "seconds": s, "device": d} for o, s, d in zip(p.ops, seconds, device)],
        "priority": [priority.index(i) for i in range(len(seconds))],
        "order": order,
        "step": step,
    }


if __name__ == "__main__":
    stand_in()
    rng = random.Random(26)
    cases = [document(rng, devices, static) for static in (False, True) for devices in (2, 2, 3, 4)]
    print("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]")
