"""Files of bounded size, read expanded where gzip has compressed them, and files written whole
or not at all."""

from __future__ import annotations

import gzip
import io
import json
import os
import tempfile
import zlib
from typing import IO, Any, Callable

_FREE, _EXPANSION = 64 << 20, 200
"""A file expands to at most _EXPANSION times its size beyond _FREE bytes, as in the program
(internal/fsx)."""


def read_json(path: str) -> Any:
    """The document of a file. OSError: it cannot be read; ValueError: it is none."""
    with open(path, "rb") as f:
        data = f.read()
    if data.startswith(b"\x1f\x8b\x08"):
        data = _expanded(data)
    return json.loads(data.decode())


def _expanded(data: bytes) -> bytes:
    most = _FREE + _EXPANSION * len(data)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as z:
            out = z.read(most + 1)
    except (EOFError, OSError, zlib.error) as e:
        raise ValueError(f"gzip: {e}") from None
    if len(out) > most:
        raise ValueError(f"{len(data)} bytes expand to more than {most}")
    return out


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
