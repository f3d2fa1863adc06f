"""Which device runs each op, and in which order: schedule and plan files, checked against the
step that they are about."""

from __future__ import annotations

import collections
import dataclasses
import heapq
from typing import Any, Sequence

from .errors import FormatError
from .files import read_json


@dataclasses.dataclass(frozen=True)
class Ops:
    """What a schedule has to know of a step: its ops, in a topological order."""

    names: Sequence[str]
    needs: Sequence[Sequence[int]]
    """Per op those whose results it reads."""
    waits: Sequence[Sequence[int]]
    """Per op further ones that end before it starts, where both are on one device."""
    groups: Sequence[int]
    """Per op a number; those of one number other than 0 share a device."""
    grouped: str
    """What ops of one group do, for errors."""

    def before(self, i: int) -> set[int]:
        """The ops that come before op i."""
        return {*self.needs[i], *self.waits[i]}


@dataclasses.dataclass(frozen=True)
class Schedule:
    """`device` is an index into `devices` per op; `order` has every op once, in issue
    order, a topological order. `kernel` is the number of the op's fused kernel, 0 for
    none."""

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


def make(o: Ops, device: Sequence[int], devices: Sequence[str], order: Sequence[int] | None = None, kernel: Sequence[int] | None = None, method: str = "", predicted_s: float | None = None, where: str = "plan") -> Schedule:
    """A checked schedule. Raises FormatError, which names op and reason."""
    n = len(o.names)
    if len(device) != n:
        raise FormatError(f"{where}: {len(device)} ops have a device, the step has {n}")
    for i, d in enumerate(device):
        if not 0 <= d < len(devices):
            raise FormatError(f"{where}: op {o.names[i]} is on device {d} of {len(devices)}")
    first: dict[int, int] = {}
    for i, g in enumerate(o.groups):
        if g and device[first.setdefault(g, i)] != device[i]:
            raise FormatError(f"{where}: ops {o.names[first[g]]} and {o.names[i]} {o.grouped} and are on devices {devices[device[first[g]]]} and {devices[device[i]]}")
    order = range(n) if order is None else order
    place = [-1] * n
    for k, i in enumerate(order):
        if not 0 <= i < n or place[i] >= 0:
            raise FormatError(f"{where}: the order names op {i} twice or not of this step")
        place[i] = k
    for i, name in enumerate(o.names):
        if place[i] < 0:
            raise FormatError(f"{where}: op {name} is not in the order")
        for j in [*o.needs[i], *(j for j in o.waits[i] if device[j] == device[i])]:
            if place[j] > place[i]:
                raise FormatError(f"{where}: op {name} stands before {o.names[j]}, which it needs")
    return Schedule(tuple(devices), tuple(device), tuple(order), tuple(kernel or [0] * n), method, predicted_s)


def single(o: Ops, order: Sequence[int] | None = None, device: str = "cpu:0") -> Schedule:
    """Everything on one device, in the step's order unless another is given."""
    return make(o, [0] * len(o.names), [device], order, method="single")


def critical_path_order(o: Ops, seconds: Sequence[float]) -> list[int]:
    """The order in which one device runs the ops when the ready op with the longest path
    of `seconds` behind it comes first: placer's default scheduler."""
    rank = list(seconds)
    for i in reversed(range(len(o.names))):
        for j in o.before(i):
            rank[j] = max(rank[j], seconds[j] + rank[i])
    return by_priority(o, [-x for x in rank])


def by_priority(o: Ops, priority: Sequence[float]) -> list[int]:
    """A topological order in which the ready op of the lowest priority comes first."""
    after: list[list[int]] = [[] for _ in o.names]
    left = []
    for i in range(len(o.names)):
        before = o.before(i)
        left.append(len(before))
        for j in before:
            after[j].append(i)
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


def requested(o: Ops, r: dict[str, Any]) -> Schedule:
    """The schedule of a request for a measurement (docs/pytorch.md)."""
    given = r.get("schedule", r.get("plan"))
    if isinstance(given, str):
        return read(o, given)
    if given is not None:
        return parse(o, given, "request")
    if "device" not in r or "devices" not in r:
        raise FormatError("request: want schedule, plan, or devices and device")
    return make(o, r["device"], r["devices"], r.get("order"), where="request")


def read(o: Ops, path: str) -> Schedule:
    """Reads a schedule or a plan file."""
    try:
        doc = read_json(path)
    except OSError as e:
        raise FormatError(f"{path}: {e.strerror}") from None
    except ValueError as e:
        raise FormatError(f"{path}: {e}") from None
    return parse(o, doc, path)


def parse(o: Ops, doc: Any, where: str) -> Schedule:
    """The schedule of a document that was read: `placer schedule 1` or `placer plan 1`."""
    if not isinstance(doc, dict) or doc.get("format") not in ("placer schedule 1", "placer plan 1"):
        raise FormatError(f'{where}: format is not "placer schedule 1" or "placer plan 1"')
    try:
        return (_schedule if doc["format"] == "placer schedule 1" else _plan)(o, doc, where)
    except (KeyError, TypeError) as e:
        raise FormatError(f"{where}: key {e} is missing or has the wrong type") from None


def _plan(o: Ops, doc: dict[str, Any], where: str) -> Schedule:
    priority = doc.get("priority")
    if priority is not None and len(priority) != len(o.names):
        raise FormatError(f"{where}: {len(priority)} priorities, the step has {len(o.names)} ops")
    for i, name in enumerate(doc.get("ops", ())):
        if i >= len(o.names) or name != o.names[i]:
            raise FormatError(f"{where}: op {i} is {name}, which the step does not have there; the plan is another graph's")
    order = by_priority(o, priority) if priority else None
    return make(o, doc["device"], doc["devices"], order, method=doc.get("method", ""), where=where)


def _schedule(o: Ops, doc: dict[str, Any], where: str) -> Schedule:
    devices = doc["devices"]
    number = {d: k for k, d in enumerate(devices)}
    index = {name: i for i, name in enumerate(o.names)}
    device, kernel, order = [-1] * len(o.names), [0] * len(o.names), []
    for x in doc["ops"]:
        i = index.get(x["name"])
        if i is None:
            raise FormatError(f"{where}: op {x['name']} is not in the step; the schedule is another graph's")
        if x["device"] not in number:
            raise FormatError(f"{where}: op {x['name']} is on {x['device']}, which is not among the devices")
        device[i], kernel[i] = number[x["device"]], x.get("kernel", 0)
        order.append(i)
    for i, d in enumerate(device):
        if d < 0:
            raise FormatError(f"{where}: op {o.names[i]} has no device")
    return make(o, device, devices, order, kernel, doc.get("method", ""), doc.get("step_time_s"), where)
