"""What a captured step cannot hold, each refused with a way out."""

from __future__ import annotations

import contextlib
import copy
import pickle
import random
import sys
from collections.abc import Mapping
from typing import Any, Callable, Iterator

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .errors import CaptureError
from .program import Spec
from .shared import compact


def plain(what: str, t: torch.Tensor) -> None:
    """Raises CaptureError unless t is a tensor of shape, strides and type alone."""
    if is_lazy(t):
        raise CaptureError(f"{what} has no shape yet: run the model once on a batch, then capture")
    if t.layout is not torch.strided or t.is_nested:
        raise CaptureError(f"{what} is a {'nested tensor' if t.is_nested else f'tensor of layout {t.layout}'}: a captured step has dense tensors alone, t.to_dense() or padded")
    if is_traceable_wrapper_subclass(t) or t.is_quantized:
        raise CaptureError(f"{what} is {'quantized' if t.is_quantized else f'a {type(t).__name__}'}, which a captured step does not have: capture the model before it is quantized or distributed")


def state(params: Mapping[str, torch.Tensor], buffers: Mapping[str, torch.Tensor]) -> None:
    for role, of in (("parameter", params), ("buffer", buffers)):
        for k, t in of.items():
            plain(f"{role} {k}", t)
            if getattr(t, "_post_accumulate_grad_hooks", None):
                raise CaptureError(f"parameter {k} has a hook of its accumulated gradient (register_post_accumulate_grad_hook), which a captured step does not run: use register_hook, which is captured, or remove it")


def shared(of: dict[str, torch.Tensor]) -> Iterator[tuple[str, str]]:
    """Pairs of tensors, by name, that have memory in common."""
    spans = []
    for k, t in of.items():
        if not t.is_meta and not isinstance(t, FakeTensor) and t.numel():
            extent = Spec(tuple(t.shape), tuple(t.stride()), t.dtype).extent
            spans.append((t.data_ptr(), t.data_ptr() + extent * t.element_size(), k))
    far, last = 0, ""  # the farthest end so far, and whose it is
    for begin, end, k in sorted(spans):
        if begin < far and _meet(of[last], of[k]):
            yield last, k
        if end > far:
            far, last = end, k


def _meet(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors whose spans of memory overlap have an element in common: columns
    of one matrix have none."""
    if a.device != b.device:
        return False
    if a.dtype.itemsize != b.dtype.itemsize or a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return True
    first = min(a.storage_offset(), b.storage_offset())
    taken = torch.zeros(max(t.storage_offset() - first + Spec(tuple(t.shape), tuple(t.stride()), t.dtype).extent for t in (a, b)), dtype=torch.bool)
    here, there = (taken.as_strided(t.shape, t.stride(), t.storage_offset() - first) for t in (a, b))
    compact(here).fill_(True)
    return bool(there.any())


_MUTATED: Any = getattr(torch, "_functionalize_has_data_mutation")


def written(t: torch.Tensor) -> bool:
    """Whether the code that is traced has changed t, which it was given."""
    return isinstance(t, FunctionalTensor) and bool(_MUTATED(t.elem))


def reentrant(loss: torch.Tensor) -> None:
    """Raises CaptureError where a reentrant checkpoint made loss: it gives the gradients of
    its parameters to .backward() alone."""
    left, seen = [loss.grad_fn], set()
    while left:
        n = left.pop()
        if n is not None and n not in seen:
            seen.add(n)
            if n.name() == "CheckpointFunctionBackward":
                raise CaptureError("the model has a reentrant checkpoint, whose gradients a captured step does not see: checkpoint(…, use_reentrant=False)")
            left += [f for f, _ in n.next_functions]


_SET_DATA: Any = getattr(torch.Tensor.data, "__set__")


class NoAssignedData(TorchFunctionMode):
    """Refuses `t.data = x` of a traced tensor, which the trace does not see."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func == _SET_DATA and isinstance(args[0], FunctionalTensor):
            raise CaptureError("the code assigns to a tensor's .data, which a captured step does not see: change a buffer in place, under torch.no_grad(), and parameters between the steps")
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def no_loss_scaling() -> Iterator[None]:
    """Refuses torch.amp.GradScaler in the loss: it divides the gradients again, and skips
    steps, between backward and update, which no step here does, and it would keep a
    tensor of a trace."""

    def scale(*_: Any) -> Any:
        raise CaptureError("the loss is scaled by a GradScaler, whose other half, between backward and update, the step does not have: leave it out; autocast to bfloat16 needs none")

    was = torch.amp.GradScaler.scale
    torch.amp.GradScaler.scale = scale  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        torch.amp.GradScaler.scale = was  # type: ignore[method-assign]


def _state(g: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """How the state of a generator is read and put back."""
    if hasattr(g, "bit_generator"):  # numpy.random.Generator
        return lambda: copy.deepcopy(g.bit_generator.state), lambda s: setattr(g.bit_generator, "state", s)
    return (g.getstate, g.setstate) if hasattr(g, "getstate") else (g.get_state, g.set_state)


@contextlib.contextmanager
def no_other_randomness(own: Mapping[str, Any] = {}) -> Iterator[None]:
    """Raises CaptureError where Python's or NumPy's random numbers were drawn, which would
    be the same in every step; they are put back. own: generators of the model's, by path."""
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    sources: dict[str, Any] = {"random": (random.getstate, random.setstate)}
    if numpy is not None:
        sources["numpy.random"] = (numpy.get_state, numpy.set_state)
    sources.update((f"attribute {path}", _state(g)) for path, g in own.items() if not isinstance(g, random.SystemRandom))
    before = {k: get() for k, (get, _) in sources.items()}
    try:
        yield
        drawn = [k for k, (get, _) in sources.items() if pickle.dumps(get()) != pickle.dumps(before[k])]
    finally:
        for k, (_, put) in sources.items():
            put(before[k])
    if drawn:
        raise CaptureError(f"the code draws from {drawn[0]}, whose numbers would be the same in every step: draw from torch, as torch.rand")
