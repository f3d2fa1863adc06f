from forks import pytest_collection_modifyitems  # noqa: F401
