"""PyTorch in and out of placer: capture a step, profile it, run a plan, measure it (docs/pytorch.md)."""

import logging
import warnings
from typing import TYPE_CHECKING, Any

# torch says so once where NumPy is not installed; nothing here makes an array of a tensor.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy", category=UserWarning)
# And this of a wheel for CUDA without triton, where nothing here counts the work of such kernels.
logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)

from .auto import Planned, plan
from .capture import capture
from .errors import CaptureError, FormatError, NoDeviceError, PlacerTorchError, RunError
from .loop import Loop, run
from .schedule import Schedule
from .program import Program, load

if TYPE_CHECKING:
    from .parallel import Strategy, Training, distribute

__all__ = ["CaptureError", "FormatError", "Loop", "NoDeviceError", "Planned", "PlacerTorchError", "Program", "RunError", "Schedule", "Strategy", "Training", "capture", "distribute", "load", "plan", "run"]


def __getattr__(name: str) -> Any:
    """Training by a strategy is imported when it is asked for: torch.distributed takes seconds."""
    if name in ("Strategy", "Training", "distribute"):
        from . import parallel

        return getattr(parallel, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
