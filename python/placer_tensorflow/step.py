"""A training step as a graph of TensorFlow, alone: what capture writes and the runner runs."""

from __future__ import annotations

import collections
import dataclasses
import io
import json
import os
import re
from typing import Any

import numpy as np

from placer_runtime.errors import CaptureError, FormatError
from placer_runtime.files import replace_file

from .runtime import v1

GRAPH, VALUES = "graph.pb", "step.npz"
FORMAT = "placer tensorflow step 1"
_KEY = "step"  # of the archive's JSON; variables follow as v0, v1, ...
_UPDATE = re.compile(r"^(Assign(Add|Sub)?VariableOp|ResourceApply.*|ResourceSparseApply.*|ResourceScatter.*)$")
_CALLS = {"PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase", "Enter"}


@dataclasses.dataclass
class Step:
    """graph: the step's nodes in the order in which placer has its ops, with shapes,
    colocation, and of control edges those that keep a variable's readers before its
    update. loss: a tensor. updates: the ops that write variables. values: of each
    variable, by the name of its VarHandleOp, before the first step."""

    name: str
    graph: Any
    loss: str
    updates: list[str]
    values: dict[str, np.ndarray]

    def __post_init__(self) -> None:
        self.index = {n.name: i for i, n in enumerate(self.graph.node)}
        self.group = _groups(list(self.graph.node))

    @property
    def nodes(self) -> list[Any]:
        return list(self.graph.node)


def source(reference: str) -> str:
    """The node that an input names."""
    return reference.lstrip("^").partition(":")[0]


def alone(graph: Any, name: str, loss: str, targets: list[str], values: dict[str, np.ndarray]) -> Step:
    """The step of a graph: what loss (a tensor) and the variables' updates behind
    targets (nodes) need. Control edges between devices would cost what no device's work
    is, so those that order nothing but the whole are left out, as are nodes of no
    effect; the readers of a variable come before its updates by edges of their own.
    A reader elsewhere has the old value in any case: an update of a tensor that others
    hold makes a new one."""
    node = {n.name: n for n in graph.node}
    seen: set[str] = set()
    todo = [source(loss), *targets]
    while todo:
        k = todo.pop()
        if k not in seen:
            seen.add(k)
            todo += [source(i) for i in node[k].input]
    updates = [n.name for n in graph.node if n.name in seen and _UPDATE.match(n.op)]
    group = dict(zip(node, _groups(list(node.values()))))
    needed: set[str] = set()
    todo = [source(loss), *updates]
    inputs: dict[str, list[str]] = {}
    while todo:
        k = todo.pop()
        if k in needed:
            continue
        needed.add(k)
        n = node[k]
        if n.op in _CALLS:
            raise CaptureError(f"node {k} ({n.op}): loops and calls are not captured; unroll the loop, and write the step as plain operators")
        inputs[k] = [i for i in n.input if not i.startswith("^") or group[k] and group[k] == group[source(i)]]
        todo += [source(i) for i in inputs[k]]
    _order_readers(node, needed, updates, inputs)
    step = v1.GraphDef(versions=graph.versions)
    for k in _order([n.name for n in graph.node if n.name in needed], inputs):
        n = step.node.add()
        n.CopyFrom(node[k])
        del n.input[:]
        n.input.extend(inputs[k])
        n.device = ""
        kept = [c for c in n.attr["_class"].list.s if c.decode().removeprefix("loc:@") in needed] if "_class" in n.attr else []
        if "_class" in n.attr:
            del n.attr["_class"].list.s[:]
            n.attr["_class"].list.s.extend(kept)
            if not kept:
                del n.attr["_class"]
        if n.op == "VarHandleOp":
            n.attr["shared_name"].s = k.encode()
            n.attr["container"].s = b""
    missing = [k for k in needed if node[k].op == "VarHandleOp" and k not in values]
    if missing:
        raise CaptureError(f"variable {missing[0]} has no value")
    return Step(name, step, loss, updates, {k: values[k] for k in values if k in needed})


def _groups(nodes: list[Any]) -> list[int]:
    """A number of the co-location group of each node, from 1; 0 for none: colocation
    classes, and a variable with what takes its handle."""
    root = {n.name: n.name for n in nodes}

    def find(k: str) -> str:
        while root[k] != k:
            root[k] = root[root[k]]
            k = root[k]
        return k

    handles = {n.name for n in nodes if n.op == "VarHandleOp"}
    for n in nodes:
        classes = [c.decode().removeprefix("loc:@") for c in n.attr["_class"].list.s] if "_class" in n.attr else []
        for k in classes + [source(i) for i in n.input if source(i) in handles and not i.startswith("^")]:
            if k in root:
                root[find(n.name)] = find(k)
    size = collections.Counter(find(n.name) for n in nodes)
    number: dict[str, int] = {}
    return [number.setdefault(find(n.name), len(number) + 1) if size[find(n.name)] > 1 else 0 for n in nodes]


def _order_readers(node: dict[str, Any], needed: set[str], updates: list[str], inputs: dict[str, list[str]]) -> None:
    """Adds the control edges from a variable's readers to its updates."""
    users: dict[str, list[str]] = collections.defaultdict(list)
    for k in inputs:
        for i in inputs[k]:
            users[source(i)].append(k)
    for u in updates:
        before, after = _reach([u], lambda k: [source(i) for i in inputs[k]]), _reach([u], lambda k: users[k])
        handle = source(node[u].input[0])
        readers = [k for k in users[handle] if k not in updates]
        for k in list(readers):
            if node[k].op == "ReadVariableOp":
                reads = [x for x in users[k] if x != u]
                readers += [y for x in reads for y in ([x] if node[x].op != "Identity" else [x, *users[x]])]
        for k in dict.fromkeys(readers):
            if k not in before and k not in after and k not in updates:
                inputs[u].append("^" + k)
                users[k].append(u)


def _reach(start: list[str], next_of: Any) -> set[str]:
    found: set[str] = set()
    todo = list(start)
    while todo:
        for k in next_of(todo.pop()):
            if k not in found:
                found.add(k)
                todo.append(k)
    return found


def _order(names: list[str], inputs: dict[str, list[str]]) -> list[str]:
    """The topological order that placer's importer gives: as nodes become ready."""
    waits = {k: len(inputs[k]) for k in names}
    users: dict[str, list[str]] = collections.defaultdict(list)
    for k in names:
        for i in inputs[k]:
            users[source(i)].append(k)
    order = [k for k in names if not waits[k]]
    for k in order:
        for u in users[k]:
            waits[u] -= 1
            if not waits[u]:
                order.append(u)
    if len(order) < len(names):
        raise CaptureError(f"node {next(k for k in names if waits[k])} is on a cycle")
    return order


def write(s: Step, folder: str) -> None:
    """Writes graph.pb, which placer reads, and step.npz beside it."""
    replace_file(os.path.join(folder, GRAPH), lambda f: f.write(s.graph.SerializeToString(deterministic=True)))
    doc = json.dumps({"format": FORMAT, "name": s.name, "loss": s.loss, "updates": s.updates, "variables": list(s.values)})
    arrays: dict[str, Any] = {_KEY: np.array(doc), **{f"v{i}": x for i, x in enumerate(s.values.values())}}
    archive = io.BytesIO()
    np.savez(archive, **arrays)
    replace_file(os.path.join(folder, VALUES), lambda f: f.write(archive.getvalue()))


def read(path: str) -> Step:
    """Reads the step of a graph file, beside which its values lie."""
    graph = v1.GraphDef()
    values = os.path.join(os.path.dirname(path), VALUES)
    try:
        with open(path, "rb") as f:
            graph.ParseFromString(f.read())
    except OSError as e:
        raise FormatError(f"{path}: {e.strerror}") from None
    except Exception as e:  # protobuf's DecodeError
        raise FormatError(f"{path}: not a graph that capture wrote: {e}") from None
    try:
        with np.load(values, allow_pickle=False) as a:
            doc = json.loads(str(a[_KEY]))
            if doc["format"] != FORMAT:
                raise ValueError(f"format is {doc['format']!r}")
            return Step(doc["name"], graph, doc["loss"], doc["updates"], {k: a[f"v{i}"] for i, k in enumerate(doc["variables"])})
    except (OSError, ValueError, KeyError) as e:
        raise FormatError(f"{values}: not what capture wrote beside the graph: {e}") from None
