"""A Program as a graph file, `placer graph 1` with module paths (docs/formats.md, docs/pytorch.md)."""

from __future__ import annotations

import json
from typing import Any

import torch

from . import applied, flops, kinds
from placer_runtime.files import write_text
from .layers import layers
from .program import Op, Program, Spec

# Operations an element of updates that placer's table of op facts has so; of others they are counted.
UPDATE_FLOPS = {"ApplyGradientDescent": 2, "ApplyMomentum": 4, "ApplyAdam": 12}

# Kinds of updates by rule: TensorFlow's name where it has the optimizer.
_UPDATES = {
    "adam": "ApplyAdam", "Adadelta": "ApplyAdadelta", "Adafactor": "ApplyAdafactor", "Adagrad": "ApplyAdagrad", "Adamax": "ApplyAdaMax", "ASGD": "ApplyASGD",
    "Muon": "ApplyMuon", "NAdam": "ApplyNAdam", "RAdam": "ApplyRAdam", "RMSprop": "ApplyRMSProp", "Rprop": "ApplyRprop",
}  # fmt: skip


def write(p: Program, path: str) -> None:
    """Writes the graph file, whole or not at all."""
    write_text(path, text(p))


def text(p: Program) -> str:
    """The graph file's text: one op a line, the same for the same program."""
    return render(p.name, docs(p))


def docs(p: Program) -> list[dict[str, Any]]:
    """The file's ops."""
    group = groups(p)
    control = update_control(p)
    layer = layers(p)
    return [op_doc(p, i, group[i], layer[i], control.get(i, [])) for i in range(len(p.ops))]


def render(name: str, ops: list[dict[str, Any]], dims: dict[str, dict[str, int]] | None = None) -> str:
    """The text of a file of these ops. dims: the sizes that it leaves open."""
    head = f'{{"format": "placer graph 1",\n"name": {json.dumps(name)},\n'
    if dims:
        head += f'"dims": {json.dumps(dims)},\n'
    return head + '"ops": [\n' + ",\n".join(json.dumps(o, ensure_ascii=False) for o in ops) + "\n]}\n"


def op_doc(p: Program, i: int, group: int, layer: int, control: list[int]) -> dict[str, Any]:
    o = p.ops[i]
    d: dict[str, Any] = {"name": o.name, "kind": kind(p, o)}
    if o.phase != "forward":
        d["phase"] = o.phase
    dtype = _dtype(next((s for s in o.outputs if s is not None), None) or p.spec(next(o.inputs())))
    if dtype != "f32":
        d["dtype"] = dtype
    resident = o.role in ("parameter", "buffer", "slot", "const")
    if resident:
        (s,) = o.outputs
        assert s is not None
        d.update(bytes=0, resident=s.bytes)
        if o.role == "parameter":
            d["params"] = s.elements
    elif o.role == "batch":
        d["bytes"] = 0
    elif o.role == "update":
        a = applied.work(p, o)
        per = UPDATE_FLOPS.get(d["kind"])
        d.update(flops=a.flops if per is None else per * p.spec(next(o.inputs())).elements, bytes=a.bytes)
        if a.products is not None:
            d.update(dtype=kinds.DTYPES.get(a.products.dtype, "f32"), gemm=list(a.products.gemm), repeats=a.products.repeats, kernels=a.products.kernels)
    elif o.role == "assign":
        d["bytes"] = sum(p.spec(r).bytes for r in o.inputs())
    else:
        w = flops.work(p, o)
        if w.flops:
            d["flops"] = w.flops
        if w.gemm and all(w.gemm):
            if dtype == "f32" and not _tf32(d["kind"]):
                d["precise"] = True
            d["gemm"] = list(w.gemm)
        d["bytes"] = w.bytes
    if group:
        d["group"] = group
    if o.forward is not None:
        d["forward"] = p.ops[o.forward].name
    if layer:
        d["layer"] = layer
    if o.module:
        d["module"] = o.module
    ins = [p.ops[r.op].name + (f":{r.out}" if r.out else "") for r in o.inputs()]
    if ins:
        d["in"] = ins
    if control:
        d["control"] = [p.ops[c].name for c in control]
    if o.outputs:
        d["out"] = [_tensor(p, i, s, dtype, resident) for s in o.outputs]
    return d


def _tf32(kind: str) -> bool:
    """Whether torch lets products of f32 run in tf32 as it is set now, those of convolutions
    or others."""
    if "Conv" in kind:
        return bool(torch.backends.cudnn.allow_tf32)
    return torch.get_float32_matmul_precision() != "highest"


def kind(p: Program, o: Op) -> str:
    """The op's kind in the file."""
    if o.role in ("parameter", "buffer", "slot"):
        return "VariableV2"
    if o.role in ("batch", "const"):
        return "Placeholder" if o.role == "batch" else "Const"
    if o.role == "assign":
        return "Assign"
    if o.role == "update":
        if o.target == "sgd":
            return "ApplyMomentum" if o.args[2] else "ApplyGradientDescent"
        return "ApplyCenteredRMSProp" if o.args[3].get("centered") else _UPDATES[o.target]
    if o.view:
        return "Reshape"
    first = next((s for s in o.outputs if s is not None), None)
    return kinds.kind(o.target, len(first.shape) if first else 0)


def _dtype(s: Spec) -> str:
    return kinds.DTYPES.get(s.dtype, "f32")


def _tensor(p: Program, i: int, s: Spec | None, dtype: str, resident: bool) -> dict[str, Any]:
    if s is None:
        return {"bytes": 0}
    d: dict[str, Any] = {"shape": list(s.shape)}
    if _dtype(s) != dtype:
        d["dtype"] = _dtype(s)
    if s.dtype not in kinds.DTYPES:
        d["bytes"] = s.bytes
    if resident or (p.ops[i].view and p.ops[p.root[i]].role in ("parameter", "buffer", "slot", "const")):
        d["resident"] = True
    return d


def groups(p: Program) -> list[int]:
    """Per op its co-location group from 1, 0 for none: views with the op that
    made their memory; a parameter with its slots and its update, a buffer with
    the op that assigns it."""
    parent = list(range(len(p.ops)))

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def join(i: int, j: int) -> None:
        a, b = find(i), find(j)
        parent[max(a, b)] = min(a, b)

    for i, o in enumerate(p.ops):
        if o.view:
            join(i, p.root[i])
        elif o.role == "update":
            refs = list(o.inputs())
            for r in [refs[0], *refs[2:]]:
                join(i, r.op)
        elif o.role == "assign":
            join(i, next(o.inputs()).op)
    size: dict[int, int] = {}
    for i in range(len(p.ops)):
        size[find(i)] = size.get(find(i), 0) + 1
    number: dict[int, int] = {}
    return [number.setdefault(find(i), len(number) + 1) if size[find(i)] > 1 else 0 for i in range(len(p.ops))]


def update_control(p: Program) -> dict[int, list[int]]:
    """Per update or assign, the ops that read what it overwrites and are not
    among its ancestors: they have to end first."""
    readers: dict[int, list[int]] = {}  # of the memory that op r made
    for i, o in enumerate(p.ops):
        if o.role == "call" and not o.view:
            for root in {p.root[r.op] for r in o.inputs()}:
                readers.setdefault(root, []).append(i)
    found: dict[int, list[int]] = {}
    ancestors: list[int] = []  # bit set of each op, itself included
    for i, o in enumerate(p.ops):
        mine = 1 << i
        for r in o.inputs():
            mine |= ancestors[r.op]
        if o.role in ("update", "assign"):
            target = next(o.inputs()).op
            late = [j for j in readers.get(target, []) if not mine >> j & 1]
            if late:
                found[i] = late
                for j in late:
                    mine |= ancestors[j]
        ancestors.append(mine)
    return found
