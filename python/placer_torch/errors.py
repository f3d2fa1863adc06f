"""Errors that a user can act on; the command prints them as one line."""

from placer_runtime.errors import CaptureError, FormatError, NoDeviceError, RunError
from placer_runtime.errors import PlacerError as PlacerTorchError

__all__ = ["CaptureError", "FormatError", "NoDeviceError", "NoMemoryError", "PlacerTorchError", "RunError"]


class NoMemoryError(RunError):
    """A device cannot hold its part of the step."""
