"""Errors that a user can act on; a command prints them as one line."""


class PlacerError(Exception):
    """The base of the packages' errors; `exit_code` is the command's."""

    exit_code = 1


class CaptureError(PlacerError):
    """A model that cannot be captured: names the op and a way out."""


class FormatError(PlacerError):
    """A file that is not what it should be: names file, place and reason."""


class RunError(PlacerError):
    """A step that failed on a device: names device, op and reason."""


class NoDeviceError(PlacerError):
    """The devices that were asked for are not there."""

    exit_code = 4
