"""Where in a user's code an error comes from."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Sequence

from .errors import PlacerTorchError


def where(e: BaseException) -> str:
    """`file.py:12` of the innermost frame of e outside of torch, Python's library and
    this package; "" where there is none."""
    return _innermost(traceback.extract_tb(e.__traceback__))


def here() -> str:
    """The same of the code that runs."""
    return _innermost(traceback.extract_stack())


def _innermost(frames: Sequence[traceback.FrameSummary]) -> str:
    ours = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep + p for p in ("placer_torch", "placer_runtime")]
    stdlib = os.path.dirname(os.__file__)
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    skipped = [d + os.sep for d in (*ours, *([os.path.dirname(torch)] if torch else []))]
    for frame in reversed(frames):
        file = os.path.abspath(frame.filename)
        library = file.startswith(stdlib + os.sep) and "-packages" not in file
        if not frame.filename.startswith("<") and not library and not any(file.startswith(d) for d in skipped):
            return f"{_short(file)}:{frame.lineno}"
    return ""


def cause(e: BaseException) -> BaseException:
    """The first of the errors that e was raised from, as of a stage that a schedule of torch ran:
    one of this package's own where it is among them, else the first that comes from a user's code."""
    chain = [e]
    while chain[-1].__cause__ is not None and not isinstance(chain[-1], PlacerTorchError):
        chain.append(chain[-1].__cause__)
    last = chain[-1]
    return last if isinstance(last, PlacerTorchError) else next((x for x in reversed(chain) if where(x)), last)


def first_line(e: BaseException) -> str:
    """The first line of what e says, its type where it says nothing."""
    return next((line for line in str(e).splitlines() if line.strip()), type(e).__name__)


def _short(file: str) -> str:
    here = os.getcwd() + os.sep
    return file[len(here) :] if file.startswith(here) else file
