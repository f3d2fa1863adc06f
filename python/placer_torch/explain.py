"""A failed trace in words."""

from __future__ import annotations

from . import modules, where as places
from .errors import CaptureError


def explain(e: Exception, paths: modules.Paths) -> CaptureError:
    """e as an error that names op, module and line of the model's code and gives a hint."""
    module, op = paths.last
    what = type(e).__name__
    at = places.where(e)
    hint = ""
    if what in ("DataDependentOutputException", "GuardOnDataDependentSymNode"):
        op = str(getattr(e, "func", op))
        hint = "the code takes a number out of a tensor (item(), int(), bool(), if or while on a tensor); use torch.where, or keep the number in a tensor, torch.tensor(x) in the batch"
    elif "FunctionalTensor.__format__" in str(e):
        op, e = "", TypeError("a tensor is formatted as a number")
        hint = "the code takes a number out of it, as f\"{loss:.3f}\" does; print it behind the step"
    elif "fabric.backward" in str(e):
        op = ""
        hint = "the model is wrapped by Lightning's Fabric, whose precision a captured step does not have: give the model within, model.module, and put autocast into the loss"
    elif what == "DynamicOutputShapeException":
        op = str(getattr(e, "func", op))
        hint = "the result's shape depends on values (nonzero, unique, a boolean index); use a mask, topk with a fixed k, or a fixed capacity"
    elif what == "UnsupportedOperatorException":
        op = str(getattr(e, "func", op))
        hint = "the op has no implementation without data; register one with torch.library.register_fake"
    elif "EffectType" in str(e):
        hint = "the code looks at what torch.linalg returns, on the host, to raise an error; take the form that does not, as torch.linalg.cholesky_ex, inv_ex and solve_ex"
    elif "non-functional tensor" in str(e):
        hint = "the code changes a tensor that is neither a parameter nor a buffer of the model: register it, register_buffer, or make a new tensor in each step"
    where = f"module {module}" if module else "the model"
    first = str(e).strip().splitlines()[0] if str(e).strip() else what
    if not hint and what not in first:
        first = f"{what}: {first}"
    return CaptureError(f"cannot trace {_named(op)} in {where}{f' ({at})' if at else ''}: {first}" + (f"; {hint}" if hint else ""))


def _named(op: str) -> str:
    return f"op {op}" if op else "the step"
