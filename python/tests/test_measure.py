"""Profiles and measurements: their form, their sums, and the process that answers requests."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import types
from typing import Any

import models
import pytest
import torch
from placer_runtime import serve as protocol
from placer_torch import FormatError, capture, cli, copies, graph, machine, measure, profile, schedule
from placer_torch import state as states
from test_run import scattered


@pytest.fixture(scope="module")
def meter() -> measure.Meter:
    model, loss, batch, optimizer = models.gpt2(layers=1, width=64, time=16, vocab=100)
    p = capture(model, loss, batch, optimizer, name="gpt2")
    return measure.Meter(p, states.of_model(p, model))


def test_measurement(meter: measure.Meter) -> None:
    p = meter.program
    s = scattered(p, 0.5)
    m = meter.measure(s, measure.Options(steps=3, repeats=1, trace=True))
    assert m["format"] == protocol.FORMAT and m["equal"] is True and m["clock"] == "virtual"
    assert m["step_time_s"] == pytest.approx(min(m["virtual_s"]), rel=1e-4) and len(m["wall_s"]) == 3
    ops = [e for e in m["trace"] if "send" not in e]
    assert sorted(e["op"] for e in ops) == sorted(o.name for o in p.ops)
    place = {o.name: s.devices[s.device[i]] for i, o in enumerate(p.ops)}
    assert all(place[e["op"]] == e["device"] for e in m["trace"])
    ends = {e["op"]: e["end_s"] for e in ops}
    starts = {e["op"]: e["start_s"] for e in ops}
    for o in p.ops:  # nothing begins before what it reads has ended, on the virtual clock across workers too
        for r in o.inputs():
            assert starts[o.name] >= ends[p.ops[r.op].name] - 1e-9
    sends = [e for e in m["trace"] if "send" in e]
    assert sum(e["bytes"] for e in sends) == sum(d["sent_bytes"] for d in m["devices"]) > 0
    busy = {d["name"]: d["busy_s"] for d in m["devices"]}
    for name, seconds in busy.items():
        assert sum(c["seconds"] for c in m["classes"] if c["device"] == name) <= seconds


def test_virtual_clock_has_the_work(meter: measure.Meter) -> None:
    """The step is at least each device's own work, and at most the sum of both and the waits between."""
    m = meter.measure(scattered(meter.program, 0.5), measure.Options(steps=3, repeats=1, check=False))
    work = [d["work_s"] for d in m["devices"]]
    assert max(work) <= m["step_time_s"] * 1.001 and m["step_time_s"] <= sum(work) * 1.2


def test_profile(meter: measure.Meter) -> None:
    p = meter.program
    got = profile.on_core(p, meter.state, meter.batch, meter.specs)
    assert sum(got.seconds) == pytest.approx(got.step_s) and got.steps <= profile.STEPS + 2
    assert all((x > 0) == (o.role not in ("parameter", "buffer", "slot", "batch", "const")) for x, o in zip(got.seconds, p.ops) if not o.view)
    doc = profile.times_doc("h", got, model="core", count=2, memory="8 GiB", cpu=True, bandwidth=1e10, latency=2e-6)
    assert set(doc) == {"format", "graph", "source", "bandwidth", "latency", "models"}
    got.issue_s = 0.1
    assert profile.times_doc("h", got, model="X", count=2, memory="8 GiB", cpu=False, bandwidth=1e10, latency=2e-6)["issue_s"] == 0.1
    assert len(doc["models"][0]["seconds"]) == len(p.ops) and min(doc["models"][0]["seconds"]) > 0


def test_copies_and_machine() -> None:
    c = copies.measure(rounds=1)
    assert 1e-7 <= c.send_s < 1e-3 and 1e8 < c.send_bandwidth < 1e12
    assert 1e-7 <= c.receive_s < 1e-3 and c.stream > 1e8 and c.stream_shared > 1e8
    doc = machine.cores(c, 3, 5e10)
    assert doc["devices"] == [{"name": "cpu:[0-2]", "model": "core"}] and len(doc["cables"]) == 3
    assert doc["cables"][0]["occupies"] == "sender" and doc["cables"][0]["latency"].endswith(" us")


def test_capacity_is_what_is_free(monkeypatch: Any) -> None:
    """Of two GPUs of one model, another process has half of one, and torch keeps some of it in store."""
    total, free = 1 << 36, {0: 1 << 36, 1: 1 << 35}
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: types.SimpleNamespace(name="X", total_memory=total, major=9, minor=0, multi_processor_count=132))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda d: (free[d.index], total))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda d: 3 << 20)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda d: 1 << 20)
    monkeypatch.setattr(machine, "_products", lambda _: {})
    monkeypatch.setattr(machine, "_stream", lambda _: 1e12)
    monkeypatch.setattr(machine, "_between", lambda a, b: (1e-5, 1e11))
    doc = machine.cuda([torch.device("cuda", 0), torch.device("cuda", 1)])
    assert doc["models"]["X"]["capacity"] == f"{(1 << 35) + (2 << 20)} B" and len(doc["devices"]) == 2


def test_serve(meter: measure.Meter) -> None:
    p = meter.program
    n = len(p.ops)
    requests = [
        {"id": 1, "devices": ["cpu:0", "cpu:1"], "device": [0] * n, "steps": 2, "repeats": 1},
        {"id": "bad", "devices": ["cpu:0"], "device": [0] * (n - 1)},
        {"id": 3, "whatever": 1},
        {"id": 4, "devices": ["cpu:0", "cpu:1"], "device": [0] * n, "steps": 2, "repeats": 1, "brief": True},
    ]
    out = io.StringIO()
    measure.serve(meter, measure.Options(), io.StringIO("\n".join(map(json.dumps, requests)) + "\nno json\n"), out)
    ready, one, short, unknown, brief, broken = map(json.loads, out.getvalue().splitlines())
    assert ready["format"] == protocol.READY and ready["ops"] == n
    assert one["id"] == 1 and one["equal"] and one["step_time_s"] > 0 and "classes" in one and ready["host"]
    assert brief["id"] == 4 and brief["equal"] and brief["step_time_s"] > 0 and "classes" not in brief and "devices" not in brief
    assert short["id"] == "bad" and f"{n - 1} ops" in short["error"]
    assert "unknown key" in unknown["error"] and broken["id"] is None


def test_queues_are_asked_for_before_cuda_begins(meter: measure.Meter, monkeypatch: Any) -> None:
    seen = []

    def name(k: int) -> str:
        seen.append(os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS"))
        return f"GPU {k}"

    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", name)
    out = io.StringIO()
    measure.serve(meter, measure.Options(), io.StringIO(""), out)
    assert seen == ["32"] and json.loads(out.getvalue())["gpus"] == ["GPU 0"]


def test_serve_survives(meter: measure.Meter) -> None:
    """A request that fails of anything is answered, and the next one too."""
    asked = []

    def fails(r: dict[str, Any]) -> dict[str, Any]:
        asked.append(r)
        if len(asked) == 1:
            raise RuntimeError("CUDA error: an illegal memory access\nCompile with TORCH_USE_CUDA_DSA")
        if len(asked) == 2:
            raise KeyError
        return {"step_time_s": 1.0}

    out = io.StringIO()
    protocol.serve("torch", "2", 1, ["cpu:0"], [], True, fails, io.StringIO('{"id": 1}\n{"id": 2}\n{"id": 3}\n'), out)
    _, first, second, third = map(json.loads, out.getvalue().splitlines())
    assert first == {"id": 1, "error": "RuntimeError: CUDA error: an illegal memory access"} and second == {"id": 2, "error": "KeyError"} and third["step_time_s"] == 1.0
    bad = {"id": 4, "devices": ["cpu:0"], "device": ["x"] * len(meter.program.ops)}
    assert "error" in measure.answer(meter, bad, measure.Options())


def test_commands(tmp_path: Any, capsys: Any) -> None:
    """capture, run and measure from files, in another process where a file is all there is."""
    folder = str(tmp_path / "m")
    assert cli.main(["capture", "--model", "models:tiny", "-o", folder]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == 8 * 16 + 16 + 16 * 4 + 4
    p = capture(*models.tiny(), name="tiny")
    doc = {"format": "placer plan 1", "devices": ["cpu:0", "cpu:1"], "device": [0] * len(p.ops), "method": "single"}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(doc))
    done = subprocess.run([sys.executable, "-m", "placer_torch", "measure", "--graph", folder + "/graph.json", "--steps", "2", str(plan)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["id"] == str(plan)
    assert cli.main(["run", "--program", folder + "/program.pt", "--schedule", str(plan), "--steps", "2"]) == 0
    assert len(json.loads(capsys.readouterr().out)["loss"]) == 2
    assert cli.main(["profile", "--program", folder + "/program.pt", "--hash", "abc", "--devices", "cpu:1", "-o", folder]) == 0
    with open(folder + "/times.json") as f:
        assert json.load(f)["graph"] == "abc"
    capsys.readouterr()
    assert cli.main(["run", "--program", str(plan), "--schedule", str(plan)]) == 1
    assert "not a program that capture wrote" in capsys.readouterr().err
    assert cli.main(["profile", "--program", folder + "/program.pt", "--hash", "abc", "--devices", "cpu:999", "-o", folder]) == 4


def test_refused(meter: measure.Meter) -> None:
    with pytest.raises(FormatError, match="clock"):
        meter.measure(schedule.single(schedule.ops(meter.program)), measure.Options(clock="sundial"))


def test_graph_of_the_meter(meter: measure.Meter) -> None:
    assert graph.text(meter.program).startswith('{"format": "placer graph 1"')
