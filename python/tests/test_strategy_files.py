"""Files that placer writes: what a strategy does here beside what it was predicted to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import strategies

pytestmark = [pytest.mark.forks, pytest.mark.skipif("PLACER" not in os.environ, reason="no placer")]

LOSS = 8  # bytes: the mean of the replicas' losses, all-reduced once a step, which no strategy has


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graph")
    subprocess.run([sys.executable, "-m", "placer_torch", "capture", "--model", "strategies:llama", "-o", str(folder)], check=True, capture_output=True, cwd=os.path.dirname(__file__), env={**os.environ, "PYTHONSAFEPATH": ""})
    return folder / "graph.json"


def file(graph: Path, text: str, devices: int) -> Path:
    path = graph.parent / f"{text}.json"
    subprocess.run([os.environ["PLACER"], "strategies", "--graph", str(graph), "--gpu", "a100", "--gpus", str(devices), "--batch", "8", "--strategy", text, "--for", "torch", "-o", str(path)], check=True, capture_output=True)
    return path


# Bytes of a step's collectives, by kind, of what is predicted: the least and the most that is done.
SAME = (1.0, 1.0)
TWO: dict[str, dict[str, tuple[float, float]]] = {
    "ddp=2": {"all_reduce": SAME},
    "zero-1=2": {"all_gather": SAME, "reduce_scatter": SAME},
    "zero-2=2 mb=2": {"all_gather": SAME, "reduce_scatter": SAME},
    # What lies in no layer is gathered once for both passes, and with two micro-batches twice.
    "zero-3=2 mb=2": {"all_gather": (0.9, 1.0), "reduce_scatter": SAME},
    "tp=2": {"all_reduce": SAME},
    # torch computes a layer again up to what its gradients need: not its last sum.
    "tp=2 mb=2 recompute": {"all_reduce": (0.9, 1.0)},
    # Three numbers a token against two, and of the target's score its mean.
    "tp=2 vocab": {"all_reduce": (1.0, 1.02)},
    # The gathered inputs of products are kept for the gradients and not gathered again; the
    # rest of all-reduces are gradients of norms.
    "tp=2 vocab sp": {"all_gather": (0.6, 1.0), "reduce_scatter": SAME, "all_reduce": (1.0, 2.0)},
}


def test_collectives(graph: Path) -> None:
    """A step on two processes does as it was predicted."""
    docs: list[dict[str, Any]] = [json.loads(file(graph, x, 2).read_text()) for x in TWO]
    for text, doc, got in zip(TWO, docs, strategies.run(strategies.llama, docs), strict=True):
        assert got.loss < 1e-8 and got.state < 1e-8, (text, got)
        if doc["data"] > 1:
            got.bytes["all_reduce"] -= LOSS
        want = {k: v["bytes"] for k, v in doc["collectives"].items()}
        seen = {k: v for k, v in got.bytes.items() if v}
        assert want.keys() == seen.keys() == TWO[text].keys(), (text, want, seen)
        for k, (least, most) in TWO[text].items():
            assert least <= seen[k] / want[k] <= most, (text, k, want, seen)


def test_command(graph: Path) -> None:
    """The command starts its processes, says what a step took beside the prediction, and what
    differs from plain torch; one line where the strategy is of another model."""
    path = file(graph, "zero-1=2", 2)

    def distribute(*more: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "placer_torch", "distribute", "--model", "strategies:llama", "--strategy", str(path), "--device", "cpu", *more]
        return subprocess.run(words, capture_output=True, text=True, cwd=os.path.dirname(__file__), env={**os.environ, "PYTHONSAFEPATH": ""})

    done = distribute("--steps", "2", "--check", "--clip-norm", "0.05")
    assert done.returncode == 0, done.stderr
    doc = json.loads(done.stdout)
    assert (doc["strategy"], doc["processes"], doc["backend"], len(doc["loss"])) == ("zero-1=2", 2, "gloo", 2)
    assert len(doc["grad_norm"]) == 2 and min(doc["grad_norm"]) > 0.1
    assert doc["difference"].keys() == {"loss", "state", "grad_norm"} and max(doc["difference"].values()) < 1e-8
    assert doc["predicted_step_s"] == json.loads(path.read_text())["predicted"]["step_s"] and doc["step_s"] > 0
    path.write_text(json.dumps(json.loads(path.read_text()) | {"layers": [["layers.7"]]}))
    done = distribute()
    assert (done.returncode, done.stdout) == (1, "")
    assert [x for x in done.stderr.splitlines() if x.startswith("placer_torch")] == ["placer_torch: layers[0]: the model has no module 'layers.7'; the strategy is of graph llama"]
