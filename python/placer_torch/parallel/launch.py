"""One process for each rank of a strategy, on this host."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, Sequence

import torch.distributed as dist

SILENT = "another process has not answered"  # what a rank says that waits for one that hangs
GRACE = 5.0  # seconds in which ranks that fail for one reason have all said it


def alone() -> bool:
    """Whether nobody (torchrun) has said which rank this process is."""
    return "RANK" not in os.environ


def launch(argv: Sequence[str], world: int) -> int:
    """Runs python -m placer_torch with these arguments as so many ranks, and returns the exit
    code of the first that fails, else 0. Rank 0's output is this process's; of others that
    failed, the lines of their stderr are shown that no one before has written."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=datetime.timedelta(minutes=10))  # type: ignore[attr-defined]
    said = [tempfile.TemporaryFile("w+", errors="replace") for _ in range(world)]
    ranks: list[subprocess.Popen[bytes]] = []
    try:
        for k in range(world):
            ranks.append(subprocess.Popen([sys.executable, "-m", "placer_torch", *argv], env=_environment(k, world, store.port), stdout=None if k == 0 else subprocess.DEVNULL, stderr=subprocess.PIPE if k == 0 else said[k]))
        shown = threading.Thread(target=_show, args=(ranks[0].stderr, said[0]), daemon=True)
        shown.start()
        failed = _first_failure(ranks)
        if failed is None:
            shown.join(GRACE)  # what rank 0 has started may hold its stderr open
            return 0
        ended = _end(ranks)
        shown.join(GRACE)
        lines = _lines(said[0])
        for k in (k for k, p in enumerate(ranks) if p.returncode and k not in ended):
            own, code = _lines(said[k]), ranks[k].returncode
            new = [] if k == 0 else [line for line in own if line not in lines and (k == failed or line.startswith("placer_torch: "))]
            sys.stderr.writelines(new)
            lines += new
            if code < 0:
                print(f"placer_torch: the process of rank {k} was ended by signal {-code}", file=sys.stderr)
            elif not own:
                print(f"placer_torch: the process of rank {k} ended with exit code {code}, without a word", file=sys.stderr)
        early = [k for k, p in enumerate(ranks) if p.returncode == 0]
        if early:
            print(f"placer_torch: {_of_ranks(early)} ended with exit code 0 before the steps were over", file=sys.stderr)
        if ended and any(SILENT in line for line in lines):
            print(f"placer_torch: {_of_ranks(sorted(ended))} was still running, and was ended", file=sys.stderr)
        return max(ranks[failed].returncode, 0) or 1
    finally:
        _end(ranks)
        for f in said:
            f.close()


def _of_ranks(ranks: Sequence[int]) -> str:
    return f"the process of rank {ranks[0]}" if len(ranks) == 1 else f"each of the processes of ranks {', '.join(map(str, ranks))}"


def _show(stream: IO[bytes], said: IO[str]) -> None:
    """Hands on what rank 0 writes, and keeps it."""
    for line in stream:
        text = line.decode(errors="replace")
        sys.stderr.write(text)
        sys.stderr.flush()
        said.write(text)


def _lines(said: IO[str]) -> list[str]:
    said.seek(0)
    return said.readlines()


def _end(ranks: Sequence[subprocess.Popen[bytes]]) -> set[int]:
    """Ends those that run, but for those that are about to end by themselves. Returns which it ended."""
    deadline, ended = time.monotonic() + GRACE, set()
    for k, p in enumerate(ranks):
        try:
            p.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            p.kill()
            ended.add(k)
        p.wait()
    return ended


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
