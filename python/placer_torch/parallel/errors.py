"""What a strategy cannot be applied to."""

from ..errors import PlacerTorchError


class StrategyError(PlacerTorchError):
    """A model, optimizer or loss that a strategy cannot be applied to: names the module."""


class StrategyWarning(UserWarning):
    """A strategy trains, and otherwise than the whole batch would."""
