"""Stages of an ONNX model as a pipeline of sessions, with real ONNX Runtime."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from placer_onnxruntime import cli, examples, pipeline, session
from placer_runtime import binary
from placer_runtime.errors import FormatError, RunError

needs_placer = pytest.mark.skipif(not os.environ.get("PLACER"), reason="PLACER names no program")


@pytest.fixture(scope="module")
def model(tmp_path_factory: Any) -> str:
    path = str(tmp_path_factory.mktemp("model") / "gpt2.onnx")
    examples.gpt2(path, layers=2, width=32, heads=2, tokens=8, batch=2, vocabulary=64)
    return path


def halves(model: str, folder: Any) -> list[session.Stage]:
    """The model cut behind its first block, by onnx's own extractor."""
    whole = onnx.load(model)
    at = next(k for k, n in enumerate(whole.graph.node) if n.name.startswith("h.1.")) - 1
    middle = whole.graph.node[at].output[0]
    a, b = str(folder / "a.onnx"), str(folder / "b.onnx")
    onnx.utils.extract_model(model, a, ["ids"], [middle])
    onnx.utils.extract_model(model, b, [middle], ["logits"])
    return [session.Stage(a, "cpu:0", ("ids",), (middle,)), session.Stage(b, "cpu:1", (middle,), ("logits",))]


def test_pipeline_is_equal(model: str, tmp_path: Any) -> None:
    feed = session.example(session.open_session(model), {})
    one = pipeline.one_session(model, feed, 3, sorted(os.sched_getaffinity(0))[0])
    two = pipeline.run(halves(model, tmp_path), feed, ["logits"], 9)
    assert np.array_equal(one.outputs["logits"], two.outputs["logits"]) and two.request_s > 0
    assert len(os.sched_getaffinity(0)) > 1, "the whole process was left on one core"


def test_sizes_that_cross(tmp_path: Any) -> None:
    """A stage that resizes to sizes of the one before is not tried with zeros first."""
    h, f, i = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    x, y, sizes = h.make_tensor_value_info("x", f, [1, 1, 4, 4]), h.make_tensor_value_info("y", f, [1, 1, 4, 4]), h.make_tensor_value_info("sizes", i, [4])
    nodes = [h.make_node("Shape", ["x"], ["sizes"]), h.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="nearest")]
    paths = [str(tmp_path / k) for k in ("whole.onnx", "a.onnx", "b.onnx")]
    for path, part, takes, gives in zip(paths, (nodes, nodes[:1], nodes[1:]), ([x], [x], [x, sizes]), ([y], [sizes], [y])):
        onnx.save(h.make_model(h.make_graph(part, "g", takes, gives), opset_imports=[h.make_opsetid("", 18)], ir_version=10), path)
    feed = session.example(session.open_session(paths[0]), {})
    two = pipeline.run([session.Stage(paths[1], "cpu:0", ("x",), ("sizes",)), session.Stage(paths[2], "cpu:1", ("x", "sizes"), ("y",))], feed, ["y"], 3)
    assert np.array_equal(two.outputs["y"], feed["x"])


def test_a_stage_that_fails_ends_all(model: str, tmp_path: Any) -> None:
    first, second = halves(model, tmp_path)
    with pytest.raises(Exception):
        pipeline.run([first, session.Stage(second.path, "cpu:1", second.inputs, ("nothing",))], session.example(session.open_session(model), {}), ["logits"], 3)


class Fails:
    """A session whose process fails, or does not come back, when it runs a second time: the
    first is the parent's."""

    parent = os.getpid()
    how = ""

    def __init__(self, path: str):
        self.session = session.open_session(path)

    def run(self, outputs: Any, feed: Any) -> Any:
        if os.getpid() != self.parent and self.how == "fail":
            raise RuntimeError("no such kernel")
        if os.getpid() != self.parent and self.how == "die":
            os.kill(os.getpid(), 9)
        if os.getpid() != self.parent:
            time.sleep(60)
        return self.session.run(outputs, feed)


@pytest.mark.parametrize("how, want", [("fail", r"stage .*[ab].onnx: RuntimeError: no such kernel"), ("die", r"stage .*[ab].onnx: ended by signal 9")])
def test_a_failing_process_says_why(how: str, want: str, model: str, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(Fails, "how", how)
    monkeypatch.setattr(pipeline, "open_session", Fails)
    with pytest.raises(RunError, match=want):
        pipeline.run(halves(model, tmp_path), session.example(session.open_session(model), {}), ["logits"], 3)
    assert not children()


def test_an_interrupt_leaves_no_process(model: str, tmp_path: Any, monkeypatch: Any) -> None:
    """Ctrl-C while stages run: they are gone when run is."""
    monkeypatch.setattr(Fails, "how", "sleep")
    monkeypatch.setattr(pipeline, "open_session", Fails)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pipeline.run(halves(model, tmp_path), session.example(session.open_session(model), {}), ["logits"], 3)
    assert not children()


def children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as f:
        return [int(x) for x in f.read().split()]


def test_node_seconds(model: str) -> None:
    feed = session.example(session.open_session(model), {})
    seconds, request = session.node_seconds(model, feed, runs=5)
    assert sum(seconds.values()) == pytest.approx(request, rel=1e-6)
    assert set(seconds) <= {n.name for n in onnx.load(model).graph.node} and len(seconds) > 40


def test_list_of_stages_is_checked(tmp_path: Any) -> None:
    path = tmp_path / "stages.json"
    path.write_text(json.dumps({"format": "other"}))
    with pytest.raises(FormatError, match="stages.json"):
        session.stages(str(path))


@pytest.mark.parametrize("args, want", [
    (["profile", "nowhere.onnx", "-o", "x"], "nowhere.onnx: no such file"),
    (["profile", "TEXT", "-o", "x"], "ONNX Runtime cannot load it"),
    (["profile", "MODEL", "--dim", "batch", "-o", "x"], "--dim batch: want a name and a size, as batch=4"),
    (["run", "STAGES", "--model", "MODEL"], "no stage makes logits"),
    (["run", "STAGES", "--model", "MODEL", "--requests", "1"], "want at least 2 and 1"),
])
def test_errors_are_one_line(model: str, tmp_path: Any, capsys: Any, args: list[str], want: str) -> None:
    text, stages = tmp_path / "text.onnx", tmp_path / "stages.json"
    text.write_text("no model")
    stages.write_text(json.dumps({"format": "placer onnx stages 1", "stages": [{"file": "a.onnx", "device": "cpu:0", "inputs": ["ids"], "outputs": ["h"]}]}))
    files = {"TEXT": str(text), "MODEL": model, "STAGES": str(stages)}
    assert cli.main([files.get(a, a) for a in args]) == 1
    said = capsys.readouterr().err
    assert want in said and said.count("\n") == 1 and said.startswith("placer_onnxruntime: ")


def test_example_has_the_types_of_inputs(tmp_path: Any) -> None:
    path = str(tmp_path / "types.onnx")
    kinds = [onnx.TensorProto.BOOL, onnx.TensorProto.INT32, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE]
    inputs = [onnx.helper.make_tensor_value_info(f"i{k}", k, ["n", 2]) for k in kinds]
    outputs = [onnx.helper.make_tensor_value_info(f"o{k}", k, ["n", 2]) for k in kinds]
    nodes = [onnx.helper.make_node("Identity", [f"i{k}"], [f"o{k}"]) for k in kinds]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "types", inputs, outputs), opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10), path)
    s = session.open_session(path)
    feed = session.example(s, {"n": 3})
    assert {v.dtype.name for v in feed.values()} == {"bool", "int32", "float16", "float64"} and feed["i9"].shape == (3, 2)
    s.run(None, feed)


@needs_placer
def test_from_profile_to_pipeline(model: str, tmp_path: Any, capsys: Any) -> None:
    folder = str(tmp_path)
    assert cli.main(["profile", model, "-o", folder]) == 0
    assert json.loads(capsys.readouterr().out)["unknown"] == []
    inputs = ["--graph", model, "--machine", folder + "/machine.json", "--times", folder + "/times.json", "--cpu", "--objective", "throughput"]
    binary.run("search", *inputs, "--evaluations", "50", "--methods", "single,contiguous,balance", "--out", folder + "/run", "-o", folder + "/plan.json", "-q")
    binary.run("export", *inputs, "--plan", folder + "/plan.json", "--to", "onnx", "-o", folder + "/stages.json")
    assert cli.main(["run", folder + "/stages.json", "--model", model, "--requests", "6", "--rounds", "2", "--predicted", "0.001"]) == 0
    doc = json.loads(capsys.readouterr().out)
    assert doc["equal"] and doc["stages"] == 2 and len(doc["gains"]) == 2


@needs_placer
def test_modules_of_torchs_exporter(model: str, tmp_path: Any) -> None:
    out = tmp_path / "graph.json"
    binary.run("import", "--graph", model, "-o", str(out))
    modules = {o.get("module", "") for o in json.loads(out.read_text())["ops"]}
    assert {"wte", "h.0.attn", "h.1.mlp", "ln_f"} <= modules
