"""What torch is set to while a step is traced."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import Callable, Iterator

import torch


@contextlib.contextmanager
def without_onednn() -> Iterator[None]:
    was = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(was)


def without_nnpack() -> contextlib.AbstractContextManager[None]:
    """Convolutions of the CPU keep the order of their dimensions in memory whatever the batch:
    NNPACK, which torch takes from 16 samples on where oneDNN is off, would change it."""
    off: contextlib.AbstractContextManager[None] = torch.backends.nnpack.flags(enabled=False)
    return off


@contextlib.contextmanager
def without_fast_path() -> Iterator[None]:
    """Transformer layers of torch as ops that can be cut and traced: in inference they are
    one op each."""
    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was)


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Model code that asks torch.compiler whether it is traced hears that it is, as
    under torch.export; HuggingFace's masks then leave out checks of values."""
    flags = [k for k in ("_is_compiling_flag", "_is_exporting_flag") if hasattr(torch.compiler, k)]
    was = {k: getattr(torch.compiler, k) for k in flags}
    try:
        for k in flags:
            setattr(torch.compiler, k, True)
        yield
    finally:
        for k, v in was.items():
            setattr(torch.compiler, k, v)


@contextlib.contextmanager
def without_compiling() -> Iterator[None]:
    """Parts that torch.compile wraps are traced as they are. Newer torch does so where it exports."""
    dynamo = sys.modules.get("torch._dynamo")  # takes seconds to import, and is there if a part is wrapped
    if dynamo is None:
        yield
        return
    was = dynamo.config.error_on_nested_fx_trace
    dynamo.config.error_on_nested_fx_trace = False
    try:
        yield
    finally:
        dynamo.config.error_on_nested_fx_trace = was


@contextlib.contextmanager
def seeds(of: Callable[[], int]) -> Iterator[None]:
    """torch.seed() is of(): another in each step, as torch's own, without numbers of the host."""
    was = torch.seed, torch.random.seed
    torch.seed = torch.random.seed = of
    try:
        yield
    finally:
        torch.seed, torch.random.seed = was


@contextlib.contextmanager
def without_logs() -> Iterator[None]:
    """torch logs a stack for ops that refuse their operands, which the error then says in a line."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    was = log.disabled
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = was
