import torch
from forks import pytest_collection_modifyitems  # noqa: F401
from processes import no_process_stays  # noqa: F401

torch.set_num_threads(1)
