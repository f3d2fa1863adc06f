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
import torch
from placer_torch import FormatError, NoDeviceError, PlacerTorchError, Program, capture, cli, hosts, load, machine, measure, plan, profile_cuda, schedule
from placer_torch import auto
from placer_torch.auto import Tried, faster
from placer_torch.eager import Eager
from placer_torch.errors import NoMemoryError
from placer_torch.profile import Profile
from placer_torch.run_inprocess import InProcess
from test_run import scattered

STAND_IN = '''#!%s
import json, sys
a = sys.argv[1:]
def flag(name): return a[a.index(name) + 1]
graph = json.load(open(flag("--graph")))["ops"]
if a[0] == "import":
    print(json.dumps({"hash": "h"}))
    sys.exit()
machine = json.load(open(flag("--machine")))
if "--times" in a:
    times = json.load(open(flag("--times")))
    assert times["graph"] == "h" and len(times["models"][0]["seconds"]) == len(graph)
assert machine["cables"][0]["occupies"] == "sender"
if a[0] == "search":
    side, device = {}, []
    for i, o in enumerate(graph):
        device.append(side.setdefault(o.get("group", -i - 1), %s))
    json.dump({"format": "placer plan 1", "devices": ["cpu:0", "cpu:1"] if "--cpu" in a else ["gpu:0", "gpu:1"], "device": device}, open(flag("-o"), "w"))
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
    assert got.eager is not None and got.eager.seconds > 0 and f"; {got.eager}" in str(got)
    assert {"graph.json", "program.pt", "times.json", "machine.json", "plan.json", "schedule.json"} <= set(os.listdir(tmp_path / "run"))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
@pytest.mark.parametrize(("args", "dims"), [([], {"batch": {"size": 6, "min": 1}}), (["--batch-arg", "batch"], {"batch": {"size": 4, "min": 1}}), (["--samples", "5"], None)])
def test_the_graph_is_of_any_batch(args: list[str], dims: Any, tmp_path: Any, monkeypatch: Any) -> None:
    """What is planned is the step of the batch given; the file beside it is that of any, where it can be."""
    stand_in(tmp_path, monkeypatch, "0")
    assert cli.main(["plan", "--model", "test_samples:example", "--devices", "cpu:2", "--clock", "virtual", "-o", str(tmp_path / "run"), *args]) == 0
    assert json.loads((tmp_path / "run" / "graph.json").read_text()).get("dims") == dims
    assert load(str(tmp_path / "run" / "program.pt")).batch["batch.0"].shape == (6, 4, 8)


def test_the_faster_is_taken() -> None:
    """Two devices where their step is the shorter one; else one, and the sentence says so."""
    p = capture(*models.tiny())
    one = Tried(schedule.single(schedule.ops(p)), {"step_time_s": 0.02, "equal": True, "load": 0.5, "clock": "wall"})
    halves = dataclasses.replace(scattered(p, 0.5), method="halves", predicted_s=0.012)

    def of(seconds: float, **more: Any) -> dict[str, Any]:
        return {"step_time_s": seconds, "load": 1.5, "clock": "wall", **more}

    got = faster(one, Tried(halves, of(0.01, equal=False)), p, "run", issue_s=0.011)
    assert not got.falls_back and got.best_s == got.several_s == 0.01 and got.one_device_s == 0.02 and got.predicted_s == 0.012
    assert "torch's own" not in str(got)
    for seconds, words in (0.012, "; torch's own step on 2 threads: 12.00 ms; files"), (0.008, "; torch's own step on 2 threads: 8.00 ms, which is faster; files"):
        assert words in str(faster(one, Tried(halves, of(0.01, equal=True)), p, "run", issue_s=0.0, own=Eager(seconds, 2)))
    assert "halves) on 2 devices: 10.00 ms measured while other processes used 1.5 cores, 12.00 ms predicted; 2.00 times as fast, results NOT equal" in str(got)
    for seconds in 0.02, 0.03:
        got = faster(one, Tried(halves, of(seconds, equal=True)), p, "run", issue_s=0.0)
        assert got.falls_back and got.best_s == 0.02 and got.several_s == seconds
        assert "ms measured while other processes used 1.5 cores, 12.00 ms predicted, results equal, so the model stays on one device" in str(got)
    got = faster(Tried(one.schedule, None), Tried(halves, of(0.05, not_compared="it is too large")), p, "run", issue_s=0.02)
    assert not got.falls_back and got.best_s == 0.05 and got.one_device_s is None
    assert str(got).startswith("the step does not fit on one device; best plan (halves) on 2 devices: 50.00 ms measured while other processes used 1.5 cores, 12.00 ms predicted without the host")
    assert "which takes 20.00 ms to issue the ops; results not compared: it is too large" in str(got)


def test_devices(monkeypatch: Any) -> None:
    """auto is GPUs where there are several; what is not there is refused."""

    def name(devices: str, gpus: int) -> str:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        h = hosts.find(devices)
        return f"{h.first} {h.count if isinstance(h, hosts.Cores) else len(h.devices) if isinstance(h, hosts.Gpus) else 0}"

    cores = len(os.sched_getaffinity(0))
    for devices, gpus, want in [("auto", 0, f"cpu:0 {cores}"), ("auto", 1, f"cpu:0 {cores}"), ("auto", 4, "gpu:0 4"), ("cuda", 1, "gpu:0 1"), ("cuda:2", 4, "gpu:0 2"), ("cpu:1", 4, "cpu:0 1")]:
        assert name(devices, gpus) == want
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(96)))
    assert name("auto", 0) == "cpu:0 64" and name("cpu:64", 0) == "cpu:0 64"
    with pytest.raises(NoDeviceError, match="cpu:65: placer's machines have at most 64"):
        name("cpu:65", 0)
    monkeypatch.undo()
    for devices, gpus, error in [("cuda", 0, "has 0 CUDA devices"), ("cuda:3", 2, "has 2 CUDA devices"), (f"cpu:{cores + 1}", 0, "may use"), ("cuda:0", 2, "want auto"), ("gpu", 2, "want auto"), ("cpu", 0, "want auto")]:
        with pytest.raises(NoDeviceError, match=error):
            name(devices, gpus)
    with pytest.raises(FormatError, match="GPUs have the wall clock alone"):
        hosts.Gpus(2).clock("virtual")


@pytest.mark.parametrize("fits", [True, False])
def test_plan_for_gpus(fits: bool, tmp_path: Any, monkeypatch: Any) -> None:
    """The whole of plan() on two GPUs, for which the CPU stands: profile by GPU, search
    without --cpu, and a measured step by the runner of one process. Where the step does
    not fit on one, its times are the roofline's and there is nothing to compare with."""
    stand_in(tmp_path, monkeypatch, "i % 2")
    devices = {"gpu:0": torch.device("cpu"), "gpu:1": torch.device("cpu")}
    profiles = []

    def on_cuda(p: Program, *_: Any, **__: Any) -> Profile:
        profiles.append(p)
        if not fits:
            raise torch.OutOfMemoryError("out of memory")
        return Profile([1e-3] * len(p.ops), [0.0] * len(p.ops), 1e-3 * len(p.ops), 1.0, 3, True, 5.0)

    begin = InProcess.__init__

    def small(self: InProcess, p: Program, s: schedule.Schedule, *args: Any, **more: Any) -> None:
        if not fits and len(set(s.device)) == 1:
            raise NoMemoryError("does not fit")
        begin(self, p, s, *args, **more, devices=[devices[d] for d in s.devices])

    monkeypatch.setattr(hosts, "find", lambda _: hosts.Gpus(2))
    monkeypatch.setattr(machine, "cuda", lambda ds: {"models": {"X": {"capacity": "8 GiB"}}, "devices": [{"model": "X"} for _ in ds], "cables": [{"occupies": "sender"}]})
    monkeypatch.setattr(profile_cuda, "on_cuda", on_cuda)
    monkeypatch.setattr(InProcess, "__init__", small)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(measure, "observe", lambda *_: pytest.fail("a step on the CPU"))
    if not fits:
        with monkeypatch.context() as m:
            m.setattr(auto, "lies_on_gpu", lambda _: True)
            with pytest.raises(NoMemoryError, match="move the model to the CPU first"):
                plan(*models.tiny(), folder=str(tmp_path / "beside"), devices="cuda")
        profiles.clear()
    got = plan(*models.tiny(), folder=str(tmp_path / "run"), devices="cuda")
    print(got)
    assert len(profiles) == 1 and os.path.exists(tmp_path / "run" / "times.json") == fits
    assert got.clock == "wall" and got.several_s is not None
    if fits:
        assert got.equal and "without the host, which takes 5000.00 ms to issue the ops" in str(got)
    else:
        assert not got.falls_back and got.equal is None and "not compared: the step does not fit on gpu:0 alone" in str(got)


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
    with pytest.raises(PlacerTorchError, match="no placer beside this Python or on the PATH"):
        plan(*models.tiny(), folder=str(tmp_path / "run"))


@pytest.mark.skipif("PLACER" not in os.environ or len(os.sched_getaffinity(0)) < 2, reason="PLACER names no program, or one core")
def test_whole_chain(tmp_path: Any) -> None:
    """With the real program: what it predicts of its own plan is no step above one
    device's by the same profile, for a busy machine may be another when steps are
    measured, and the plan's results are one device's to the last bit."""
    got = plan(*models.gpt2(layers=2), folder=str(tmp_path / "run"), clock="virtual", evaluations=300)
    print(got)
    assert got.equal
    times = json.loads((tmp_path / "run" / "times.json").read_text())
    assert got.predicted_s < 1.001 * sum(times["models"][0]["seconds"])
