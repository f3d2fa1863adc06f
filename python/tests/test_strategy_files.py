"""Files that placer writes: what a strategy does here beside what it was predicted to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

import kernels
import mixtures
import models
import releases
import strategies

pytestmark = [pytest.mark.forks, pytest.mark.skipif("PLACER" not in os.environ, reason="no placer")]

LOSS = 8  # bytes: the mean of the replicas' losses, all-reduced once a step, which no strategy has
OF_TOKENS = 16  # a micro-batch's loss and number of tokens, which replicas that share these out add up


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return captured(tmp_path_factory, "llama")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return captured(tmp_path_factory, "encoder")


def captured(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    folder = tmp_path_factory.mktemp("graph")
    subprocess.run([sys.executable, "-m", "placer_torch", "capture", "--model", model if ":" in model else f"strategies:{model}", "-o", str(folder)], check=True, capture_output=True, cwd=os.path.dirname(__file__), env={**os.environ, "PYTHONSAFEPATH": ""})
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
    # Three numbers a token, as long as the model's, against two of f32, and of the target's score
    # its mean.
    "tp=2 vocab": {"all_reduce": (1.0, 1.02)},
    # The gathered inputs of products are kept for the gradients and not gathered again; what is
    # all-reduced are gradients of norms and those numbers of the loss, few of either.
    "tp=2 vocab sp": {"all_gather": (0.6, 1.0), "reduce_scatter": SAME, "all_reduce": (1.0, 2.0)},
    # torch runs an output layer that is whole by rows as well, and gathers its scores, where the
    # prediction gathers what it reads: its weight's gradient and the embedding's are of rows, and reduced.
    "tp=2 sp": {"all_gather": SAME, "reduce_scatter": (0.8, 1.0), "all_reduce": (1.0, 20.0)},
}
# A rank has half of a table of embeddings, of its gradient and of what its replicas reduce.
FOUR = {"zero-1=2 tp=2 vocab": {"all_gather": SAME, "reduce_scatter": SAME, "all_reduce": (1.0, 1.05)}}
# Norms are behind sums: what goes around a block is also what the block reads.
ENCODER: dict[str, dict[str, tuple[float, float]]] = {
    "tp=2": {"all_reduce": SAME},
    "tp=2 vocab": {"all_reduce": (1.0, 1.02)},
    # And of biases that are added behind the scattering, which the prediction has of all rows.
    "tp=2 vocab sp": {"all_gather": (0.6, 1.0), "reduce_scatter": SAME, "all_reduce": (1.0, 2.0)},
}


# Inputs of products are cast before they are gathered, and gradients of them added up as cast.
MIXED: dict[str, dict[str, tuple[float, float]]] = {
    "tp=2": {"all_reduce": SAME},
    "tp=2 vocab sp": {"all_gather": (0.6, 1.0), "reduce_scatter": SAME, "all_reduce": (1.0, 2.0)},
}


def compare(graph: Path, make: Callable[[], models.Example], cases: dict[str, dict[str, tuple[float, float]]], devices: int, within: float = 1e-8) -> None:
    """A step on so many processes does as it was predicted."""
    docs: list[dict[str, Any]] = [json.loads(file(graph, x, devices).read_text()) for x in cases]
    for text, doc, got in zip(cases, docs, strategies.run(make, docs), strict=True):
        assert got.loss < within and got.state < within, (text, got)
        if doc["data"] > 1:
            got.bytes["all_reduce"] -= LOSS + (OF_TOKENS * doc["micro_batches"] if "context" in doc else 0)
        want = {k: v["bytes"] for k, v in doc["collectives"].items()}
        seen = {k: v for k, v in got.bytes.items() if v}
        assert want.keys() == seen.keys() == cases[text].keys(), (text, want, seen)
        for k, (least, most) in cases[text].items():
            assert least <= seen[k] / want[k] <= most, (text, k, want, seen)


@releases.developed
def test_collectives(graph: Path) -> None:
    compare(graph, strategies.llama, TWO, 2)


def test_collectives_of_parts(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Queries, keys and values by one layer are cut part by part: nothing is gathered to take them apart."""
    of: dict[str, dict[str, tuple[float, float]]] = {"tp=2": {"all_reduce": SAME}, "tp=2 mb=2": {"all_reduce": SAME}}
    compare(captured(tmp_path_factory, "gpt2"), strategies.gpt2, of, 2)


def test_collectives_of_replicas(graph: Path) -> None:
    compare(graph, strategies.llama, FOUR, 4)


def test_collectives_behind_norms(encoder: Path) -> None:
    compare(encoder, strategies.encoder, ENCODER, 2)


def test_collectives_under_autocast(tmp_path_factory: pytest.TempPathFactory) -> None:
    compare(captured(tmp_path_factory, "mixed"), strategies.mixed, MIXED, 2, within=0.02)


@releases.developed
def test_collectives_of_tokens(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keys and values are gathered for each pass, and their gradients scattered. torch gathers the labels
    too, and what the gradients of positions are added up from. What a layer gathers when it is computed
    again it keeps for its gradients, for which the prediction gathers it anew."""
    of: dict[str, dict[str, tuple[float, float]]] = {
        "ddp=2 cp": {"all_reduce": SAME, "all_gather": (1.0, 1.1), "reduce_scatter": SAME},
        "ddp=2 cp mb=2 recompute": {"all_reduce": SAME, "all_gather": (0.7, 0.8), "reduce_scatter": SAME},
        "zero-1=2 cp mb=2": {"all_gather": (1.0, 1.1), "reduce_scatter": SAME},
        "zero-3=2 cp": {"all_gather": (0.9, 1.1), "reduce_scatter": SAME},
    }
    compare(captured(tmp_path_factory, "kernels:decoder"), kernels.decoder, of, 2)


@releases.traced_groups
def test_collectives_of_experts(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Rows go to their experts, results back, and gradients of both. Where a router chooses, more or
    fewer come back to be sent than even rows would be."""

    def of(rows: tuple[float, float]) -> dict[str, dict[str, tuple[float, float]]]:
        return {
            "ddp=2 ep": {"all_reduce": SAME, "all_to_all": rows},
            "zero-2=2 ep mb=2": {"all_gather": SAME, "reduce_scatter": SAME, "all_to_all": rows},
            "zero-1=2 ep recompute": {"all_gather": SAME, "reduce_scatter": SAME, "all_to_all": rows},
        }

    uneven = (0.8, 1.2)
    compare(captured(tmp_path_factory, "mixtures:blocks"), mixtures.blocks, of(SAME), 2)
    graph = captured(tmp_path_factory, "mixtures:chosen")
    compare(graph, mixtures.chosen, of(uneven), 2, within=0.001)
    # Of experts two replicas have the same, which share out their state and gradients.
    compare(graph, mixtures.chosen, {"zero-2=4 ep=2": {"all_gather": SAME, "reduce_scatter": SAME, "all_to_all": uneven}}, 4, within=0.001)


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
    assert doc["largest_difference"] in dict(strategies.llama()[0].named_parameters())
    assert doc["predicted_step_s"] == json.loads(path.read_text())["predicted"]["step_s"] and doc["step_s"] > 0
    path.write_text(json.dumps(json.loads(path.read_text()) | {"layers": [["layers.7"]]}))
    done = distribute()
    assert (done.returncode, done.stdout) == (1, "")
    assert [x for x in done.stderr.splitlines() if x.startswith("placer_torch")] == ["placer_torch: layers[0]: the model has no module 'layers.7'; the strategy is of graph llama"]
