"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from typing import IO, Any, Callable


def replace_file(path: str, write: Callable[[IO[bytes]], Any]) -> None:
    """Calls write with a file beside path, which then takes path's place."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    fd, part = tempfile.mkstemp(dir=folder, prefix=os.path.basename(path) + ".")
    try:
        with os.fdopen(fd, "wb") as f:
            write(f)
        os.chmod(part, 0o644)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def write_text(path: str, text: str) -> None:
    replace_file(path, lambda f: f.write(text.encode()))
