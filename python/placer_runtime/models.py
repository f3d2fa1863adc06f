"""The function that --model names."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Callable

from .errors import FormatError


def find(model: str) -> Callable[..., Any]:
    """Returns the function that PKG.MODULE:FUNCTION names. The module is looked for in the
    current folder too."""
    module, _, function = model.partition(":")
    if not module or not function:
        raise FormatError(f"--model {model}: want PKG.MODULE:FUNCTION")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as e:
        if e.name is None or not (module + ".").startswith(e.name + "."):
            raise FormatError(f"--model {model}: {e}") from None  # what the module imports
        raise FormatError(f"--model {model}: no module {module} in {os.getcwd()} or on PYTHONPATH") from None
    except ImportError as e:
        raise FormatError(f"--model {model}: {e}") from None
    except AttributeError as e:
        raise FormatError(f"--model {model}: {e}; FUNCTION is one that the module defines") from None
    return found
