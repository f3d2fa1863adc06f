"""What the command distribute says of a model whose code fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = """
import datetime, os, signal, time, torch, torch.nn.utils.prune
import torch.distributed.distributed_c10d as dist
from torch.nn.functional import mse_loss

def make(loss=lambda m, b: mse_loss(m(b), b)):
    m = torch.nn.Linear(4, 4)
    return m, loss, torch.ones(4, 4), torch.optim.SGD(m.parameters(), lr=0.1)

def fails():
    return {}["weights"]

def second_fails():
    if os.environ["RANK"] == "1":
        raise ValueError("no data")
    return make()

def second_ends():
    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return make()

def second_in_a_step(how):
    steps = [0]

    def loss(m, b):
        steps[0] += 1
        if os.environ["RANK"] == "1" and steps[0] == 7:  # the first step asks for five more
            how()
        return mse_loss(m(b), b)

    return make(loss)

def second_raises():
    return second_in_a_step(lambda: {}["sample"])

def second_exits():
    return second_in_a_step(lambda: os._exit(7))

def second_ends_early():
    return second_in_a_step(lambda: os._exit(0))

def second_hangs():
    made, steps = make(), [0]

    def loss(m, b):
        steps[0] += 1
        if steps[0] == 7:
            dist._set_pg_timeout(datetime.timedelta(seconds=2), None)
            for group in list(dist._world.pg_map):
                dist._set_pg_timeout(datetime.timedelta(seconds=2), group)
            time.sleep(600 if os.environ["RANK"] == "1" else 0)
        return mse_loss(m(b), b)

    return made[0], loss, *made[2:]

def pruned():
    made = make()
    torch.nn.utils.prune.random_unstructured(made[0], "weight", 0.5)
    return made

def loss_fails():
    return make(lambda m, b: m(b)[9].sum())
"""
STRATEGY = {"format": "placer strategy 1", "strategy": "ddp=2", "batch": 4, "data": 2, "sharding": "ddp"}


def test_too_many_processes(tmp_path: Path) -> None:
    """Said before any is started."""
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "strategy.json").write_text(json.dumps({**STRATEGY, "strategy": "ddp=4096", "batch": 4096, "data": 4096}))
    words = [sys.executable, "-m", "placer_torch", "distribute", "--model", "mine:make", "--strategy", "strategy.json", "--device", "cpu"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 4 and "ddp=4096 is of 4096 processes, and this host has" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "function, said",
    [
        ("fails", "placer_torch: --model mine:fails: mine.py:11: KeyError: 'weights'"),
        ("second_fails", "placer_torch: --model mine:second_fails: mine.py:15: no data"),
        ("second_ends", "placer_torch: the process of rank 1 was ended by signal 9"),
        ("loss_fails", "placer_torch: step 1: mine.py:63: IndexError: index 9 is out of bounds for dimension 0 with size 2"),
    ],
)
def test_one_line(tmp_path: Path, function: str, said: str) -> None:
    """Beside what gloo of torch 2.8 has to say."""
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "strategy.json").write_text(json.dumps(STRATEGY))
    words = [sys.executable, "-m", "placer_torch", "distribute", "--model", f"mine:{function}", "--strategy", "strategy.json", "--device", "cpu"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, [x for x in done.stderr.splitlines() if not x.startswith("[Gloo] Rank")]) == (1, "", [said])


@pytest.mark.parametrize(
    "function, code, said",
    [
        ("second_raises", 1, "placer_torch: step 2: mine.py:35: KeyError: 'sample'"),
        ("second_exits", 7, "placer_torch: the process of rank 1 ended with exit code 7, without a word"),
        ("second_ends_early", 1, "placer_torch: the process of rank 1 ended with exit code 0 before the steps were over"),
    ],
)
def test_one_process_of_a_step(tmp_path: Path, function: str, code: int, said: str) -> None:
    """The others say that it has ended, and what it said itself is the last."""
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "strategy.json").write_text(json.dumps(STRATEGY))
    words = [sys.executable, "-m", "placer_torch", "distribute", "--model", f"mine:{function}", "--strategy", "strategy.json", "--device", "cpu"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    lines = [x for x in done.stderr.splitlines() if not x.startswith("[Gloo] Rank")]
    assert lines == ["placer_torch: step 2: another process has ended", said] and done.returncode in (1, code)


def test_a_process_that_hangs(tmp_path: Path) -> None:
    """The others wait for it as long as their groups do, ten minutes where nothing else is said, and it
    is named."""
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "strategy.json").write_text(json.dumps(STRATEGY))
    words = [sys.executable, "-W", "ignore", "-m", "placer_torch", "distribute", "--model", "mine:second_hangs", "--strategy", "strategy.json", "--device", "cpu"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    lines = [x for x in done.stderr.splitlines() if x.startswith("placer_torch: ")]
    assert lines == ["placer_torch: step 2: another process has not answered in 2 s: it hangs, or has far more to do", "placer_torch: the process of rank 1 was still running, and was ended"] and done.returncode == 1


def test_a_model_that_cannot_be_copied(tmp_path: Path) -> None:
    """A pruned layer keeps the product of weights and mask."""
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "strategy.json").write_text(json.dumps({**STRATEGY, "strategy": "ddp=1", "data": 1}))
    words = [sys.executable, "-m", "placer_torch", "distribute", "--model", "mine:pruned", "--strategy", "strategy.json", "--device", "cpu", "--check"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert max(json.loads(done.stdout)["difference"].values()) < 1e-6
