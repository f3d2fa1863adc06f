"""Memory that forked processes share. It is anonymous: nothing of it outlives the processes."""

from __future__ import annotations

import mmap
from typing import Any, Literal

import torch

from .program import Spec

_ALIGN = 64


class Arena:
    """One mapping from which tensors are cut. Sizes are announced before it is made."""

    def __init__(self) -> None:
        self._size = 0
        self._map: mmap.mmap | None = None

    def reserve(self, bytes: int) -> int:
        """Announces bytes; returns where they will begin."""
        at = self._size
        self._size += (bytes + _ALIGN - 1) // _ALIGN * _ALIGN
        return at

    def reserve_tensor(self, s: Spec) -> int:
        return self.reserve(max(1, s.extent) * s.dtype.itemsize)

    def make(self) -> None:
        self._map = mmap.mmap(-1, max(self._size, mmap.PAGESIZE))

    def tensor(self, at: int, s: Spec) -> torch.Tensor:
        """A tensor of this spec at a reserved place, gaps between its elements included."""
        assert self._map is not None
        extent = max(1, s.extent)
        flat = torch.frombuffer(self._map, dtype=s.dtype, count=extent, offset=at)
        return flat.as_strided(s.shape, s.stride)

    def numbers(self, at: int, count: int, form: Literal["q", "d"]) -> Any:
        """count numbers of 8 bytes, form "q" (integers) or "d" (floats)."""
        assert self._map is not None
        return memoryview(self._map)[at : at + 8 * count].cast(form)

    def text(self, at: int, bytes: int) -> memoryview:
        assert self._map is not None
        return memoryview(self._map)[at : at + bytes]


def like(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy of x on device with x's strides; an expanded dimension stays one."""
    small = compact(x)
    extent = Spec(tuple(x.shape), tuple(x.stride()), x.dtype).extent
    memory = torch.empty(extent, dtype=x.dtype, device=device)
    memory.as_strided(small.shape, small.stride()).copy_(small, non_blocking=True)
    return memory.as_strided(x.shape, x.stride())


def compact(t: torch.Tensor) -> torch.Tensor:
    """t with each expanded dimension (stride 0) cut to one element: what has to be copied."""
    for k, (n, s) in enumerate(zip(t.shape, t.stride())):
        if s == 0 and n > 1:
            t = t.narrow(k, 0, 1)
    return t
