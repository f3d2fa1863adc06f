"""What tests do under other releases of torch than the one that the package is developed on."""

from __future__ import annotations

from typing import Any, Generator

import pytest
import torch

RELEASE = tuple(int(x) for x in torch.__version__.split(".")[:2])
DEVELOPED = (2, 15)

# torch has no products of groups of rows on CPUs before, and before 2.15 traces those of float32 not.
grouped = pytest.mark.skipif(RELEASE < (2, 9), reason="no grouped_mm on CPUs")
traced_groups = pytest.mark.skipif(RELEASE < DEVELOPED, reason="grouped_mm of float32 is not traced")
products = pytest.mark.skipif(RELEASE < (2, 12), reason="DTensor has not all views")
stages = pytest.mark.skipif(RELEASE < (2, 13), reason="torch.export has not all steps")
developed = pytest.mark.skipif(RELEASE < DEVELOPED, reason="holds what 2.15 does")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, None, None]:
    """A strategy that an older torch is refused for is left out."""
    try:
        return (yield)
    except Exception as e:
        if RELEASE < DEVELOPED and " wants torch " in str(e):
            pytest.skip(str(e))
        raise
