import os
import sys

import torch

sys.path.insert(0, os.path.dirname(__file__))
from forks import pytest_collection_modifyitems  # noqa: E402, F401
from processes import no_process_stays  # noqa: E402, F401
from releases import pytest_runtest_call  # noqa: E402, F401

torch.set_num_threads(1)
