"""TensorFlow in and out of placer: capture a training step, profile it, run a plan, measure it (docs/tensorflow.md)."""

from placer_runtime.errors import CaptureError, FormatError, NoDeviceError, PlacerError, RunError

__all__ = ["CaptureError", "FormatError", "NoDeviceError", "PlacerError", "RunError"]
