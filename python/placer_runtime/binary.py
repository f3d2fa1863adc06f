"""The placer program: found, asked for a graph's hash, for a search and for a schedule."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sysconfig

from .errors import PlacerError


MOST_DEVICES = 64  # of a machine


class BinaryError(PlacerError):
    """placer is not there, or it failed."""


def find() -> str:
    """$PLACER, else what the wheel put beside this Python, else placer on the PATH."""
    given = os.environ.get("PLACER")
    path = shutil.which(given) if given else shutil.which("placer", path=sysconfig.get_path("scripts")) or shutil.which("placer")
    if path is None:
        raise BinaryError(f"$PLACER is {given}, which is no program" if given else "no placer beside this Python or on the PATH: install its wheel, or build it with `go build -o placer ./cmd/placer` and set PLACER to it")
    return path


def run(*args: str) -> str:
    """Runs placer and returns what it printed. Raises BinaryError with its last line."""
    path = find()
    done = subprocess.run([path, *args], capture_output=True, text=True)
    if done.returncode != 0:
        lines = [x for x in (done.stderr or done.stdout).splitlines() if x.strip()]
        raise BinaryError(f"placer {args[0]}: {lines[-1] if lines else f'exit status {done.returncode}'}")
    return done.stdout


def graph_hash(graph: str) -> str:
    return str(json.loads(run("import", "--graph", graph, "--json"))["hash"])


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What a search reads: files, and whether CPUs are devices to place ops on."""

    graph: str
    machine: str
    times: str | None  # None: the roofline's
    cpu: bool

    def flags(self) -> list[str]:
        return ["--graph", self.graph, "--machine", self.machine, *(["--times", self.times] if self.times else []), *(["--cpu"] if self.cpu else [])]


def search(inputs: Inputs, out: str, *, budget: str | None, evaluations: int | None) -> None:
    """Writes the best plan to out."""
    bound = ["--evaluations", str(evaluations)] if evaluations else ["--budget", budget or "20s"]
    # fusion is decided where kernels are compiled; these run op by op
    tasks = ["--tasks", "place,schedule"]
    run("search", *inputs.flags(), *bound, *tasks, "--out", os.path.join(os.path.dirname(out), "run"), "-o", out, "-q")


def schedule(inputs: Inputs, plan: str, out: str) -> None:
    """Writes the plan's schedule, with the predicted step, to out."""
    run("export", *inputs.flags(), "--plan", plan, "--as", "schedule", "-o", out)
