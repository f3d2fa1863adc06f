"""PyTorch in and out of placer: capture a step, profile it, run a plan, measure it (docs/pytorch.md)."""

import warnings

# torch says so once where NumPy is not installed; nothing here makes an array of a tensor.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy", category=UserWarning)

from .auto import Planned, plan
from .capture import capture
from .errors import CaptureError, FormatError, NoDeviceError, PlacerTorchError, RunError
from .loop import Loop, run
from .schedule import Schedule
from .program import Program, load

__all__ = ["CaptureError", "FormatError", "Loop", "NoDeviceError", "Planned", "PlacerTorchError", "Program", "RunError", "Schedule", "capture", "load", "plan", "run"]
