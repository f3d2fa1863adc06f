"""Which device runs each op, and in which order: schedule and plan files, checked against a program."""

from __future__ import annotations

import collections
import dataclasses
import heapq
import json
from typing import Any, Sequence

from .errors import FormatError
from .graph import groups, update_control
from .program import Program


@dataclasses.dataclass(frozen=True)
class Schedule:
    """`device` is an index into `devices` per op of the program; `order` has
    every op once, in issue order, a topological order. `kernel` is the number
    of the op's fused kernel, 0 for none."""

    devices: tuple[str, ...]
    device: tuple[int, ...]
    order: tuple[int, ...]
    kernel: tuple[int, ...]
    method: str = ""
    predicted_s: float | None = None

    @property
    def fused(self) -> int:
        """How many kernels of several ops there are, which CPU workers run op by op."""
        return sum(n > 1 for k, n in collections.Counter(self.kernel).items() if k)

    def of(self, d: int) -> list[int]:
        """The ops of device d in issue order."""
        return [i for i in self.order if self.device[i] == d]


def make(p: Program, device: Sequence[int], devices: Sequence[str], order: Sequence[int] | None = None, kernel: Sequence[int] | None = None, method: str = "", predicted_s: float | None = None, where: str = "plan") -> Schedule:
    """A checked schedule. Raises FormatError, which names op and reason."""
    n = len(p.ops)
    if len(device) != n:
        raise FormatError(f"{where}: {len(device)} ops have a device, the program has {n}")
    for i, d in enumerate(device):
        if not 0 <= d < len(devices):
            raise FormatError(f"{where}: op {p.ops[i].name} is on device {d} of {len(devices)}")
    first: dict[int, int] = {}
    for i, g in enumerate(groups(p)):
        if g and device[first.setdefault(g, i)] != device[i]:
            raise FormatError(f"{where}: ops {p.ops[first[g]].name} and {p.ops[i].name} share memory and are on devices {devices[device[first[g]]]} and {devices[device[i]]}")
    order = range(n) if order is None else order
    place = [-1] * n
    for k, i in enumerate(order):
        if not 0 <= i < n or place[i] >= 0:
            raise FormatError(f"{where}: the order names op {i} twice or not of this program")
        place[i] = k
    control = update_control(p)
    for i, o in enumerate(p.ops):
        if place[i] < 0:
            raise FormatError(f"{where}: op {o.name} is not in the order")
        for j in [r.op for r in o.inputs()] + [c for c in control.get(i, []) if device[c] == device[i]]:
            if place[j] > place[i]:
                raise FormatError(f"{where}: op {o.name} stands before {p.ops[j].name}, which it needs")
    return Schedule(tuple(devices), tuple(device), tuple(order), tuple(kernel or [0] * n), method, predicted_s)


def single(p: Program, device: str = "cpu:0") -> Schedule:
    """Everything on one device, in the program's order."""
    return make(p, [0] * len(p.ops), [device], method="single")


def critical_path_order(p: Program, seconds: Sequence[float]) -> list[int]:
    """The order in which one device runs the ops when the ready op with the
    longest path of `seconds` behind it comes first: placer's default scheduler."""
    control = update_control(p)
    rank = list(seconds)
    for i in reversed(range(len(p.ops))):
        for j in {r.op for r in p.ops[i].inputs()} | set(control.get(i, [])):
            rank[j] = max(rank[j], seconds[j] + rank[i])
    return by_priority(p, [-x for x in rank])


def by_priority(p: Program, priority: Sequence[float]) -> list[int]:
    """A topological order in which the ready op of the lowest priority comes first."""
    control = update_control(p)
    before = [{r.op for r in o.inputs()} | set(control.get(i, [])) for i, o in enumerate(p.ops)]
    after: list[list[int]] = [[] for _ in p.ops]
    for i, js in enumerate(before):
        for j in js:
            after[j].append(i)
    left = [len(js) for js in before]
    ready = [(priority[i], i) for i, n in enumerate(left) if n == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(i)
        for j in after[i]:
            left[j] -= 1
            if left[j] == 0:
                heapq.heappush(ready, (priority[j], j))
    return order


def read(p: Program, path: str) -> Schedule:
    """Reads a schedule or a plan file for p."""
    try:
        with open(path, encoding="utf-8") as f:
            doc = json.load(f)
    except (OSError, ValueError) as e:
        raise FormatError(f"{path}: {e}") from None
    return parse(p, doc, path)


def parse(p: Program, doc: Any, where: str) -> Schedule:
    """The schedule of a document that was read: `placer schedule 1` or `placer plan 1`."""
    if not isinstance(doc, dict) or doc.get("format") not in ("placer schedule 1", "placer plan 1"):
        raise FormatError(f'{where}: format is not "placer schedule 1" or "placer plan 1"')
    try:
        if doc["format"] == "placer schedule 1":
            return _schedule(p, doc, where)
        priority = doc.get("priority")
        if priority is not None and len(priority) != len(p.ops):
            raise FormatError(f"{where}: {len(priority)} priorities, the program has {len(p.ops)} ops")
        for i, name in enumerate(doc.get("ops", ())):
            if i >= len(p.ops) or name != p.ops[i].name:
                raise FormatError(f"{where}: op {i} is {name}, which the program does not have there; the plan is another graph's")
        order = by_priority(p, priority) if priority else None
        return make(p, doc["device"], doc["devices"], order, method=doc.get("method", ""), where=where)
    except (KeyError, TypeError) as e:
        raise FormatError(f"{where}: key {e} is missing or has the wrong type") from None


def _schedule(p: Program, doc: dict[str, Any], where: str) -> Schedule:
    devices = doc["devices"]
    index = {d: k for k, d in enumerate(devices)}
    device, kernel, order = [-1] * len(p.ops), [0] * len(p.ops), []
    for x in doc["ops"]:
        i = p.by_name.get(x["name"])
        if i is None:
            raise FormatError(f"{where}: op {x['name']} is not in the program; the schedule is another graph's")
        if x["device"] not in index:
            raise FormatError(f"{where}: op {x['name']} is on {x['device']}, which is not among the devices")
        device[i], kernel[i] = index[x["device"]], x.get("kernel", 0)
        order.append(i)
    for i, d in enumerate(device):
        if d < 0:
            raise FormatError(f"{where}: op {p.ops[i].name} has no device")
    return make(p, device, devices, order, kernel, doc.get("method", ""), doc.get("step_time_s"), where)
