"""Schedule and plan files: what is read, and what is refused with a reason."""

from __future__ import annotations

import gzip
import json
from typing import Any

import models
import pytest
from placer_torch import FormatError, Program, capture, graph, schedule


@pytest.fixture(scope="module")
def p() -> Program:
    return capture(*models.tiny(), name="tiny")


def document(p: Program) -> dict[str, Any]:
    ops = [{"name": o.name, "device": "cpu:0"} for o in p.ops]
    return {"format": "placer schedule 1", "graph": {"name": "tiny", "hash": "x"}, "method": "m", "step_time_s": 0.25, "devices": ["cpu:0", "cpu:1"], "ops": ops}


def test_schedule(p: Program) -> None:
    doc = document(p)
    free = next(i for i, g in enumerate(graph.groups(p)) if not g and p.ops[i].role == "call")
    doc["ops"][free]["device"] = "cpu:1"
    s = schedule.parse(schedule.ops(p), doc, "s.json")
    assert s.predicted_s == 0.25 and s.method == "m" and s.of(1) == [free] and s.order == tuple(range(len(p.ops)))


def test_plan(p: Program) -> None:
    n = len(p.ops)
    doc = {"format": "placer plan 1", "devices": ["cpu:0"], "device": [0] * n, "priority": list(range(n))}
    assert schedule.parse(schedule.ops(p), doc, "p.json").order == tuple(range(n))
    doc["priority"] = list(reversed(range(n)))
    s = schedule.parse(schedule.ops(p), doc, "p.json")
    assert s.order != tuple(range(n)) and sorted(s.order) == list(range(n))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(format="placer schedule 2"), "format"),
        (lambda d: d["ops"].pop(), "has no device"),
        (lambda d: d["ops"][0].update(name="nothing"), "another graph"),
        (lambda d: d["ops"][0].update(device="cpu:7"), "not among the devices"),
        (lambda d: d["ops"].append(d["ops"].pop(0)), "which it needs"),
        (lambda d: d["ops"].append(d["ops"][0]), "twice"),
        (lambda d: d["ops"][0].update(device="cpu:1"), "share memory"),
        (lambda d: d.pop("devices"), "missing"),
    ],
)
def test_refused(p: Program, change: Any, says: str, tmp_path: Any) -> None:
    doc = document(p)
    change(doc)
    path = tmp_path / "s.json"
    path.write_text(json.dumps(doc))
    with pytest.raises(FormatError, match=says) as e:
        schedule.read(schedule.ops(p), str(path))
    assert str(path) in str(e.value)


def test_named_plan(p: Program) -> None:
    n = len(p.ops)
    doc = {"format": "placer plan 1", "devices": ["cpu:0"], "device": [0] * n, "ops": {o.name: ["cpu:0"] for o in p.ops}}
    assert schedule.parse(schedule.ops(p), doc, "p.json").device == (0,) * n
    doc["ops"] = {**doc["ops"], "nothing": ["cpu:0"]}
    with pytest.raises(FormatError, match="nothing, which the step does not have there"):
        schedule.parse(schedule.ops(p), doc, "p.json")


def test_compressed(p: Program, tmp_path: Any) -> None:
    path = tmp_path / "s.json.gz"
    packed = gzip.compress(json.dumps(document(p)).encode())
    path.write_bytes(packed)
    assert schedule.read(schedule.ops(p), str(path)) == schedule.parse(schedule.ops(p), document(p), "s.json")
    for bad, says in [(packed[:-20], "gzip: "), (gzip.compress(bytes(80 << 20)), "expand to more than")]:
        path.write_bytes(bad)
        with pytest.raises(FormatError, match=says):
            schedule.read(schedule.ops(p), str(path))


def test_no_file(p: Program) -> None:
    with pytest.raises(FormatError, match="^none.json: No such file or directory$"):
        schedule.read(schedule.ops(p), "none.json")
