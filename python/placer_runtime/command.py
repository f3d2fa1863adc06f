"""What the packages' commands have in common."""

from __future__ import annotations

import argparse
import sys
from typing import Sequence

from .errors import PlacerError


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Runs the function `run` of the command that argv names; returns its exit code. An
    error is one line, which begins with the package's name."""
    args = parser.parse_args(argv)
    package = parser.prog.rpartition(" ")[2]
    try:
        code: int = args.run(args)
        return code
    except PlacerError as e:
        print(f"{package}: {e}", file=sys.stderr)
        return e.exit_code
    except OSError as e:
        print(f"{package}: {e.filename or ''}: {e.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
