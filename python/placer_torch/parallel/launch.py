"""One process for each rank of a strategy, on this host."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import tempfile
import time
from typing import IO, Sequence

import torch.distributed as dist


def alone() -> bool:
    """Whether nobody (torchrun) has said which rank this process is."""
    return "RANK" not in os.environ


def launch(argv: Sequence[str], world: int) -> int:
    """Runs python -m placer_torch with these arguments as so many ranks, and returns the exit
    code of the first that fails, else 0. Rank 0's output is this process's; of another what
    it wrote to stderr is shown where it failed first."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=datetime.timedelta(minutes=10))  # type: ignore[attr-defined]
    said: list[IO[str] | None] = [None, *(tempfile.TemporaryFile("w+") for _ in range(1, world))]
    ranks: list[subprocess.Popen[bytes]] = []
    try:
        for k in range(world):
            ranks.append(subprocess.Popen([sys.executable, "-m", "placer_torch", *argv], env=_environment(k, world, store.port), stdout=None if k == 0 else subprocess.DEVNULL, stderr=said[k]))
        failed = _first_failure(ranks)
        if failed is None:
            return 0
        out = said[failed]
        if out is not None:
            out.seek(0)
            sys.stderr.write(out.read())
        return ranks[failed].returncode if ranks[failed].returncode > 0 else 1
    finally:
        for p in ranks:
            if p.poll() is None:
                p.kill()
            p.wait()
        for f in said:
            if f is not None:
                f.close()


def _environment(rank: int, world: int, port: int) -> dict[str, str]:
    """As torchrun's; the store is ours. The processes share the cores."""
    e = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    e.setdefault("OMP_NUM_THREADS", str(max(len(os.sched_getaffinity(0)) // world, 1)))
    e.setdefault("GLOO_SOCKET_IFNAME", "lo")
    return e


def _first_failure(ranks: Sequence[subprocess.Popen[bytes]]) -> int | None:
    """The first rank seen to fail, the least of several; None when all have ended well."""
    while True:
        codes = [p.poll() for p in ranks]
        bad = [k for k, c in enumerate(codes) if c]
        if bad:
            return bad[0]
        if all(c == 0 for c in codes):
            return None
        time.sleep(0.05)
