"""Order of tests: autograd does not run in a process forked from one in which a step was captured."""

from __future__ import annotations

from typing import Any


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Tests marked `forks`, whose processes compute gradients, come first."""
    items.sort(key=lambda item: item.get_closest_marker("forks") is None)
