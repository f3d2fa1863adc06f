"""Which device runs each node, and in which order."""

from __future__ import annotations

import dataclasses
import heapq
import json
from typing import Any, Sequence

from placer_runtime.errors import FormatError

from .step import Step, source


@dataclasses.dataclass(frozen=True)
class Schedule:
    """device: an index into devices per node of the step; order: every node once, in
    issue order, a topological order."""

    devices: tuple[str, ...]
    device: tuple[int, ...]
    order: tuple[int, ...]
    method: str = ""
    predicted_s: float | None = None


def make(s: Step, device: Sequence[int], devices: Sequence[str], order: Sequence[int] | None = None, method: str = "", predicted_s: float | None = None, where: str = "plan") -> Schedule:
    """A checked schedule. Raises FormatError, which names node and reason."""
    nodes = s.nodes
    if len(device) != len(nodes):
        raise FormatError(f"{where}: {len(device)} ops have a device, the step has {len(nodes)}")
    first: dict[int, int] = {}
    for i, d in enumerate(device):
        if not 0 <= d < len(devices):
            raise FormatError(f"{where}: op {nodes[i].name} is on device {d} of {len(devices)}")
        k = first.setdefault(s.group[i], i)
        if s.group[i] and device[k] != d:
            raise FormatError(f"{where}: ops {nodes[k].name} and {nodes[i].name} belong together and are on {devices[device[k]]} and {devices[d]}")
    order = range(len(nodes)) if order is None else order
    place = [-1] * len(nodes)
    for k, i in enumerate(order):
        if not 0 <= i < len(nodes) or place[i] >= 0:
            raise FormatError(f"{where}: the order names op {i} twice or not of this step")
        place[i] = k
    for i, n in enumerate(nodes):
        if place[i] < 0:
            raise FormatError(f"{where}: op {n.name} is not in the order")
        for j in before(s, i):
            if place[j] > place[i] and (device[i] == device[j] or "^" + nodes[j].name not in n.input):
                raise FormatError(f"{where}: op {n.name} stands before {nodes[j].name}, which it needs")
    return Schedule(tuple(devices), tuple(device), tuple(order), method, predicted_s)


def before(s: Step, i: int) -> list[int]:
    """The nodes that node i needs."""
    return [s.index[source(x)] for x in s.graph.node[i].input]


def single(s: Step, order: Sequence[int] | None = None) -> Schedule:
    """Everything on one device."""
    return make(s, [0] * len(s.graph.node), ["cpu:0"], order, method="single")


def critical_path_order(s: Step, seconds: Sequence[float]) -> list[int]:
    """The order in which one device runs the nodes when the ready node with the longest
    path of seconds behind it comes first: placer's default scheduler."""
    n = len(s.graph.node)
    needs = [before(s, i) for i in range(n)]
    rank = list(seconds)
    for i in reversed(range(n)):
        for j in needs[i]:
            rank[j] = max(rank[j], seconds[j] + rank[i])
    return by_priority(needs, [-x for x in rank])


def by_priority(needs: Sequence[Sequence[int]], priority: Sequence[float]) -> list[int]:
    """A topological order in which the ready node of the lowest priority comes first."""
    after: list[list[int]] = [[] for _ in needs]
    left = [len(js) for js in needs]
    for i, js in enumerate(needs):
        for j in js:
            after[j].append(i)
    ready = [(priority[i], i) for i, k in enumerate(left) if k == 0]
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


def requested(s: Step, r: dict[str, Any]) -> Schedule:
    """The schedule of a request (docs/pytorch.md)."""
    given = r.get("schedule", r.get("plan"))
    if isinstance(given, str):
        return read(s, given)
    if given is not None:
        return parse(s, given, "request")
    if "device" not in r or "devices" not in r:
        raise FormatError("request: want schedule, plan, or devices and device")
    return make(s, r["device"], r["devices"], r.get("order"), where="request")


def read(s: Step, path: str) -> Schedule:
    """Reads a schedule or a plan file."""
    try:
        with open(path, encoding="utf-8") as f:
            doc = json.load(f)
    except (OSError, ValueError) as e:
        raise FormatError(f"{path}: {e}") from None
    return parse(s, doc, path)


def parse(s: Step, doc: Any, where: str) -> Schedule:
    """The schedule of a document that was read: `placer schedule 1` or `placer plan 1`."""
    if not isinstance(doc, dict) or doc.get("format") not in ("placer schedule 1", "placer plan 1"):
        raise FormatError(f'{where}: format is not "placer schedule 1" or "placer plan 1"')
    try:
        devices = doc["devices"]
        if doc["format"] == "placer plan 1":
            priority = doc.get("priority")
            if priority is not None and len(priority) != len(s.graph.node):
                raise FormatError(f"{where}: {len(priority)} priorities, the step has {len(s.graph.node)} ops")
            order = by_priority([before(s, i) for i in range(len(s.graph.node))], priority) if priority else None
            return make(s, doc["device"], devices, order, doc.get("method", ""), where=where)
        place = {d: k for k, d in enumerate(devices)}
        device, listed = [-1] * len(s.graph.node), []
        for x in doc["ops"]:
            if x["name"] not in s.index:
                raise FormatError(f"{where}: op {x['name']} is not in the step; the schedule is another graph's")
            if x["device"] not in place:
                raise FormatError(f"{where}: op {x['name']} is on {x['device']}, which is not among the devices")
            device[s.index[x["name"]]] = place[x["device"]]
            listed.append(s.index[x["name"]])
        for i, d in enumerate(device):
            if d < 0:
                raise FormatError(f"{where}: op {s.graph.node[i].name} has no device")
        return make(s, device, devices, listed, doc.get("method", ""), doc.get("step_time_s"), where)
    except (KeyError, TypeError) as e:
        raise FormatError(f"{where}: key {e} is missing or has the wrong type") from None
