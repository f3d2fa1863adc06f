"""A schedule on N processes, each pinned to a core: a real run on several devices without a GPU.

A tensor that another worker reads is copied once into shared memory by the
worker that made it, which then raises the tensor's flag to the step's number;
readers wait for the flag and read in place. Every worker begins a step when all
have ended the last one.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import time
import traceback
from typing import Any, Callable, Sequence

import torch

from placer_runtime import processes

from . import clock, codegen, fences
from .codegen import Code, name
from .errors import NoDeviceError, RunError
from .steps import Steps
from .schedule import Schedule
from .program import SOURCES, STATE, Program, Ref, Spec
from .shared import Arena, compact
from .state import Tensors
from .threads import one_thread

LATENCY = 1e-6  # from a flag raised to a reader that runs on, beside the copy itself
SPIN = 20_000  # polls of a flag before a waiting worker offers its core to others; about 1 ms
_ERROR = 4096
_CPU = torch.device("cpu")


class Workers:
    """Worker processes that run steps of a schedule until closed. Use it as a
    context, so that no process stays."""

    def __init__(
        self,
        p: Program,
        s: Schedule,
        state: Tensors,
        batch: Tensors,
        *,
        keep: Sequence[Ref] = (),
        specs: dict[Ref, Spec] | None = None,
        cores: Sequence[int] | None = None,
        trace: str = "",
        latency: float = LATENCY,
        timeout: float = 600.0,
        most_steps: int = 1024,
        realtime: bool = False,
    ):
        """keep: tensors that `kept` returns after a step. specs: shapes and
        strides as they are when run, where they differ from the captured ones.
        trace: the clock by which each op of a step is recorded, "" for none.
        realtime: while a step runs, nothing else runs on the workers' cores, where
        the host permits that (short runs only: it holds up everybody else)."""
        processes.need_ordered_stores("CPU workers", "run(…, workers=False) runs the devices in one process")
        self.program, self.schedule, self.trace, self.latency, self.timeout = p, s, trace, latency, timeout
        self.n = len(s.devices)
        self.realtime = realtime
        self.specs = specs or {}
        self.most = most_steps
        self._pids: list[int] = []
        self._done = 0
        allowed = sorted(os.sched_getaffinity(0))
        self.cores = list(cores) if cores is not None else [allowed[k % len(allowed)] for k in range(self.n)]
        if self.n > len(set(self.cores)) and cores is not None:
            raise NoDeviceError(f"{self.n} workers on cores {self.cores}")
        self._layout(batch, state, keep)
        self._start()

    # Memory

    def _layout(self, batch: Tensors, state: Tensors, keep: Sequence[Ref]) -> None:
        p, s = self.program, self.schedule
        self.crossing = sorted({r for i, o in enumerate(p.ops) for r in o.inputs() if s.device[r.op] != s.device[i]})
        self.slot = {r: k for k, r in enumerate(self.crossing)}
        self._wanted = [*p.outputs, *keep]
        n, c = self.n, len(self.crossing)
        arena = Arena()
        flags, stamps = arena.reserve(8 * max(1, c)), arena.reserve(8 * max(1, c))
        words = arena.reserve(8 * (3 * n + 8))  # per worker: begun, ended, failed; then steps wanted, stop
        clocks = arena.reserve(8 * 3 * n * self.most)
        errors = arena.reserve(_ERROR * n)
        count = {w: 2 * len(s.of(w)) + 2 * c + 8 for w in range(n)}
        records = [arena.reserve(8 * 4 * count[w]) if self.trace else 0 for w in range(n)]
        slots = [arena.reserve_tensor(self.spec(r)) for r in self.crossing]
        wanted = [arena.reserve_tensor(self.spec(r).apart) for r in self._wanted]
        sources = {i: arena.reserve_tensor(self.spec(Ref(i, 0))) for i in p.sources(*STATE, "batch")}
        arena.make()
        self._arena = arena
        self.flags, self.stamps = arena.numbers(flags, max(1, c), "q"), arena.numbers(stamps, max(1, c), "d")
        self.words = arena.numbers(words, 3 * n + 8, "q")
        self.clocks = arena.numbers(clocks, 3 * n * self.most, "d")
        self.errors = [arena.text(errors + _ERROR * w, _ERROR) for w in range(n)]
        self._records = [arena.numbers(records[w], 4 * count[w], "d") if self.trace else None for w in range(n)]
        self.buffers = [arena.tensor(at, self.spec(r)) for at, r in zip(slots, self.crossing)]
        self.results = [arena.tensor(at, self.spec(r).apart) for at, r in zip(wanted, self._wanted)]
        self.state: Tensors = {}
        self.batch: Tensors = {}
        for i, at in sources.items():
            o = p.ops[i]
            t = arena.tensor(at, self.spec(Ref(i, 0)))
            if o.role == "batch":
                self.batch[o.name] = t.copy_(batch[o.name])
            else:
                self.state[o.name] = t.copy_(state[o.name])

    def spec(self, r: Ref) -> Spec:
        return self.specs.get(r) or self.program.spec(r)

    @property
    def t(self) -> int:
        """The optimizer's step: how many were run, with those before a loaded checkpoint."""
        return self.words[3 * self.n + 2] + self._done

    @t.setter
    def t(self, steps: int) -> None:
        self.words[3 * self.n + 2] = steps - self._done

    # Processes

    def _start(self) -> None:
        parent = os.getpid()
        steps = [self._worker_code(w) for w in range(self.n)]
        gc.collect()
        gc.freeze()
        with one_thread():  # a pool of threads does not survive a fork
            for w in range(self.n):
                pid = os.fork()
                if pid == 0:
                    code = 1
                    try:
                        processes.die_with(parent)
                        signal.signal(signal.SIGINT, signal.SIG_IGN)
                        self._serve(w, steps[w])
                        code = 0
                    except BaseException as e:
                        self._fail(w, e)
                    finally:
                        os._exit(code)
                self._pids.append(pid)
        gc.unfreeze()

    def _fail(self, w: int, e: BaseException) -> None:
        line = 0
        frame = e.__traceback__
        while frame is not None:
            if frame.tb_frame.f_code.co_filename == f"<worker {w}>":
                line = frame.tb_lineno
            frame = frame.tb_next
        op = self._line_op[w].get(line)
        where = f"op {self.program.ops[op].name} on " if op is not None else ""
        reason = (str(e).splitlines() or [""])[0] or type(e).__name__
        text = f"{where}{self.schedule.devices[w]}: {reason}"
        if op is None and not isinstance(e, (RunError, MemoryError)):
            text += f" ({traceback.format_exc().splitlines()[-2].strip()})"
        data = text.encode()[: _ERROR - 8]
        self.errors[w][: len(data)] = data
        self.words[2 * self.n + w] = len(data)

    def _serve(self, w: int, step: Callable[[int, int], tuple[float, float]]) -> None:
        os.sched_setaffinity(0, {self.cores[w]})
        torch.set_num_threads(1)
        _keep_memory()
        if self.realtime:
            try:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            except OSError:
                pass
        gc.disable()
        words, n, clocks = self.words, self.n, self.clocks
        s = 0
        idle = time.perf_counter()
        with torch.inference_mode(), torch._C._DisableAutocast():
            while True:
                if words[3 * n + 1]:
                    return
                if words[3 * n] <= s:
                    if time.perf_counter() - idle > 2e-3:
                        time.sleep(1e-4)
                    else:
                        os.sched_yield()
                    continue
                s += 1
                words[w] = s
                polls = 0
                while min(words[:n]) < s:  # all begin together
                    polls += 1
                    if polls > SPIN:
                        os.sched_yield()
                a = clock.wall()
                virtual, compute = step(s, self.words[3 * n + 2] + s)
                at = 3 * (w * self.most + (s - 1) % self.most)
                clocks[at], clocks[at + 1], clocks[at + 2] = clock.wall() - a, virtual, compute
                words[n + w] = s
                idle = time.perf_counter()

    def start(self, steps: int = 1) -> None:
        """Has the workers begin so many steps, at most most_steps, on the batch as it is now."""
        if not 0 < steps <= self.most:
            raise RunError(f"{steps} steps at once; 1 to {self.most}")
        self._done += steps
        self.words[3 * self.n] = self._done

    def wait(self) -> None:
        """Returns when the steps that were started have ended."""
        give_up = time.monotonic() + self.timeout
        naps = 0
        while min(self.words[self.n : 2 * self.n]) < self._done:
            self._check()
            if time.monotonic() > give_up:
                self.close()
                raise RunError(f"no end after {self.timeout:g} s; the workers were stopped")
            naps += 1
            time.sleep(1e-4 if naps < 100 else 1e-3)

    def run(self, steps: int = 1) -> Steps:
        """Runs so many steps, at most most_steps, on the batch as it is now."""
        first = self._done
        self.start(steps)
        self.wait()

        def column(k: int) -> list[list[float]]:
            return [[self.clocks[3 * (w * self.most + x % self.most) + k] for w in range(self.n)] for x in range(first, self._done)]

        wall, virtual, compute = column(0), column(1), column(2)
        return Steps([max(x) for x in wall], [max(x) for x in virtual], virtual, compute, [self._read_records(w) for w in range(self.n)])

    def _read_records(self, w: int) -> list[tuple[int, int, float, float]]:
        data = self._records[w]
        if data is None:
            return []
        n = int(data[0])
        return [(int(data[4 * k + 4]), int(data[4 * k + 5]), data[4 * k + 6], data[4 * k + 7]) for k in range(n)]

    def _check(self) -> None:
        """Raises the error of a worker that failed, after ending its peers."""
        for k, pid in enumerate(list(self._pids)):
            got, status = os.waitpid(pid, os.WNOHANG)
            if got == 0:
                continue
            self._pids.remove(pid)
            self._kill()
            texts = [bytes(self.errors[w][: self.words[2 * self.n + w]]).decode() for w in range(self.n) if self.words[2 * self.n + w]]
            if texts:
                raise RunError(texts[0])
            how = f"was ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"ended with status {os.WEXITSTATUS(status)}"
            raise RunError(f"worker {k} of {self.n} {how}")

    def _kill(self) -> None:
        processes.kill(self._pids)
        self._pids = []

    def close(self) -> None:
        """Ends the workers. State and results stay readable."""
        if not self._pids:
            return
        self.words[3 * self.n + 1] = 1
        for _ in range(200):
            self._pids = [pid for pid in self._pids if os.waitpid(pid, os.WNOHANG)[0] == 0]
            if not self._pids:
                return
            time.sleep(1e-3)
        self._kill()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pids", None):
            self._kill()

    # Code

    def _worker_code(self, w: int) -> Callable[[int, int], tuple[float, float]]:
        p, s = self.program, self.schedule
        order = fences.views_first(p, s.of(w))
        code = Code()
        wanted: dict[Ref, list[torch.Tensor]] = {}  # an output may be one twice
        for r, to in zip(self._wanted, self.results):
            if s.device[r.op] == w:
                wanted.setdefault(r, []).append(to)
        free = codegen.last_uses(p, order, set())
        code.names.update(cpu=clock.thread, seed=codegen.seeder([_CPU]), F=self.flags, S=self.stamps, wait=self._waiter(w))
        tracer = self._tracer(w)
        if tracer is not None:
            code.names["rec"] = tracer
            code.names["tick"] = clock.wall if self.trace == clock.WALL else None
        virtual = self.trace == clock.VIRTUAL
        stamp = "now + cpu() - mark" if virtual else "tick()"
        have: set[Ref] = set()
        self._line_op = getattr(self, "_line_op", {})
        lines: dict[int, int] = self._line_op.setdefault(w, {})
        code.add("now = waited = 0.0")
        if tracer is not None:
            code.add("rec(-1, 0, 0.0, 0.0)" if virtual else "rec(-1, 0, tick(), 0.0)")
        code.add("mark = cpu()")
        code.add("begin = mark")
        for i in order:
            o = p.ops[i]
            first = len(code.lines)
            for r in dict.fromkeys(o.inputs()):
                if s.device[r.op] != w and r not in have:
                    have.add(r)
                    code.add(f"now, mark, waited = wait({self.slot[r]}, now, mark, waited, s)")
                    code.add(f"{name(r)} = {code.bind(self.buffers[self.slot[r]], 'b')}")
            if tracer is not None:
                code.add(f"a = {stamp}")
            if o.role in STATE or o.role == "batch":
                code.add(f"{name(Ref(i, 0))} = {code.bind((self.state if o.role in STATE else self.batch)[o.name], 's')}")
            elif o.role == "const":
                code.add(f"{name(Ref(i, 0))} = {code.bind(p.constants[o.name], 's')}")
            else:
                codegen.call(code, p, i, name, _CPU)
            gone = free.get(i, [])
            late = [r for r in gone if r in self.slot or r in wanted]
            _forget(code, [r for r in gone if r not in late])
            if tracer is not None:
                code.add(f"rec({i}, -1, a, {stamp})")
            for k in range(len(o.outputs)):
                r = Ref(i, k)
                if r in self.slot:
                    self._send(code, r, stamp if tracer is not None else "")
                for to in wanted.get(r, ()):
                    code.add(f"{code.bind(to, 'r')}.copy_({name(r)})")
            _forget(code, late)
            lines.update((n + 2, i) for n in range(first, len(code.lines)))
        code.add("end = cpu()")
        code.add("return now + end - mark, end - begin - waited")
        return code.function("def step(s, t):", f"<worker {w}>")

    def _send(self, code: Code, r: Ref, stamp: str) -> None:
        """Copies into the slot, then stamps and raises the flag. The order of
        these writes is what readers rely on (processes.need_ordered_stores)."""
        k = self.slot[r]
        b = self.buffers[k]
        if stamp:
            code.add(f"a = {stamp}")
        small = compact(b)
        if small.shape != b.shape:
            code.names["compact"] = compact
            code.add(f"{code.bind(small, 'b')}.copy_(compact({name(r)}))")
        else:
            code.add(f"{code.bind(b, 'b')}.copy_({name(r)})")
        code.add("c = cpu(); now += c - mark; mark = c")
        code.add(f"S[{k}] = now; F[{k}] = s")
        if stamp:
            code.add(f"rec({r.op}, {r.out}, a, {stamp})")

    def _waiter(self, w: int) -> Callable[..., tuple[float, float, float]]:
        flags, stamps, latency = self.flags, self.stamps, self.latency
        cpu, give = clock.thread, os.sched_yield

        def wait(k: int, now: float, mark: float, waited: float, s: int) -> tuple[float, float, float]:
            c = cpu()
            now += c - mark
            polls = 0
            while flags[k] != s:
                polls += 1
                if polls > SPIN:
                    give()
            at = stamps[k] + latency
            mark = cpu()
            return (at if at > now else now), mark, waited + mark - c

        return wait

    def _tracer(self, w: int) -> Callable[[int, int, float, float], None] | None:
        data = self._records[w]
        if data is None:
            return None
        at, begin = 0, 0.0

        def rec(op: int, out: int, start: float, end: float) -> None:
            nonlocal at, begin
            if op < 0:
                at, begin = 0, start
                return
            at += 1
            data[4 * at], data[4 * at + 1], data[4 * at + 2], data[4 * at + 3] = op, out, start - begin, end - begin
            data[0] = at

        return rec


def _forget(code: Code, gone: list[Ref]) -> None:
    if gone:
        code.add(" = ".join(name(r) for r in gone) + " = None")


def _keep_memory() -> None:
    """Has malloc keep what was freed: a step allocates what the last one did."""
    M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
    except (OSError, AttributeError):
        pass


def observe(p: Program, state: Tensors, batch: Tensors) -> tuple[dict[Ref, Spec], list[torch.Tensor]]:
    """One step on the CPU, in this process and on one thread: every tensor's shape and
    strides as they are (kernels choose some that fake tensors do not foresee), and the
    outputs."""
    found: dict[Ref, Spec] = {}
    values: dict[Ref, torch.Tensor] = {}
    here = {k: v.cpu().clone(memory_format=torch.preserve_format) for k, v in state.items()}
    free = codegen.last_uses(p, list(range(len(p.ops))), set(p.outputs))
    seed = codegen.seeder([_CPU])
    with one_thread(), torch.inference_mode(), torch._C._DisableAutocast(), torch.random.fork_rng(devices=[]):
        for i, o in enumerate(p.ops):
            if o.role in SOURCES:
                got: Any = here[o.name] if o.role in STATE else batch[o.name].cpu() if o.role == "batch" else p.constants[o.name]
                outs = [got]
            else:
                code = Code()
                code.names.update({name(r): values[r] for r in o.inputs()}, seed=seed)
                codegen.call(code, p, i, name, _CPU)
                left = [name(Ref(i, k)) for k in range(len(o.outputs))]
                code.add("return [" + ", ".join(left) + "]")
                outs = code.function("def one(t):", "<observe>")(1)
            for k, x in enumerate(outs):
                if isinstance(x, torch.Tensor):
                    values[Ref(i, k)] = x
                    found[Ref(i, k)] = Spec(tuple(x.shape), tuple(x.stride()), x.dtype)
            for r in free.get(i, []):
                values.pop(r, None)
    return found, [values[r] for r in p.outputs]
