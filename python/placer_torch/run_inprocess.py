"""A schedule in one process: ops issued in order on torch devices, each with a stream of its own on CUDA."""

from __future__ import annotations

import contextlib
import gc
import time
from typing import Any, Callable, Iterator, Sequence

import torch

from . import codegen, fences, schedule
from .codegen import Code, name
from .errors import NoDeviceError, NoMemoryError, RunError
from .steps import Record, Steps
from .schedule import Schedule
from .program import STATE, Program, Ref
from .shared import compact, like
from .state import Tensors
from .streams import Mark, Streams, more_queues


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
            more_queues()
            found.append(torch.device("cuda", k))
        elif kind == "cpu":
            found.append(torch.device("cpu"))
        else:
            raise NoDeviceError(f"device {n}: want cpu:N or cuda:N")
    return found


class InProcess:
    """Runs steps. State lives where the schedule says; each tensor that another
    device reads is copied there once, and freed behind its last use. Use it as a
    context where its memory is wanted back."""

    def __init__(
        self,
        p: Program,
        s: Schedule,
        state: Tensors,
        batch: Tensors | None = None,
        *,
        devices: Sequence[torch.device] | None = None,
        keep: Sequence[Ref] = (),
        fuse: str = "",
        trace: bool = False,
        streams: Streams | None = None,
    ):
        """batch: of the steps of `run`. fuse: torch.compile's backend for the schedule's
        kernels, "inductor" say; "" runs op by op. trace: start and end of each op and
        copy are recorded. Raises NoMemoryError where a device cannot hold its part of
        the state."""
        self.program, self.schedule, self.keep, self.batch = p, s, list(keep), batch
        self.results: list[torch.Tensor] = []  # of the last step: outputs and kept tensors
        self.devices = list(devices or torch_devices(s.devices))
        self.copied_bytes = 0
        self.t = 0
        self._streams = streams or Streams(self.devices)
        self._trace: list[tuple[int, int, Mark, Mark]] | None = [] if trace else None
        self.state: Tensors = {}
        with self._memory():
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
        self.results = []  # their memory is wanted
        with self._memory():
            sources = {**self.state, **self.constants, **self._moved(batch)}
            self._streams.begin()
            try:
                # the step has the casts of an autocast that it was captured with, and no others
                with torch.no_grad(), torch._C._DisableAutocast(), torch.random.fork_rng(devices=[]):
                    values = self._step(sources, self.t)
            except torch.OutOfMemoryError:
                raise
            except Exception as e:
                raise RunError(self._explain(e)) from e
            finally:
                self._streams.end()
        self.results = values
        n = len(self.program.outputs)
        return values[:n], values[n:]

    def _moved(self, batch: Tensors) -> Tensors:
        """The batch where the schedule has it; what is there stays."""
        p, s = self.program, self.schedule
        return {p.ops[i].name: batch[p.ops[i].name].to(self.devices[s.device[i]], non_blocking=True) for i in p.sources("batch")}

    def run(self, steps: int = 1) -> Steps:
        """Steps with the time of each, the devices idle before and behind it, and the batch
        there before, as predictions have it."""
        assert self.batch is not None
        with self._memory():
            batch = self._moved(self.batch)
        took = []
        for _ in range(steps):
            if self._trace is not None:
                self._trace.clear()
            self._streams.zero()
            began = time.perf_counter()
            self.step(batch)
            self._streams.synchronize()
            took.append(time.perf_counter() - began)
        return Steps(wall_s=took, records=self._records())

    def _records(self) -> list[list[Record]]:
        """Of the last step, by the device that ran or sent."""
        found: list[list[Record]] = [[] for _ in self.devices]
        for op, out, start, end in self._trace or []:
            found[start.d].append((op, out, self._streams.seconds(start), self._streams.seconds(end)))
        return found

    def close(self) -> None:
        """Frees the state, and what the step had on GPUs."""
        self.state, self.constants, self.results = {}, {}, []
        gc.collect()
        if self._streams.gpus:
            torch.cuda.empty_cache()

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _memory(self) -> Iterator[None]:
        try:
            yield
        except torch.OutOfMemoryError as e:
            raise NoMemoryError(f"the step does not fit on {', '.join(self.schedule.devices)}: {(str(e).splitlines() or [''])[0]}") from None

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
        ops = schedule.ops(p)
        fenced = fences.across(p, ops, s)
        kernels = _kernels(s, set(fenced)) if self._backend else {}
        order = fences.order(ops, s, kernels)
        self._fences = self._plan_fences(fenced, order)
        waited = {j for js, _ in self._fences.values() for j in js}
        self._fenced = {c for _, copies in self._fences.values() for c in copies}
        code = Code()
        code.names["seed"] = codegen.seeder(self.devices)
        code.names["copy"] = self._copy
        code.names["use"] = self._streams.use
        code.names["done"] = self._streams.done
        code.names["fence"] = self._streams.fence
        code.names["mark"] = self._streams.mark
        code.names["trace"] = self._trace
        wanted = [*p.outputs, *self.keep]
        free = codegen.last_uses(p, order, set(wanted))
        there: dict[Ref, set[int]] = {}  # copies made, by tensor
        crossing = {r for i in order for r in p.ops[i].inputs() if s.device[r.op] != s.device[i]}
        self._line_op: dict[int, int] = {}
        at = -1
        deferred: dict[int, list[Ref]] = {}  # what a kernel's ops read last, by the op where it runs
        for i in order:
            o, d = p.ops[i], s.device[i]
            first = len(code.lines)
            if d != at and self._streams.gpus:
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
                if i in self._fences and self._streams.gpus:
                    js, copies = self._fences[i]
                    code.add(f"fence({d}, {code.bind(js, 'w')}, {code.bind(copies, 'w')})")
                self._begin(code, d)
                codegen.call(code, p, i, self._place(d, there), self.devices[d])
                self._end(code, i, d)
            runs = kernels.get(i, [i])
            if i != runs[-1]:
                deferred.setdefault(runs[-1], []).extend(free.get(i, []))
                continue
            for j in runs:
                if j in waited or any(Ref(j, k) in crossing for k in range(len(p.ops[j].outputs))):
                    code.add(f"done({j}, {d})")
            for r in deferred.pop(i, []) + free.get(i, []):
                names = [name(r)] + [f"{name(r)}_d{x}" for x in sorted(there.get(r, ()))]
                code.add(" = ".join(names) + " = None")
            self._line_op.update((n + 2, i) for n in range(first, len(code.lines)))
        code.add("return [" + ", ".join(name(r) for r in wanted) + "]")
        return code.function("def step(sources, t):", "<placer step>")

    def _plan_fences(self, reads: dict[int, list[fences.Read]], order: list[int]) -> dict[int, tuple[list[int], list[tuple[Ref, int]]]]:
        """By update or assign, what it comes behind on its device: readers, of each logical
        device beside it the last one, and copies."""
        place = {i: k for k, i in enumerate(order)}
        found = {}
        for i, rs in reads.items():
            d = self.schedule.device[i]
            beside = {r.device: r.op for r in sorted(rs, key=lambda r: place[r.op]) if self._streams.shares(d, r.device)}
            copies = dict.fromkeys((r.tensor, r.device) for r in rs if r.device not in beside)
            found[i] = (list(beside.values()), list(copies))
        return found

    def _place(self, d: int, there: dict[Ref, set[int]]) -> Callable[[Ref], str]:
        def place(r: Ref) -> str:
            return name(r) if self.schedule.device[r.op] == d else f"{name(r)}_d{d}"

        return place

    def _fetch(self, code: Code, inputs: list[Ref], d: int, there: dict[Ref, set[int]]) -> None:
        for r in inputs:
            if self.schedule.device[r.op] != d and d not in there.setdefault(r, set()):
                there[r].add(d)
                code.add(f"{name(r)}_d{d} = copy({name(r)}, {code.bind(r, 'r')}, {self.schedule.device[r.op]}, {d}, {(r, d) in self._fenced})")

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
        self._begin(code, d)
        code.add(f"{left} = {code.bind(compiled, 'f')}({', '.join(place(r) for r in inputs)})")
        self._end(code, members[-1], d)

    def _begin(self, code: Code, d: int) -> None:
        if self._trace is not None:
            code.add(f"began = mark({d})")

    def _end(self, code: Code, i: int, d: int) -> None:
        if self._trace is not None:
            code.add(f"trace.append(({i}, -1, began, mark({d})))")

    def _copy(self, x: torch.Tensor, r: Ref, a: int, b: int, fenced: bool) -> torch.Tensor:
        """Tensor r of device a for device b; the generated code calls it."""
        y, marks = self._streams.copy(x, r, a, b, like, timed=self._trace is not None, fenced=fenced)
        if y is not x:
            self.copied_bytes += compact(x).numel() * x.element_size()
        if self._trace is not None and marks is not None:
            self._trace.append((*r, *marks))
        return y


def _kernels(s: Schedule, alone: set[int]) -> dict[int, list[int]]:
    """By op of a fused kernel of at least two ops, the kernel's ops in issue order. Ops
    of `alone` are in none: they wait for other devices, which the others need not."""
    members: dict[int, list[int]] = {}
    for i in s.order:
        if s.kernel[i] and i not in alone:
            members.setdefault(s.kernel[i], []).append(i)
    return {i: m for m in members.values() if len(m) > 1 for i in m}
