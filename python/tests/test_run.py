"""Runs on several devices have the bits of one device's; failures end everything."""

from __future__ import annotations

import dataclasses
import os
import random
import subprocess
import sys
import time
from typing import Any, Callable

import models
import pytest
import torch
from processes import children
from placer_torch import Loop, NoDeviceError, Program, RunError, capture, graph, machine, schedule
from placer_torch import state as states
from placer_torch.run_inprocess import InProcess
from placer_torch.run_workers import Workers, observe

SMALL = {"lstm": {"time": 5, "hidden": 32}, "gnmt": {"time": 3, "hidden": 32}, "gpt2": {"layers": 2, "width": 32, "time": 16, "vocab": 100}, "moe": {"layers": 1, "width": 32, "time": 16, "vocab": 100}, "inception": {"blocks": 2, "k": 8, "batch": 2, "size": 16}}


def scattered(p: Program, share: float, devices: int = 2, seed: int = 1) -> schedule.Schedule:
    """Co-location groups put on random devices, in a random topological order."""
    rng = random.Random(seed)
    chosen: dict[int, int] = {}
    device = [chosen.setdefault(g or -i - 1, rng.randrange(devices) if rng.random() < share else 0) for i, g in enumerate(graph.groups(p))]
    order = schedule.by_priority(schedule.ops(p), [rng.random() for _ in p.ops])
    return schedule.make(schedule.ops(p), device, [f"cpu:{k}" for k in range(devices)], order)


@pytest.mark.parametrize("name", ["lstm", "gpt2", "inception", "moe", "resnet", "gnmt", "tiny"])
def test_same_bits(name: str) -> None:
    """Outputs, gradients and updated state after three steps, in one process and
    on workers, two and three devices."""
    model, loss, batch, optimizer = getattr(models, name)(**SMALL.get(name, {}))
    p = capture(model, loss, batch, optimizer, name=name)
    state, data = states.of_model(p, model), states.batch(p)
    gradients = list(p.gradients.values())
    one = InProcess(p, schedule.single(schedule.ops(p)), state, keep=gradients)
    for _ in range(3):
        outputs, kept = one.step(data)
    want = [*outputs, *kept, *one.state.values()]
    if name != "tiny":  # dropout draws by op and step here, so that placements agree
        for _ in range(3):
            optimizer.zero_grad()
            value = loss(model, batch)
            value.backward()
            optimizer.step()
        assert torch.equal(outputs[0], value.detach())
        assert all(torch.equal(one.state[k], v) for k, v in model.named_parameters())
    specs, _ = observe(p, state, data)
    for share, devices in ((0.5, 2), (1.0, 3)):
        s = scattered(p, share, devices)
        here = InProcess(p, s, state, keep=gradients)
        for _ in range(3):
            outputs, kept = here.step(data)
        assert states.equal(want, [*outputs, *kept, *here.state.values()]), (share, devices, "in process")
        assert here.copied_bytes > 0
        if devices == 2:
            with Workers(p, s, state, data, keep=gradients, specs=specs) as w:
                w.run(3)
                assert states.equal(want, [*w.results, *w.state.values()]), (share, devices, "workers")


def hasty(p: Program, devices: int, seed: int, late: set[int]) -> schedule.Schedule:
    """As scattered, in an order that placer may give: an update waits for readers on its own
    device alone, and comes as soon as that lets it. late: ops that come last of all."""
    s = scattered(p, 1.0, devices, seed)
    o = schedule.ops(p)
    here = dataclasses.replace(o, waits=[[j for j in w if s.device[j] == s.device[i]] for i, w in enumerate(o.waits)])
    soon = [0 if x.role in ("update", "assign") else len(p.ops) + i if i in late else i for i, x in enumerate(p.ops)]
    return schedule.make(o, s.device, s.devices, schedule.by_priority(here, soon))


def overtaken(p: Program, s: schedule.Schedule, readers: Callable[[int, int], bool]) -> int:
    """How many pairs of an update and an op behind it there are of which readers(op, target) is true."""
    place = {i: k for k, i in enumerate(s.order)}
    updates = [(i, next(o.inputs()).op) for i, o in enumerate(p.ops) if o.role in ("update", "assign")]
    return sum(place[j] > place[i] and readers(j, target) for i, target in updates for j in range(len(p.ops)) if j != i)


@pytest.mark.parametrize("name", ["lstm", "gpt2", "resnet"])
def test_updates_wait_for_readers_elsewhere(name: str) -> None:
    """An update that stands before another device's reader of the weight: the reader has
    the weight as it was."""
    model, loss, batch, optimizer = getattr(models, name)(**SMALL.get(name, {}))
    p = capture(model, loss, batch, optimizer, name=name)
    state, data = states.of_model(p, model), states.batch(p)
    gradients = list(p.gradients.values())
    one = InProcess(p, schedule.single(schedule.ops(p)), state, keep=gradients)
    outputs, kept = [one.step(data) for _ in range(2)][-1]
    want = [*outputs, *kept, *one.state.values()]
    late = {j for js in graph.update_control(p).values() for j in js}
    wrong = 0
    for seed in range(3):
        s = hasty(p, 3, seed, late)
        wrong += overtaken(p, s, lambda j, target: target in {p.root[r.op] for r in p.ops[j].inputs()} and not p.ops[j].view)
        here = InProcess(p, s, state, keep=gradients)
        outputs, kept = [here.step(data) for _ in range(2)][-1]
        assert states.equal(want, [*outputs, *kept, *here.state.values()]), seed
    assert wrong, "no order in which it could go wrong"


def test_kernels_are_read_before_updates() -> None:
    """A kernel runs where its last op stands: an update behind its first one, of what that
    one reads, comes behind the kernel."""
    model, loss, batch, optimizer = models.lstm(**SMALL["lstm"])
    p = capture(model, loss, batch, optimizer)
    o, control, group = schedule.ops(p), graph.update_control(p), graph.groups(p)
    after: dict[int, list[int]] = {}
    for i, x in enumerate(p.ops):
        for r in x.inputs():
            after.setdefault(r.op, []).append(i)
    # a late reader of a weight whose result some other op reads: those two are a kernel
    update, reader, last = next((u, j, k) for u, late in control.items() for j in late for k in after.get(j, ()) if p.ops[k].role == "call" and not group[j] and not group[k])
    device = [1 if i in (reader, last) else 0 for i in range(len(p.ops))]
    kernel = [1 if i in (reader, last) else 0 for i in range(len(p.ops))]
    soon = [0 if i == update else len(p.ops) if i == last else 1 + i for i in range(len(p.ops))]
    here = dataclasses.replace(o, waits=[[j for j in w if device[j] == device[i]] for i, w in enumerate(o.waits)])
    s = schedule.make(o, device, ["cpu:0", "cpu:1"], schedule.by_priority(here, soon), kernel)
    assert s.order.index(update) < s.order.index(last)
    state, data = states.of_model(p, model), states.batch(p)
    keep = list(p.gradients.values())
    plain, fused = (InProcess(p, x, state, keep=keep, fuse=f) for x, f in ((schedule.single(o), ""), (s, "aot_eager")))
    for a, b in zip([*plain.step(data)[1], *plain.state.values()], [*fused.step(data)[1], *fused.state.values()]):
        assert torch.allclose(a, b, atol=1e-6)


def test_workers_send_views_before_updates() -> None:
    """A view of a weight is sent where it stands; an update that stands before it, for no
    op of its own device reads the view, comes behind it."""
    model, loss, batch, optimizer = models.lstm(**SMALL["lstm"])
    p = capture(model, loss, batch, optimizer)
    views = {i for i, o in enumerate(p.ops) if o.view and p.ops[p.root[i]].role == "parameter" and o.phase != "forward"}
    state, data = states.of_model(p, model), states.batch(p)
    gradients = list(p.gradients.values())
    one = InProcess(p, schedule.single(schedule.ops(p)), state, keep=gradients)
    outputs, kept = one.step(data)
    specs, _ = observe(p, state, data)
    wrong = 0
    for seed in range(3):
        s = hasty(p, 2, seed, views)
        wrong += overtaken(p, s, lambda j, target: j in views and p.root[j] == target)
        with Workers(p, s, state, data, keep=gradients, specs=specs) as w:
            w.run(1)
            assert states.equal([*outputs, *kept, *one.state.values()], [*w.results, *w.state.values()]), seed
    assert wrong, "no order in which it could go wrong"


def test_loop_and_checkpoint() -> None:
    """A loop goes on from its checkpoint as if it had not stopped, on other devices;
    its state_dict loads into the model."""
    model, loss, batch, optimizer = models.tiny("adam")
    p = capture(model, loss, batch, optimizer)
    generator = torch.Generator().manual_seed(5)
    batches = [(torch.randn(6, 8, generator=generator), torch.randint(0, 4, (6,), generator=generator)) for _ in range(6)]
    with Loop(p, schedule.single(schedule.ops(p)), model) as whole:
        losses = [whole.step(b) for b in batches]
        end = whole.state_dict()
    with Loop(p, scattered(p, 0.5), model) as first:
        assert [first.step(b) for b in batches[:3]] == losses[:3]
        saved, slots = first.state_dict(), first.optimizer_state()
    with Loop(p, scattered(p, 0.7, seed=2), workers=False) as second:
        second.load_state_dict(saved, slots)
        assert second.steps == 3
        assert [second.step(b) for b in batches[3:]] == losses[3:]
        assert all(torch.equal(v, end[k]) for k, v in second.state_dict().items())
        model.load_state_dict(second.state_dict())
        with pytest.raises(RunError, match="has no 0.weight"):
            second.load_state_dict({})


class Tied(torch.nn.Module):
    """Two names of one weight, a buffer that no state_dict has, and a layer never used."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out, self.never = torch.nn.Embedding(12, 4), torch.nn.Linear(4, 12, bias=False), torch.nn.Linear(2, 2)
        self.out.weight = self.into.weight
        self.register_buffer("scale", torch.full((4,), 0.5), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.into(x) * self.scale)


def test_state_dict_is_the_models() -> None:
    """A loop's state_dict has the keys of the model's own and loads into it strictly, and the
    model's into a loop."""
    model = Tied()
    ids, want = torch.arange(6), torch.arange(6)
    p = capture(model, lambda m, b: torch.nn.functional.cross_entropy(m(b[0]), b[1]), (ids, want), torch.optim.SGD(model.parameters(), lr=0.1))
    begin = {k: v.clone() for k, v in model.state_dict().items()}
    with Loop(p, schedule.single(schedule.ops(p)), model) as loop:
        loop.step((ids, want))
        got = loop.state_dict()
        assert list(got) == list(begin)
        assert torch.equal(got["into.weight"], got["out.weight"]) and not torch.equal(got["into.weight"], begin["into.weight"])
        assert torch.equal(got["never.weight"], begin["never.weight"])
        loop.load_state_dict(begin)
        assert all(torch.equal(v, begin[k]) for k, v in loop.state_dict().items())
    model.load_state_dict(got)


def test_inference_loop() -> None:
    model, _, batch, _ = models.gpt2(layers=1, width=32, time=8, vocab=40)
    p = capture(model, None, {"ids": batch[0]})
    with Loop(p, scattered(p, 0.5), model) as loop, torch.no_grad():
        for ids in (batch[0], batch[0].flip(0)):
            assert torch.equal(loop.step({"ids": ids}), model(ids))


class Twice(torch.nn.Module):
    """Gives one tensor as two outputs, and another beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        h = self.a(x)
        return {"states": (h, self.b(h)), "last": h}


def test_an_output_that_is_there_twice() -> None:
    torch.manual_seed(0)
    model, x = Twice(), torch.randn(3, 4)
    p = capture(model, None, (x,))
    with torch.no_grad():
        want = model(x)
    for workers in True, False:
        with Loop(p, scattered(p, 1.0), model, workers=workers) as loop:
            for _ in range(2):
                got = loop.step((x,))
                assert torch.equal(got["last"], want["last"]) and all(map(torch.equal, got["states"], want["states"])), workers


def test_threads_are_put_back() -> None:
    """What runs on one thread leaves the process the threads that it had."""
    p = capture(*models.tiny())
    state, data = states.example(p), states.batch(p)
    torch.set_num_threads(3)
    try:
        observe(p, state, data)
        assert torch.get_num_threads() == 3
        machine.core_flops()
        assert torch.get_num_threads() == 3
        with Workers(p, scattered(p, 0.5), state, data) as w:
            assert torch.get_num_threads() == 3
            w.run(1)
    finally:
        torch.set_num_threads(1)


def test_other_processors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where stores may be seen in another order there are no workers; the error names a way."""
    p = capture(*models.tiny())
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(NoDeviceError, match="CPU workers need an x86-64 processor.* is aarch64: .*workers=False"):
        Workers(p, scattered(p, 0.5), states.example(p), states.batch(p))
    with Loop(p, scattered(p, 0.5), workers=False) as loop:
        loop.step(list(states.batch(p).values()))


class Far(torch.Tensor):
    """A tensor elsewhere: to() copies it."""

    copies = 0

    def to(self, *_: Any, **__: Any) -> torch.Tensor:  # type: ignore[override]
        Far.copies += 1
        return self.as_subclass(torch.Tensor).clone()


def test_timed_steps_find_their_batch_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is moved to its devices once, before the steps that are timed."""
    p = capture(*models.tiny())
    data = {k: v.as_subclass(Far) for k, v in states.batch(p).items()}
    here = InProcess(p, schedule.single(schedule.ops(p)), states.example(p), data)
    monkeypatch.setattr(Far, "copies", 0)
    assert len(here.run(3).wall_s) == 3 and Far.copies == len(data)


def failing() -> tuple[Program, schedule.Schedule]:
    """An embedding that is asked for a row that it does not have, behind the first step's check."""
    model, loss, batch, optimizer = models.lstm(time=3, hidden=8, vocab=20, batch=2)
    p = capture(model, loss, batch, optimizer)
    return p, scattered(p, 0.5)


def test_failing_worker_ends_its_peers() -> None:
    p, s = failing()
    state, data = states.example(p), states.batch(p)
    w = Workers(p, s, state, data)
    w.run(2)
    w.batch["batch.0"].fill_(99)
    began = time.monotonic()
    with pytest.raises(RunError, match=r"op embedding on cpu:\d: .*(index|range)"):
        w.run(1)
    assert time.monotonic() - began < 100 and not children()  # peers that wait give up after 600


def test_killed_worker() -> None:
    p, s = failing()
    w = Workers(p, s, states.example(p), states.batch(p))
    os.kill(w._pids[1], 9)
    with pytest.raises(RunError, match="ended by signal 9"):
        w.run(1)
    assert not children()


def test_workers_end_with_their_parent(tmp_path: Any) -> None:
    """Killing the process that drives them leaves none behind, and no shared memory file."""
    before = set(os.listdir("/dev/shm"))
    code = """
import sys, time
sys.path[:0] = [%r]
import models
from placer_torch import capture, state, schedule
from placer_torch.run_workers import Workers
p = capture(*models.tiny())
s = schedule.make(schedule.ops(p), [0] * len(p.ops), ["cpu:0", "cpu:1"])
w = Workers(p, s, state.example(p), state.batch(p))
w.run(1)
print(*w._pids, flush=True)
time.sleep(60)
"""
    child = subprocess.Popen([sys.executable, "-c", code % os.path.dirname(__file__)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    pids = [int(x) for x in child.stdout.readline().split()]
    assert len(pids) == 2
    child.kill()
    child.wait()
    child.stdout.close()
    end = time.monotonic() + 10
    while any(alive(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [pid for pid in pids if alive(pid)]
    assert set(os.listdir("/dev/shm")) <= before


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_fused_kernels() -> None:
    """A schedule's kernels are compiled; results are equal within rounding."""
    compiled: list[list[str]] = []

    def backend(g: torch.fx.GraphModule, _: Any) -> Any:
        compiled.append([str(n.target) for n in g.graph.nodes if n.op == "call_function"])
        return g

    model, loss, batch, optimizer = models.tiny()
    model.eval()
    p = capture(model, loss, batch, optimizer)
    kernel = [0] * len(p.ops)
    tanh = next(i for i, o in enumerate(p.ops) if o.target.startswith("aten.tanh.default"))
    addmm = next(p.ops[tanh].inputs()).op
    kernel[addmm] = kernel[tanh] = 1
    s = schedule.make(schedule.ops(p), [0] * len(p.ops), ["cpu:0"], kernel=kernel)
    state, data = states.of_model(p, model), states.batch(p)
    plain, fused = InProcess(p, s, state), InProcess(p, s, state, fuse=backend)  # type: ignore[arg-type]
    for _ in range(2):
        assert torch.allclose(plain.step(data)[0][0], fused.step(data)[0][0], atol=1e-6)
    assert compiled == [[p.ops[addmm].target, p.ops[tanh].target]]
    assert all(torch.allclose(v, fused.state[k], atol=1e-6) for k, v in plain.state.items())


def test_workers_say_what_they_do_not_fuse(tmp_path: Any, capsys: Any) -> None:
    import json

    from placer_torch import cli, graph, schedule
    from placer_torch.errors import RunError
    from placer_torch.loop import Loop

    model, loss, batch, optimizer = models.tiny()
    p = capture(model, loss, batch, optimizer, name="tiny")
    calls = [i for i, o in enumerate(p.ops) if o.role == "call"]
    s = schedule.make(schedule.ops(p), [0] * len(p.ops), ["cpu:0"], kernel=[1 if i in calls[:2] else 2 if i == calls[2] else 0 for i in range(len(p.ops))])
    assert s.fused == 1
    with pytest.raises(RunError, match="CPU workers run op by op"):
        Loop(p, s, model, batch=batch, fuse="inductor")
    p.save(str(tmp_path / "program.pt"))
    graph.write(p, str(tmp_path / "graph.json"))
    doc = {"format": "placer schedule 1", "devices": ["cpu:0"], "ops": [{"name": o.name, "device": "cpu:0", "kernel": k} if k else {"name": o.name, "device": "cpu:0"} for o, k in zip(p.ops, s.kernel)]}
    (tmp_path / "s.json").write_text(json.dumps(doc))
    assert cli.main(["run", "--program", str(tmp_path / "program.pt"), "--schedule", str(tmp_path / "s.json"), "--steps", "1"]) == 0
    assert "its 1 fused kernels run op by op" in capsys.readouterr().err
    assert cli.main(["measure", "--program", str(tmp_path / "program.pt"), "--steps", "1", "--repeats", "1", str(tmp_path / "s.json")]) == 0
    out = capsys.readouterr()
    assert json.loads(out.out)["unfused"] == 1 and "its 1 fused kernels" in out.err
