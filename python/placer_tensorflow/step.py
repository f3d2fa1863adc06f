"""A training step as a graph of TensorFlow, alone: what capture writes and the runner runs."""

from __future__ import annotations

import collections
import dataclasses
import io
import json
import os
import re
from typing import Any, Collection

import numpy as np

from placer_runtime.errors import CaptureError, FormatError
from placer_runtime.files import replace_file

from .runtime import v1

GRAPH, VALUES = "graph.pb", "step.npz"
FORMAT = "placer tensorflow step 1"
_KEY = "step"  # of the archive's JSON; variables follow as v0, v1, ...
_UPDATE = re.compile(r"^(Assign(Add|Sub)?VariableOp|ResourceApply.*|ResourceSparseApply.*|ResourceScatter.*)$")
_RUNS = {"PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase"}
_ELSEWHERE = {
    r"(Ref)?Enter": "a loop of TensorFlow 1's control flow: enable_control_flow_v2() makes it an op",
    r"(Ref)?Switch": "a conditional of TensorFlow 1's control flow: enable_control_flow_v2() makes it an op",
    r"Placeholder(V2)?": "it is fed from outside: make the batch a constant",
    r".*(Iterator|Dataset).*": "an input pipeline is not captured: make the batch a constant",
    r".*Queue.*": "a queue is not captured: make the batch a constant",
    r".*Table.*": "a table is not captured: look up before the step",
    r"Variable(V2)?": "a variable of reference type: make it by get_variable, with enable_resource_variables()",
}
"""What a step on its own cannot have, by expressions for the operator's name."""


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
    def parameters(self) -> int:
        """Numbers in the variables that the step trains: an optimizer's state has none."""
        return sum(int(self.values[n.name].size) for n in self.graph.node if n.op == "VarHandleOp" and n.attr["_trainable"].b and n.name in self.values)

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
    effect. What reads or writes a variable keeps the graph's order by edges of its own;
    where the graph has none, readers come before updates. A reader of the value
    elsewhere has the old one in any case: an update of a tensor that others hold makes a
    new one. A loop, a conditional or a call is one op, whose functions come along."""
    node = {n.name: n for n in graph.node}
    library = {f.signature.name: f for f in graph.library.function}
    inner = {n.name: _functions(n, library) for n in graph.node if n.op in _RUNS}
    seen = _closure([source(loss), *targets], {k: [source(i) for i in n.input] for k, n in node.items()})
    handles = {n.name for n in graph.node if n.op == "VarHandleOp"}

    def writes(n: Any) -> bool:
        if n.name in inner:
            return any(source(i) in handles for i in n.input) and any(_UPDATE.match(x.op) for f in inner[n.name] for x in library[f].node_def)
        return bool(_UPDATE.match(n.op))

    updates = [n.name for n in graph.node if n.name in seen and writes(n)]
    group = dict(zip(node, _groups(list(node.values()))))
    kept = {k: [i for i in node[k].input if not i.startswith("^") or group[k] and group[k] == group[source(i)]] for k in seen}
    needed = _closure([source(loss), *updates], {k: [source(i) for i in v] for k, v in kept.items()})
    for k in [n.name for n in graph.node if n.name in needed]:
        _refuse(node[k], inner.get(k))
    names = [n.name for n in graph.node if n.name in needed]
    inputs = {k: kept[k] for k in names}
    _keep_order(node, [n.name for n in graph.node if n.name in seen], handles, updates, inputs)
    _order_readers(node, names, updates, inputs)
    step = v1.GraphDef(versions=graph.versions)
    for k in _order(names, inputs):
        n = step.node.add()
        n.CopyFrom(node[k])
        del n.input[:]
        n.input.extend(inputs[k])
        n.device = ""
        same = [c for c in n.attr["_class"].list.s if c.decode().removeprefix("loc:@") in needed] if "_class" in n.attr else []
        if "_class" in n.attr:
            del n.attr["_class"].list.s[:]
            n.attr["_class"].list.s.extend(same)
            if not same:
                del n.attr["_class"]
        if n.op == "VarHandleOp":
            n.attr["shared_name"].s = k.encode()
            n.attr["container"].s = b""
        if k in inner:
            n.attr["_noinline"].b = True  # placer has it as one op too
            n.attr["_lower_using_switch_merge"].b = False
    carried = {f for k in names for f in inner.get(k, ())}
    step.library.function.extend(f for f in graph.library.function if f.signature.name in carried)
    step.library.gradient.extend(g for g in graph.library.gradient if g.function_name in carried and g.gradient_func in carried)
    missing = [k for k in needed if node[k].op == "VarHandleOp" and k not in values]
    if missing:
        raise CaptureError(f"variable {missing[0]} has no value")
    return Step(name, step, loss, updates, {k: values[k] for k in values if k in needed})


def _functions(n: Any, library: dict[str, Any]) -> list[str]:
    """The functions of the library that n runs, and those that these run."""
    found: dict[str, None] = {}
    todo = [n]
    while todo:
        x = todo.pop()
        names = [x.op] + [f.name for a in x.attr.values() for f in ([a.func] if a.HasField("func") else a.list.func)]
        for f in names:
            if f in library and f not in found:
                found[f] = None
                todo.extend(library[f].node_def)
    return list(found)


def _refuse(n: Any, runs: list[str] | None) -> None:
    """Raises CaptureError where n is nothing that a step on its own could have."""
    for operator, why in _ELSEWHERE.items():
        if re.fullmatch(operator, n.op):
            raise CaptureError(f"node {n.name} ({n.op}): {why}")
    if runs is None and any(a.HasField("func") for a in n.attr.values()):
        raise CaptureError(f"node {n.name} ({n.op}): it runs a function in a way that is not captured; write it as plain operators")


def _closure(start: list[str], before: dict[str, list[str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(start)
    while todo:
        k = todo.pop()
        if k not in seen:
            seen.add(k)
            todo += before[k]
    return seen


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


def _behind(names: list[str], inputs: dict[str, list[str]], bit: dict[str, int]) -> dict[str, int]:
    """Of each node the updates that come before it, a bit each."""
    found: dict[str, int] = {}
    for k in _order(names, inputs):
        mask = 0
        for i in inputs[k]:
            mask |= found[source(i)] | bit.get(source(i), 0)
        found[k] = mask
    return found


def _keep_order(node: dict[str, Any], seen: list[str], handles: set[str], updates: list[str], inputs: dict[str, list[str]]) -> None:
    """Adds control edges from a variable's updates to what comes behind them in the whole
    graph and uses the variable too, where what is left of the edges does not say so."""
    bit = {u: 1 << i for i, u in enumerate(updates)}
    whole = _behind(seen, {k: list(node[k].input) for k in seen}, bit)
    have = _behind(list(inputs), inputs, bit)
    uses: dict[str, list[str]] = collections.defaultdict(list)
    for k in inputs:
        for h in {source(i) for i in node[k].input if not i.startswith("^")} & handles:
            uses[h].append(k)
    for u in updates:
        for h in {source(i) for i in node[u].input if not i.startswith("^")} & handles:
            for k in uses[h]:
                if whole[k] & ~have[k] & bit[u] and "^" + u not in inputs[k]:
                    inputs[k] = [*inputs[k], "^" + u]


def _order_readers(node: dict[str, Any], names: list[str], updates: list[str], inputs: dict[str, list[str]]) -> None:
    """Adds the control edges from a variable's readers to its updates, where nothing says
    which comes first. All agree with one order of the nodes, so they close no cycle."""
    users: dict[str, list[str]] = collections.defaultdict(list)
    for k in names:
        for i in inputs[k]:
            users[source(i)].append(k)
    last = set(updates)
    bit = {u: 1 << i for i, u in enumerate(updates)}
    order = _order(names, inputs, last)
    place = {k: i for i, k in enumerate(order)}
    reach: dict[str, int] = {}
    for k in reversed(order):
        mask = 0
        for x in users[k]:
            mask |= reach[x] | bit.get(x, 0)
        reach[k] = mask
    for u in updates:
        readers = [k for i in node[u].input if node[source(i)].op == "VarHandleOp" for k in users[source(i)] if k not in last]
        for k in list(readers):
            if node[k].op == "ReadVariableOp":
                reads = [x for x in users[k] if x != u]
                readers += [y for x in reads for y in ([x] if node[x].op != "Identity" else [x, *users[x]])]
        for k in dict.fromkeys(readers):
            if place[k] < place[u] and not reach[k] & bit[u] and k not in last:
                inputs[u] = [*inputs[u], "^" + k]


def _order(names: list[str], inputs: dict[str, list[str]], last: Collection[str] = ()) -> list[str]:
    """The topological order that placer's importer gives: as nodes become ready. Those of
    last wait until nothing else is ready."""
    waits = {k: len(inputs[k]) for k in names}
    users: dict[str, list[str]] = collections.defaultdict(list)
    for k in names:
        for i in inputs[k]:
            users[source(i)].append(k)
    order: list[str] = []
    ready = collections.deque(k for k in names if not waits[k])
    late: collections.deque[str] = collections.deque()
    while ready or late:
        k = (ready or late).popleft()
        if k in last and ready:
            late.append(k)
            continue
        order.append(k)
        for u in users[k]:
            waits[u] -= 1
            if not waits[u]:
                ready.append(u)
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
