"""The figures by which predictions are judged."""

from __future__ import annotations

import pytest
import replay


def test_kendall() -> None:
    """Six pairs: four agree, one is tied in x, one in y alone: 4 / sqrt(5 * 5)."""
    assert replay.kendall([1, 1, 2, 3], [1, 2, 3, 3]) == pytest.approx(4 / 5)
    assert replay.kendall([1, 2, 3], [3, 2, 1]) == -1 and replay.kendall([1, 2, 3], [1, 2, 3]) == 1
