"""Errors that a user can act on; the command prints them as one line."""


class PlacerTorchError(Exception):
    """The base of the package's errors; `exit_code` is the command's."""

    exit_code = 1


class CaptureError(PlacerTorchError):
    """A model that cannot be traced: names the op, its module and a way out."""


class FormatError(PlacerTorchError):
    """A file that is not what it should be: names file, place and reason."""


class RunError(PlacerTorchError):
    """A step that failed on a device: names device, op and reason."""


class NoDeviceError(PlacerTorchError):
    """The devices that were asked for are not there."""

    exit_code = 4
