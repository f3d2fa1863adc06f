"""A schedule in one process: ops issued in order on torch devices, each with a stream of its own on CUDA."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch

from . import codegen
from .codegen import Code, name
from .errors import NoDeviceError, RunError
from .schedule import Schedule
from .program import STATE, Program, Ref
from .state import Tensors


def torch_devices(names: Sequence[str]) -> list[torch.device]:
    """Plan devices as torch devices: "cpu:1" and "gpu:1" by their kind, "cuda:0/2" is a logical device on cuda:0."""
    found = []
    for n in names:
        kind, _, index = n.partition(":")
        kind = {"gpu": "cuda"}.get(kind, kind)
        if kind == "cuda":
            k = int(index.split("/")[0] or 0)
            if not torch.cuda.is_available() or k >= torch.cuda.device_count():
                raise NoDeviceError(f"device {n}: this host has {torch.cuda.device_count() if torch.cuda.is_available() else 0} CUDA devices")
            found.append(torch.device("cuda", k))
        elif kind == "cpu":
            found.append(torch.device("cpu"))
        else:
            raise NoDeviceError(f"device {n}: want cpu:N or cuda:N")
    return found


class InProcess:
    """Runs steps. State lives where the schedule says; each tensor that another
    device reads is copied there once, and freed behind its last use."""

    def __init__(self, p: Program, s: Schedule, state: Tensors, *, devices: Sequence[torch.device] | None = None, keep: Sequence[Ref] = (), fuse: str = ""):
        """fuse: torch.compile's backend for the schedule's kernels, "inductor" say; "" runs op by op."""
        self.program, self.schedule, self.keep = p, s, list(keep)
        self.devices = list(devices or torch_devices(s.devices))
        self.copied_bytes = 0
        self.t = 0
        self._events: dict[int, Any] = {}  # by op: recorded behind it on its stream
        self._streams = [torch.cuda.Stream(d) if d.type == "cuda" else None for d in self.devices]
        self._copies = [torch.cuda.Stream(d) if d.type == "cuda" else None for d in self.devices]
        self.state: Tensors = {}
        for i in p.sources(*STATE):
            o = p.ops[i]
            (spec,) = o.outputs
            assert spec is not None
            d = self.devices[s.device[i]]
            self.state[o.name] = torch.empty_strided(spec.shape, spec.stride, dtype=spec.dtype, device=d).copy_(state[o.name])
        self.constants = {k: v.to(self.devices[s.device[p.by_name[k]]]) for k, v in p.constants.items()}
        self._backend = fuse
        self._step = self._compile()

    def step(self, batch: Tensors) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """One step. Returns the program's outputs and the kept tensors."""
        self.t += 1
        sources = {**self.state, **self.constants}
        for i in self.program.sources("batch"):
            k = self.program.ops[i].name
            sources[k] = batch[k].to(self.devices[self.schedule.device[i]], non_blocking=True)
        for d, stream in zip(self.devices, self._streams):
            if stream is not None:
                stream.wait_stream(torch.cuda.default_stream(d))
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                values = self._step(sources, self.t)
        except Exception as e:
            raise RunError(self._explain(e)) from e
        for d, stream in zip(self.devices, self._streams):
            if stream is not None:
                torch.cuda.default_stream(d).wait_stream(stream)
        n = len(self.program.outputs)
        return values[:n], values[n:]

    def _explain(self, e: Exception) -> str:
        frame, line = e.__traceback__, 0
        while frame is not None:
            if frame.tb_frame.f_code.co_filename == "<placer step>":
                line = frame.tb_lineno
            frame = frame.tb_next
        op = self._line_op.get(line)
        where = f"op {self.program.ops[op].name} on {self.schedule.devices[self.schedule.device[op]]}: " if op is not None else ""
        return where + (str(e).splitlines() or [type(e).__name__])[0]

    def _compile(self) -> Callable[..., list[torch.Tensor]]:
        p, s = self.program, self.schedule
        code = Code()
        code.names["seed"] = codegen.seeder(self.devices)
        code.names["copy"] = self._copy
        code.names["use"] = self._use
        code.names["done"] = self._done
        wanted = [*p.outputs, *self.keep]
        free = codegen.last_uses(p, list(s.order), set(wanted))
        there: dict[Ref, set[int]] = {}  # copies made, by tensor
        crossing = {r for i in s.order for r in p.ops[i].inputs() if s.device[r.op] != s.device[i]}
        self._line_op: dict[int, int] = {}
        at = -1
        kernels = _kernels(s) if self._backend else {}
        deferred: dict[int, list[Ref]] = {}  # what a kernel's ops read last, by the op where it runs
        for i in s.order:
            o, d = p.ops[i], s.device[i]
            first = len(code.lines)
            if d != at and any(x is not None for x in self._streams):
                code.add(f"use({d})")
            at = d
            if o.role in ("parameter", "buffer", "slot", "batch", "const"):
                code.add(f"{name(Ref(i, 0))} = sources[{o.name!r}]")
            elif i in kernels:
                members = kernels[i]
                if i == members[-1]:
                    self._kernel(code, members, there, wanted)
            else:
                self._fetch(code, list(o.inputs()), d, there)
                codegen.call(code, p, i, self._place(d, there), self.devices[d])
            runs = kernels.get(i, [i])
            if i != runs[-1]:
                deferred.setdefault(runs[-1], []).extend(free.get(i, []))
                continue
            for j in runs:
                if any(Ref(j, k) in crossing for k in range(len(p.ops[j].outputs))):
                    code.add(f"done({j}, {d})")
            for r in deferred.pop(i, []) + free.get(i, []):
                names = [name(r)] + [f"{name(r)}_d{x}" for x in sorted(there.get(r, ()))]
                code.add(" = ".join(names) + " = None")
            self._line_op.update((n + 2, i) for n in range(first, len(code.lines)))
        code.add("return [" + ", ".join(name(r) for r in wanted) + "]")
        return code.function("def step(sources, t):", "<placer step>")

    def _place(self, d: int, there: dict[Ref, set[int]]) -> Callable[[Ref], str]:
        def place(r: Ref) -> str:
            return name(r) if self.schedule.device[r.op] == d else f"{name(r)}_d{d}"

        return place

    def _fetch(self, code: Code, inputs: list[Ref], d: int, there: dict[Ref, set[int]]) -> None:
        for r in inputs:
            if self.schedule.device[r.op] != d and d not in there.setdefault(r, set()):
                there[r].add(d)
                code.add(f"{name(r)}_d{d} = copy({name(r)}, {r.op}, {self.schedule.device[r.op]}, {d})")

    def _kernel(self, code: Code, members: list[int], there: dict[Ref, set[int]], wanted: list[Ref]) -> None:
        """A fused group as one compiled function."""
        p, d = self.program, self.schedule.device[members[0]]
        inside = set(members)
        inputs = sorted({r for i in members for r in p.ops[i].inputs() if r.op not in inside})
        used = {r for i, o in enumerate(p.ops) if i not in inside for r in o.inputs()} | set(wanted)
        outputs = [Ref(i, k) for i in members for k in range(len(p.ops[i].outputs)) if Ref(i, k) in used]
        body = Code()
        for i in members:
            codegen.call(body, p, i, name, self.devices[d], compiled=True)
        body.add("return (" + "".join(name(r) + ", " for r in outputs) + ")")
        function = body.function("def kernel(" + ", ".join(name(r) for r in inputs) + "):", "<placer kernel>")
        compiled = torch.compile(function, backend=self._backend, dynamic=False, fullgraph=True)
        self._fetch(code, inputs, d, there)
        place = self._place(d, there)
        left = ", ".join(name(r) for r in outputs) + "," if outputs else "_"
        code.add(f"{left} = {code.bind(compiled, 'f')}({', '.join(place(r) for r in inputs)})")

    # What the generated code calls.

    def _use(self, d: int) -> None:
        stream = self._streams[d]
        if stream is not None:
            torch.cuda.set_stream(stream)

    def _done(self, op: int, d: int) -> None:
        stream = self._streams[d]
        if stream is not None:
            self._events[op] = stream.record_event()

    def _copy(self, x: torch.Tensor, op: int, source: int, d: int) -> torch.Tensor:
        self.copied_bytes += x.numel() * x.element_size()
        to, into, event = self.devices[d], self._streams[d], self._events.get(op)
        if into is None:  # a CPU device: by value, with the same strides
            y = _like(x, to)
            return y
        if event is not None and to == self.devices[source]:  # a logical device on the same GPU: no copy, only order
            into.wait_event(event)
            x.record_stream(into)
            return x
        lane = self._copies[d]
        assert lane is not None
        if event is not None:
            lane.wait_event(event)
        with torch.cuda.stream(lane):
            y = _like(x, to)
        if x.is_cuda:
            x.record_stream(lane)
        into.wait_event(lane.record_event())
        y.record_stream(into)
        return y


def _like(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy of x on device with x's strides; an expanded dimension stays one."""
    compact = x
    for k, (n, st) in enumerate(zip(x.shape, x.stride())):
        if st == 0 and n > 1:
            compact = compact.narrow(k, 0, 1)
    extent = 1 + sum((n - 1) * st for n, st in zip(x.shape, x.stride())) if x.numel() else 0
    memory = torch.empty(extent, dtype=x.dtype, device=device)
    memory.as_strided(compact.shape, compact.stride()).copy_(compact, non_blocking=True)
    return memory.as_strided(x.shape, x.stride())


def _kernels(s: Schedule) -> dict[int, list[int]]:
    """By op of a fused kernel of at least two ops, the kernel's ops in issue
    order. The kernel runs where its last op stands, which needs that no op
    between reads it; a schedule from placer has that."""
    members: dict[int, list[int]] = {}
    for i in s.order:
        if s.kernel[i]:
            members.setdefault(s.kernel[i], []).append(i)
    return {i: m for m in members.values() if len(m) > 1 for i in m}
