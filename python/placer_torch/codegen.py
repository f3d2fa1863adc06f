"""Python source for a list of ops: straight-line code, so that issuing an op costs little beside the op."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch

from . import kinds
from .rules import rule
from .program import Here, Program, Ref, Spec, target_of


# Kernels choose strides that fake tensors do not foresee (batch normalisation of a transposed
# tensor on the CPU), of which the captured shape may be no view: it is a copy then.
RESHAPED = {"aten.view.default": "aten.reshape.default", "aten._unsafe_view.default": "aten.reshape.default"}


class Code:
    """Lines of a function and the values they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self._bound: dict[int, str] = {}

    def add(self, line: str) -> None:
        self.lines.append("    " + line)

    def bind(self, value: Any, prefix: str = "c") -> str:
        """A name under which the function sees value."""
        if id(value) not in self._bound:
            name = f"{prefix}{len(self._bound)}"
            self._bound[id(value)] = name
            self.names[name] = value
        return self._bound[id(value)]

    def function(self, head: str, file: str) -> Callable[..., Any]:
        source = "\n".join([head, *self.lines, ""])
        exec(compile(source, file, "exec"), self.names)
        return self.names[head.split("(")[0].split()[1]]


def name(r: Ref) -> str:
    return f"v{r.op}_{r.out}"


def literal(code: Code, value: Any, place: Callable[[Ref], str], device: torch.device) -> str:
    """The source text of an argument."""
    if isinstance(value, Ref):
        return place(value)
    if isinstance(value, Here):
        return code.bind(device)
    if isinstance(value, (list, tuple)) and not isinstance(value, Spec):
        inner = ", ".join(literal(code, v, place, device) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)"
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and value - value == 0):
        return repr(value)
    return code.bind(value, "k")


def call(code: Code, p: Program, i: int, place: Callable[[Ref], str], device: torch.device, *, compiled: bool = False) -> None:
    """Adds the lines that run op i, a call, an update or an assign. `t` is the
    optimizer's step, `seed` a function that fixes what random ops draw. compiled:
    torch.compile reads the lines, which knows overloads, not what they wrap."""
    o = p.ops[i]
    if o.role == "assign":
        to, value = o.inputs()
        code.add(f"{place(to)}.copy_({place(value)})")
        return
    if o.role == "update":
        parts = [literal(code, a, place, device) for a in o.args[:3]]
        code.add(f"{code.bind(rule(o.target), 'f')}({', '.join(parts)}, t, {code.bind(o.args[3], 'h')})")
        return
    target: Any = target_of(RESHAPED.get(o.target, o.target))
    if kinds.is_random(target):
        code.add(f"seed({i if o.draws is None else int(o.draws)}, t, {int(p.seed)})")
    parts = [literal(code, a, place, device) for a in o.args]
    parts += [f"{k}={literal(code, v, place, device)}" for k, v in o.kwargs.items()]
    run = code.bind(target if compiled else getattr(target, "_op", target), "f")
    if o.several:
        left = ", ".join(name(Ref(i, k)) for k in range(len(o.outputs))) + ","
    else:
        left = name(Ref(i, 0))
    code.add(f"{left} = {run}({', '.join(parts)})")
    if i in p.strided:
        for k, s in enumerate(o.outputs):
            if s is not None:
                made = name(Ref(i, k))
                code.add(f"{made} = {code.bind(laid, 'f')}({made}, {s.stride})")


def laid(t: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    """t with these strides, a copy where it has others."""
    return t if t.stride() == stride else torch.empty_strided(t.shape, stride, dtype=t.dtype, device=t.device).copy_(t)


def seeder(devices: Sequence[torch.device]) -> Callable[..., None]:
    """Fixes what a random op draws by op, step and the loop's seed, so that it does not
    depend on which of the devices runs it or what ran before."""
    cpu = any(d.type == "cpu" for d in devices)
    cuda = any(d.type == "cuda" for d in devices)

    def seed(op: int, t: int, base: int = 0) -> None:
        mixed = base * 0x9E3779B97F4A7C15 % (1 << 64)
        mixed ^= mixed >> 32  # the CPU's generator takes the low 32 bits
        number = ((op + 1) * 1_000_003 + t * 7_919 + mixed) % (1 << 63)
        if cpu:
            torch.default_generator.manual_seed(number)
        if cuda:
            torch.cuda.manual_seed(number)

    return seed


def last_uses(p: Program, order: list[int], keep: set[Ref]) -> dict[int, list[Ref]]:
    """By op, the references that nothing in order reads behind it."""
    last: dict[Ref, int] = {}
    for i in order:
        for r in p.ops[i].inputs():
            last[r] = i
        for k in range(len(p.ops[i].outputs)):
            last.setdefault(Ref(i, k), i)
    free: dict[int, list[Ref]] = {}
    for r, i in last.items():
        if r not in keep:
            free.setdefault(i, []).append(r)
    return free
