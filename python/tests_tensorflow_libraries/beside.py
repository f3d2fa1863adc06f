"""A captured step beside plain TensorFlow: what both give after some steps."""

from __future__ import annotations

import collections
import json
import os
import subprocess
from typing import Any, Callable

import numpy as np

from placer_tensorflow import capture, run, schedule, step
from placer_tensorflow.runtime import tf

STEPS = 3


def captured(build: Callable[[], Any], name: str) -> tuple[step.Step, Any]:
    """The step, and what build returned where it was captured, whose variables are still
    as they were before the first step."""
    made: list[Any] = []

    def once() -> Any:
        made[:] = [build()]
        return made[0]

    return capture.capture(once, name), made[0]


def plain(model: Any, loss: Any, batch: Any, optimizer: Any) -> tuple[list[float], dict[str, np.ndarray]]:
    """Losses of steps as Keras trains, without TensorFlow's rewriting of graphs, and all variables behind them."""
    x, y = tf.nest.map_structure(tf.constant, batch)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})

    @tf.function
    def one() -> Any:
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
            whole = sum(model.losses, value)
            scaled = optimizer.scale_loss(whole)
        optimizer.apply(tape.gradient(scaled, model.trainable_variables), model.trainable_variables)
        return whole

    losses = [float(one()) for _ in range(STEPS)]
    return losses, {v.path: v.numpy() for v in [*model.variables, *optimizer.variables]}


def scattered(s: step.Step, seed: int = 1) -> schedule.Schedule:
    """Random devices and a random topological order."""
    rng = np.random.RandomState(seed)
    group: dict[int, int] = {}
    device = [group.setdefault(g, int(rng.randint(2))) if g else int(rng.randint(2)) for g in s.group]
    ops = schedule.ops(s)
    return schedule.make(ops, device, ["cpu:0", "cpu:1"], schedule.by_priority(ops, list(rng.rand(len(device)))))


def results(s: step.Step, x: schedule.Schedule) -> tuple[list[float], dict[str, np.ndarray]]:
    with run.Runner(s, x) as r:
        found = r.results(STEPS)
    return [float(v) for v in found[:STEPS]], dict(zip(s.values, found[STEPS:]))


def close(a: np.ndarray, b: np.ndarray, rounding: float) -> bool:
    return bool(np.allclose(np.asarray(a, "f8"), np.asarray(b, "f8"), rtol=10 * rounding, atol=rounding))


def agree(build: Callable[[], Any], name: str, folder: Any, rounding: float = 1e-5) -> step.Step:
    """Captures, has placer plan it, runs one device, the plan and a random placement, and
    compares losses and variables: of placements to the bit, with plain TensorFlow's to
    rounding and ten times that. Parameters and products are compared with counts of their own."""
    s, made = captured(build, name)
    model = made[0]
    used = {k.removesuffix("_variable") for k in s.values}  # two variables of one name: one has it so
    parameters = sum(int(np.prod(v.shape)) for v in model.trainable_variables if v.path in used)
    one = results(s, schedule.single(schedule.ops(s)))
    placements = [scattered(s)]
    if os.environ.get("PLACER"):
        placements.append(planned(s, str(folder), parameters))
    for x in placements:
        other = results(s, x)
        assert other[0] == one[0]
        for k in one[1]:
            assert np.array_equal(other[1][k], one[1][k], equal_nan=True), k
    before = {v.path: v.numpy() for v in [*model.variables, *made[3].variables]}
    losses, values = plain(*made)
    assert np.allclose(one[0], losses, rtol=rounding), (one[0], losses)
    paths = collections.Counter(v.path for v in [*model.variables, *made[3].variables])
    for k, v in values.items():
        if paths[k] > 1:  # two slots of one name (Adafactor)
            continue
        found = one[1].get(k, before[k])  # what the step does not use stays as it is
        assert close(found, v, rounding), (k, float(np.abs(np.asarray(found, "f8") - np.asarray(v, "f8")).max()))
    return s


def planned(s: step.Step, folder: str, parameters: int) -> schedule.Schedule:
    """placer's plan for two devices, on logical ones. Its graph has the step's nodes in
    their order, the model's parameters and the products' arithmetic."""
    step.write(s, folder)
    graph, plan, copy = (os.path.join(folder, k) for k in (step.GRAPH, "plan.json", "graph.json"))
    for command in (["import", "--graph", graph, "-o", copy], ["search", "--graph", graph, "--gpus", "2", "--evaluations", "50", "-o", plan]):
        subprocess.run([os.environ["PLACER"], *command], check=True, capture_output=True, cwd=folder)
    with open(copy) as f:
        ops = json.load(f)["ops"]
    assert [o["name"] for o in ops] == [n.name for n in s.graph.node]
    assert sum(o.get("params", 0) for o in ops) == parameters
    for o, want in zip(ops, products(s)):
        assert want is None or abs(o.get("flops", 0) - want) <= 1e-6 * want, (o["name"], o.get("flops"), want)
    with open(plan) as f:
        doc = json.load(f)
    return schedule.make(schedule.ops(s), doc["device"], ["cpu:0", "cpu:1"][: len(doc["devices"])])


def saved(build: Callable[[], Any], folder: str) -> None:
    """placer's graph of the model's SavedModel, for a batch of 8, has its parameters, and
    the products that the model's function has for that batch."""
    model, _, batch, _ = build()
    model(batch[0])
    model.export(folder, verbose=False)
    copy = os.path.join(folder, "graph.json")
    done = subprocess.run([os.environ["PLACER"], "import", "--graph", os.path.join(folder, "saved_model.pb"), "--dim", "batch=8", "-o", copy], check=True, capture_output=True, text=True)
    assert "signatures" in done.stderr, done.stderr
    x = tf.nest.map_structure(lambda b: np.concatenate([b] * 8)[:8], batch[0])
    mean = capture.capture(lambda: ((lambda *a: tf.reduce_mean(model(*a, training=False))), (x,)), "forward")
    with open(copy) as f:
        ops = json.load(f)["ops"]
    assert sum(o.get("params", 0) for o in ops) == sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    if not any("While" in n.op for n in mean.nodes):
        kinds = {"MatMul", "BatchMatMulV2", "Conv2D", "Conv2DBackpropInput", "DepthwiseConv2dNative"}
        assert np.isclose(sum(o.get("flops", 0) for o in ops if o["kind"] in kinds), sum(n or 0 for n in products(mean)), rtol=1e-6)


def products(s: step.Step) -> list[float | None]:
    """The arithmetic of each product and convolution, 2 for a multiplication with its sum, by TensorFlow's own shapes; None for other nodes."""
    shape = {f"{n.name}:{i}": [d.size for d in x.dim] for n in s.graph.node for i, x in enumerate(n.attr["_output_shapes"].list.shape)}
    found: list[float | None] = []
    for n in s.graph.node:
        x = [shape.get(i if ":" in i else i + ":0", []) for i in n.input if not i.startswith("^")]
        y = shape.get(n.name + ":0", [])

        def count(*sizes: list[int]) -> float:
            return 2 * float(np.prod([d for k in sizes for d in k]))

        match n.op:
            case "MatMul":
                found.append(count(y, [x[0][0 if n.attr["transpose_a"].b else 1]]))
            case "BatchMatMulV2" | "BatchMatMulV3" | "BatchMatMul":
                found.append(count(y, [x[0][-2 if n.attr["adj_x"].b else -1]]))
            case "Conv2D" | "Conv3D":
                found.append(count(y, x[1][:-1]))
            case "Conv2DBackpropInput" | "Conv3DBackpropInputV2":
                found.append(count(x[2], x[1][:-1]))
            case "Conv2DBackpropFilter" | "Conv3DBackpropFilterV2":
                found.append(count(x[2], y[:-1]))
            case "DepthwiseConv2dNative":
                found.append(count(y, x[1][:2]))
            case "DepthwiseConv2dNativeBackpropInput":
                found.append(count(x[2], x[1][:2]))
            case "DepthwiseConv2dNativeBackpropFilter":
                found.append(count(x[2], y[:2]))
            case _:
                found.append(None)
    return found
