"""plan(): with a stand-in for the placer program, which answers as docs/pytorch.md says."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from typing import Any

import models
import pytest
from placer_torch import PlacerTorchError, capture, plan, schedule
from placer_torch.auto import Planned, Tried, faster
from test_run import scattered

STAND_IN = '''#!%s
import json, sys
a = sys.argv[1:]
def flag(name): return a[a.index(name) + 1]
graph = json.load(open(flag("--graph")))["ops"]
if a[0] == "import":
    print(json.dumps({"hash": "h"}))
    sys.exit()
times, machine = json.load(open(flag("--times"))), json.load(open(flag("--machine")))
assert times["graph"] == "h" and len(times["models"][0]["seconds"]) == len(graph)
assert machine["cables"][0]["occupies"] == "sender"
if a[0] == "search":
    side, device = {}, []
    for i, o in enumerate(graph):
        device.append(side.setdefault(o.get("group", -i - 1), %s))
    json.dump({"format": "placer plan 1", "devices": ["cpu:0", "cpu:1"], "device": device}, open(flag("-o"), "w"))
else:
    assert a[0] == "export" and flag("--as") == "schedule"
    p = json.load(open(flag("--plan")))
    ops = [{"name": o["name"], "device": p["devices"][d]} for o, d in zip(graph, p["device"])]
    json.dump({"format": "placer schedule 1", "method": "stand-in", "step_time_s": 0.0125, "devices": p["devices"], "ops": ops}, open(flag("-o"), "w"))
'''


def stand_in(tmp_path: Any, monkeypatch: Any, choose: str) -> None:
    path = tmp_path / "placer"
    path.write_text(STAND_IN % (sys.executable, choose))
    path.chmod(0o755)
    monkeypatch.setenv("PLACER", str(path))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_plan(tmp_path: Any, monkeypatch: Any) -> None:
    stand_in(tmp_path, monkeypatch, "i % 2")
    got = plan(*models.tiny(), folder=str(tmp_path / "run"), clock="virtual")
    assert got.several_s is not None and got.best_s == min(got.one_device_s, got.several_s) and got.falls_back == (got.several_s >= got.one_device_s)
    assert got.predicted_s == 0.0125 and got.equal and "results equal" in str(got)
    assert {"graph.json", "program.pt", "times.json", "machine.json", "plan.json", "schedule.json"} <= set(os.listdir(tmp_path / "run"))


def test_the_faster_is_taken() -> None:
    """Two devices where their step is the shorter one; else one, and the sentence says so."""
    p = capture(*models.tiny())
    one = Tried(schedule.single(schedule.ops(p)), {"step_time_s": 0.02, "equal": True, "load": 0.5})
    halves = dataclasses.replace(scattered(p, 0.5), method="halves", predicted_s=0.012)

    def of(seconds: float) -> Planned:
        return faster(one, Tried(halves, {"step_time_s": seconds, "equal": False, "load": 1.5}), p, "wall", "run")

    got = of(0.01)
    assert not got.falls_back and got.best_s == got.several_s == 0.01 and got.one_device_s == 0.02 and got.predicted_s == 0.012
    assert "halves) on 2 devices: 10.00 ms measured, 12.00 ms predicted; 2.00 times as fast, results NOT equal" in str(got)
    for seconds in 0.02, 0.03:
        got = of(seconds)
        assert got.falls_back and got.best_s == 0.02 and got.several_s == seconds
        assert "ms measured while other processes used 1.5 cores, 12.00 ms predicted, results NOT equal, so the model stays on one device" in str(got)


def test_plan_keeps_a_plan(tmp_path: Any, monkeypatch: Any) -> None:
    """A folder with a plan is refused before anything in it is written."""
    stand_in(tmp_path, monkeypatch, "0")
    os.makedirs(tmp_path / "plan" / "run")
    with pytest.raises(PlacerTorchError, match="holds a plan already; name another folder"):
        plan(*models.tiny(), folder=str(tmp_path / "plan"), clock="virtual")
    assert os.listdir(tmp_path / "plan") == ["run"]


def test_plan_on_one_device(tmp_path: Any, monkeypatch: Any) -> None:
    stand_in(tmp_path, monkeypatch, "0")
    got = plan(*models.tiny(), folder=str(tmp_path / "run"), clock="virtual")
    assert got.several_s is None and "no other results to compare" in str(got)


def test_no_warning_of_numpy(tmp_path: Any) -> None:
    """Where NumPy is not installed torch warns of it; no tensor here becomes an array."""
    code = "import warnings; import placer_torch; warnings.warn('Failed to initialize NumPy: none'); warnings.warn('another')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "NumPy" not in done.stderr and "another" in done.stderr


def test_no_placer(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.delenv("PLACER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PlacerTorchError, match="no placer on the PATH"):
        plan(*models.tiny(), folder=str(tmp_path / "run"))


@pytest.mark.skipif("PLACER" not in os.environ or len(os.sched_getaffinity(0)) < 2, reason="PLACER names no program, or one core")
def test_whole_chain(tmp_path: Any) -> None:
    """With the real program: what it predicts of its own plan is a step clearly below
    one device's by the same profile, for a busy machine may be another when steps are
    measured, and the plan's results are one device's to the last bit."""
    got = plan(*models.gpt2(layers=2), folder=str(tmp_path / "run"), clock="virtual", evaluations=300)
    print(got)
    assert got.equal and got.several_s is not None
    times = json.loads((tmp_path / "run" / "times.json").read_text())
    assert got.predicted_s < 0.9 * sum(times["models"][0]["seconds"])
