"""Training by a strategy of placer's, on several processes: torch's own parts put together
as a file of `placer strategies` says (docs/distribute.md)."""

from .distribute import distribute
from .strategy import Strategy, read
from .training import Training

__all__ = ["Strategy", "Training", "distribute", "read"]
