"""A captured step as data: ops in topological order, each with its ATen target, arguments and results."""

from __future__ import annotations

import dataclasses
import functools
import keyword
from typing import Any, Callable, Iterator, NamedTuple

import torch

from .errors import FormatError
from .rules import known

FORMAT = "placer torch program 1"


class Ref(NamedTuple):
    """Output `out` of op `op`, an index into Program.ops."""

    op: int
    out: int


class Here:
    """Stands in an argument for the device that the op runs on."""

    def __repr__(self) -> str:
        return "here"


HERE = Here()


class Spec(NamedTuple):
    """A tensor without its values. `stride` is in elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @property
    def elements(self) -> int:
        return functools.reduce(lambda a, b: a * b, self.shape, 1)

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.itemsize

    @property
    def extent(self) -> int:
        """Elements from the first to behind the last, gaps included; 0 of an empty tensor."""
        if self.elements == 0:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride))

    @property
    def apart(self) -> Spec:
        """Itself where every element has a place of its own, else without strides of the
        kind: an expanded tensor, or sliding windows, cannot be written element by element."""
        last = 0  # the place of the last element so far
        for stride, n in sorted((s, n) for n, s in zip(self.shape, self.stride) if n > 1):
            if stride <= last:
                return Spec(self.shape, _contiguous(self.shape), self.dtype)
            last += (n - 1) * stride
        return self


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, n = [], 1
    for d in reversed(shape):
        strides.append(n)
        n *= max(d, 1)
    return tuple(reversed(strides))


# Roles of an op. Sources hold a tensor at the step's start; a call is an ATen
# op; an update changes a parameter and its slots in place; an assign copies a
# new value into a buffer.
SOURCES = ("parameter", "buffer", "slot", "batch", "const")
STATE = ("parameter", "buffer", "slot")


@dataclasses.dataclass
class Op:
    """One op. `target` is an ATen overload ("aten.mm.default"), an update rule
    ("sgd", "adam", or a class of torch.optim) or, of a source, the tensor's own name."""

    name: str
    role: str
    target: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    outputs: tuple[Spec | None, ...] = ()
    several: bool = False  # the target returns a tuple or list
    view: bool = False  # the outputs are views of the first input
    module: str = ""
    phase: str = "forward"
    forward: int | None = None  # of a backward op: the op whose gradient it computes
    draws: int | None = None  # of a random op that computes again: the op whose numbers it draws

    def inputs(self) -> Iterator[Ref]:
        """The tensors that the op reads, in order, repetitions included."""
        yield from refs((self.args, self.kwargs))


def refs(value: Any) -> Iterator[Ref]:
    """The references within nested arguments, in order."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, (tuple, list)):
        for v in value:
            yield from refs(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from refs(v)


def replace(value: Any, change: Callable[[Any], Any]) -> Any:
    """value with every leaf x replaced by change(x); a Ref is a leaf."""
    if isinstance(value, (tuple, list)) and not isinstance(value, (Ref, Spec)):
        return type(value)(replace(v, change) for v in value)
    if isinstance(value, dict):
        return {k: replace(v, change) for k, v in value.items()}
    return change(value)


class Leaf(NamedTuple):
    """A leaf of the batch at `path` (batches.leaves): a tensor is the source `op`; of all
    else op is "", and `value` is part of the step."""

    path: str
    op: str
    value: None | bool | int | float | str = None


@dataclasses.dataclass
class Program:
    """One step. `ops` are in topological order; `constants` and `batch` have
    the values of const and batch ops by name; `outputs` are what the step
    returns, `loss` first where there is one; `gradients` are by parameter."""

    name: str
    ops: list[Op]
    outputs: list[Ref]
    gradients: dict[str, Ref]
    constants: dict[str, torch.Tensor]
    batch: dict[str, torch.Tensor]
    training: bool
    # The shape of the model's output around its tensors, for inference: nested
    # tuples, lists and dicts whose tensors are indices into `outputs`; -1 and down
    # stand for `fixed[0]` and up, what is no tensor.
    structure: Any = 0
    fixed: list[Any] = dataclasses.field(default_factory=list)
    inputs: list[Leaf] | None = None  # the batch's leaves; None: of a file without them, in which tensors go by position
    rates: list[float] = dataclasses.field(default_factory=list)  # learning rate of each of the optimizer's groups
    seed: int = 0  # from which random ops draw, with op and step; a loop's, in no file
    norm: Ref | None = None  # of all gradients, where the step clips them by it
    in_use: bool = False  # the optimizer had made steps, whose state the program does not have

    def sources(self, *roles: str) -> list[int]:
        return [i for i, o in enumerate(self.ops) if o.role in roles]

    def spec(self, r: Ref) -> Spec:
        s = self.ops[r.op].outputs[r.out]
        assert s is not None
        return s

    @functools.cached_property
    def root(self) -> list[int]:
        """Per op, the op that made the memory its outputs lie in."""
        root = list(range(len(self.ops)))
        for i, o in enumerate(self.ops):
            if o.view:
                root[i] = root[next(o.inputs()).op]
        return root

    @functools.cached_property
    def strided(self) -> frozenset[int]:
        """The ops whose memory others read by captured strides (as_strided), so that it has
        to lie as captured."""
        return frozenset(self.root[next(o.inputs()).op] for o in self.ops if o.target == "aten.as_strided.default")

    @functools.cached_property
    def by_name(self) -> dict[str, int]:
        return {o.name: i for i, o in enumerate(self.ops)}

    def save(self, path: str) -> None:
        """Writes the program for `load`, whole or not at all."""
        from placer_runtime.files import replace_file

        doc = {
            "format": FORMAT,
            "name": self.name,
            "ops": [_op_doc(o) for o in self.ops],
            "outputs": [tuple(r) for r in self.outputs],
            "gradients": {k: tuple(r) for k, r in self.gradients.items()},
            "constants": self.constants,
            "batch": self.batch,
            "training": self.training,
            "structure": self.structure,
            "fixed": self.fixed,
            "inputs": None if self.inputs is None else [tuple(x) for x in self.inputs],
            "rates": self.rates,
            "norm": None if self.norm is None else tuple(self.norm),
            "in_use": self.in_use,
        }
        replace_file(path, lambda f: torch.save(doc, f))


def load(path: str) -> Program:
    """Reads what Program.save wrote. Nothing in the file is executed."""
    try:
        doc = torch.load(path, weights_only=True)
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file") from None
    except OSError as e:
        raise FormatError(f"{path}: {e.strerror}") from None
    except Exception:  # pickle's and zipfile's, in words of torch.load
        raise FormatError(f"{path}: not a program that capture wrote") from None
    if not isinstance(doc, dict) or doc.get("format") != FORMAT:
        raise FormatError(f"{path}: format is not {FORMAT!r}")
    try:
        p = _program_of(doc)
        _check(p)
    except FormatError as e:
        raise FormatError(f"{path}: {e}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise FormatError(f"{path}: damaged: {type(e).__name__}: {e}") from None
    return p


def _program_of(doc: dict[str, Any]) -> Program:
    return Program(
        name=doc["name"],
        ops=[_op_of(d) for d in doc["ops"]],
        outputs=[Ref(*r) for r in doc["outputs"]],
        gradients={k: Ref(*r) for k, r in doc["gradients"].items()},
        constants=doc["constants"],
        batch=doc["batch"],
        training=doc["training"],
        structure=doc["structure"],
        fixed=doc.get("fixed", []),
        inputs=None if doc.get("inputs") is None else [Leaf(*x) for x in doc["inputs"]],
        rates=doc.get("rates", []),
        norm=None if doc.get("norm") is None else Ref(*doc["norm"]),
        in_use=doc.get("in_use", False),
    )


def _check(p: Program) -> None:
    """Raises FormatError unless the parts of p that become source text (codegen) are what
    capture writes: references to earlier ops, names of arguments, ATen's ops."""

    def check(r: Ref, before: int) -> None:
        if type(r.op) is not int or type(r.out) is not int or not 0 <= r.op < before or not 0 <= r.out < len(p.ops[r.op].outputs):
            raise FormatError(f"there is no tensor {r.op!r}:{r.out!r}")

    for i, o in enumerate(p.ops):
        for r in o.inputs():
            check(r, i)
        for k in o.kwargs:
            if not isinstance(k, str) or not k.isidentifier() or keyword.iskeyword(k):
                raise FormatError(f"op {o.name}: {k!r} is no argument's name")
        if o.role == "call":
            target_of(o.target)
        elif o.role == "update" and not known(o.target) or o.role not in (*SOURCES, "update", "assign"):
            raise FormatError(f"op {o.name}: unknown {o.role} {o.target}")
        if o.role in ("update", "assign") or o.view:
            next(o.inputs())
        if o.draws is not None and (type(o.draws) is not int or not 0 <= o.draws < i):
            raise FormatError(f"op {o.name} draws the numbers of op {o.draws!r}, which does not stand before it")
    for r in (*p.outputs, *p.gradients.values(), *([p.norm] if p.norm else [])):
        check(r, len(p.ops))


def _op_doc(o: Op) -> dict[str, Any]:
    return {
        "name": o.name,
        "role": o.role,
        "target": o.target,
        "args": _encode(o.args),
        "kwargs": _encode(o.kwargs),
        "outputs": [None if s is None else (s.shape, s.stride, s.dtype) for s in o.outputs],
        "several": o.several,
        "view": o.view,
        "module": o.module,
        "phase": o.phase,
        "forward": o.forward,
        **({"draws": o.draws} if o.draws is not None else {}),
    }


def _op_of(d: dict[str, Any]) -> Op:
    d = dict(d)
    d["args"] = _decode(d["args"])
    d["kwargs"] = _decode(d["kwargs"])
    d["outputs"] = tuple(None if s is None else Spec(*s) for s in d["outputs"])
    return Op(**d)


# Arguments in a file: containers as {"tuple" | "list" | "dict": ...}, a Ref as
# {"ref": [op, out]}, torch's own constants by name.
def _encode(v: Any) -> Any:
    if isinstance(v, Ref):
        return {"ref": (v.op, v.out)}
    if isinstance(v, (list, tuple)):
        return {type(v).__name__ if type(v) in (list, tuple) else "list": [_encode(x) for x in v]}
    if isinstance(v, dict):
        return {"dict": {k: _encode(x) for k, x in v.items()}}
    if isinstance(v, Here):
        return {"here": True}
    if isinstance(v, (torch.memory_format, torch.layout)):
        return {"torch": str(v).removeprefix("torch.")}
    if v is None or isinstance(v, (bool, int, float, complex, str, torch.dtype)):
        return v
    raise FormatError(f"an argument of type {type(v).__name__} cannot be saved")


def _decode(v: Any) -> Any:
    if not isinstance(v, dict):
        return v
    ((key, x),) = v.items()
    if key == "ref":
        return Ref(*x)
    if key == "tuple":
        return tuple(_decode(y) for y in x)
    if key == "list":
        return [_decode(y) for y in x]
    if key == "dict":
        return {k: _decode(y) for k, y in x.items()}
    if key == "here":
        return HERE
    if key == "torch":
        found = getattr(torch, x)
        if isinstance(found, (torch.memory_format, torch.layout)):
            return found
        raise FormatError(f"torch.{x} is no layout")
    raise FormatError(f"unknown argument form {key!r}")


def check_kernels(p: Program, kind: str) -> None:
    """Raises FormatError where one of ATen's ops has no kernel for devices of this kind,
    "cpu" or "cuda": the step was captured for another."""
    for o in p.ops:
        if o.role == "call" and o.target.startswith("aten.") and not torch._C._dispatch_has_computed_kernel_for_dispatch_key(target_of(o.target).name(), kind.upper()):
            raise FormatError(
                f"op {o.name} is {o.target}, of which torch {torch.__version__} has no kernel for {kind}: "
                f"capture the step for it, capture(…, device={kind!r}) or placer_torch capture --device {kind}"
            )


def target_of(name: str) -> torch._ops.OpOverload:
    """The overload of this name, as "aten.mm.default"."""
    at: Any = torch.ops
    try:
        for part in name.split("."):
            at = getattr(at, part)
    except AttributeError:
        raise FormatError(f"this torch ({torch.__version__}) has no op {name}") from None
    if not isinstance(at, torch._ops.OpOverload) or name.startswith("aten.from_file."):
        raise FormatError(f"{name} is no op of a step")
    return at
