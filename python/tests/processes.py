"""Processes of a test."""

from __future__ import annotations

import os
from typing import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_process_stays() -> Iterator[None]:
    """Every test ends its workers."""
    yield
    left = children()
    assert not left, f"processes stay: {left}"


def children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as f:
        return [int(x) for x in f.read().split()]
