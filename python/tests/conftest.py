import os
import sys

import pytest
import torch

sys.path.insert(0, os.path.dirname(__file__))
from forks import pytest_collection_modifyitems  # noqa: E402, F401
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def no_process_stays():
    """Every test ends its workers."""
    yield
    left = children()
    assert not left, f"processes stay: {left}"


def children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as f:
        return [int(x) for x in f.read().split()]
