"""TensorFlow: capture, placement, running and measuring, with real TensorFlow where it is installed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from placer_runtime import serve as protocol
from placer_runtime.errors import CaptureError, FormatError
from placer_tensorflow import capture, cli, crossing, examples, measure, profile, run, schedule, step
from placer_tensorflow.runtime import tf, v1

SMALL = dict(layers=2, hidden=16, batch=4, steps=4, vocab=50)


@pytest.fixture(scope="module")
def lstm() -> step.Step:
    return capture.capture(lambda: examples.lstm(**SMALL), "lstm")


def scattered(s: step.Step, seed: int) -> schedule.Schedule:
    """Random devices and a random topological order."""
    rng = np.random.RandomState(seed)
    group: dict[int, int] = {}
    device = [group.setdefault(g, int(rng.randint(2))) if g else int(rng.randint(2)) for g in s.group]
    ops = schedule.ops(s)
    return schedule.make(ops, device, ["cpu:0", "cpu:1"], schedule.by_priority(ops, list(rng.rand(len(device)))))


def test_equals_tensorflow(lstm: step.Step) -> None:
    """One device's first step gives the loss and weights of the graph that TensorFlow itself runs."""
    graph = tf.Graph()
    with graph.as_default(), v1.variable_scope("", use_resource=True):
        v1.set_random_seed(capture.SEED)
        loss, train = examples.lstm(**SMALL)
        variables = v1.global_variables()
        with v1.Session(graph=graph) as s:
            s.run(v1.global_variables_initializer())
            want = s.run([loss, train])[0]
            weights = dict(zip([v.handle.op.name for v in variables], s.run(variables)))
    with run.Runner(lstm, schedule.single(schedule.ops(lstm))) as r:
        got = r.results()
    assert np.allclose(got[0], want, rtol=1e-6)
    for name, value in zip(lstm.values, got[1:]):
        assert np.allclose(value, weights[name], atol=1e-6), name
        assert not np.array_equal(value, lstm.values[name]), f"{name} was not updated"


@pytest.mark.parametrize("seed", range(4))
def test_any_placement_is_equal(lstm: step.Step, seed: int) -> None:
    with run.Runner(lstm, schedule.single(schedule.ops(lstm))) as one, run.Runner(lstm, scattered(lstm, seed)) as two:
        assert run.equal(one.results(), two.results())


def dropped() -> Any:
    """A step of TensorFlow 1's style with dropout."""
    x = v1.constant(np.ones((8, 16), "f"))
    w = v1.get_variable("w", [16, 16], initializer=v1.initializers.ones())
    loss = tf.reduce_sum(v1.nn.dropout(x @ w, rate=0.5))
    return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss)


def test_dropout_is_equal() -> None:
    """What dropout draws in a first step is compared, not what it draws behind others."""
    s = capture.capture(dropped, "dropped")
    doc = measure.Meter(s).measure(scattered(s, 1), measure.Options(steps=2, repeats=1, brief=True))
    assert doc["equal"] is True


def test_settings_come_before_tensorflow() -> None:
    """oneDNN's rewriting of graphs closes cycles with the chains of a plan, and a step then waits forever."""
    code = "import sys; sys.modules['tensorflow'] = None\ntry:\n    import placer_tensorflow.capture\nexcept ImportError: pass\nimport os; print(os.environ.get('TF_ENABLE_ONEDNN_OPTS'))"
    env = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    assert subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout.strip() == "0"


def test_order_is_kept(lstm: step.Step) -> None:
    """On a device no node begins before the one in front of it has ended."""
    x = scattered(lstm, 1)
    with run.Runner(lstm, x) as r:
        r.run(1)
        spans = {t.node: t for t in r.traced()}
    for d in range(2):
        mine = [spans[lstm.graph.node[i].name] for i in x.order if x.device[i] == d and lstm.graph.node[i].name in spans]
        assert len(mine) > 50 and {t.device for t in mine} == {d}
        assert all(a.end <= b.start + 2e-6 for a, b in zip(mine, mine[1:]))


def test_keras() -> None:
    s = capture.capture(examples.keras, "keras")
    assert len(s.updates) >= 4 * 3  # weights and two moments of each
    with run.Runner(s, schedule.single(schedule.ops(s))) as one, run.Runner(s, scattered(s, 3)) as two:
        want = one.results()
        assert run.equal(want, two.results())
        assert float(want[0]) > 0


def test_files(lstm: step.Step, tmp_path: Any) -> None:
    step.write(lstm, str(tmp_path))
    back = step.read(str(tmp_path / step.GRAPH))
    assert back.graph == lstm.graph and back.loss == lstm.loss and back.updates == lstm.updates
    assert all(np.array_equal(back.values[k], lstm.values[k]) for k in lstm.values)
    (tmp_path / step.VALUES).write_bytes(b"no archive")
    with pytest.raises(FormatError, match="step.npz"):
        step.read(str(tmp_path / step.GRAPH))


@pytest.mark.skipif(not os.environ.get("PLACER"), reason="PLACER names no program")
def test_order_is_placers(lstm: step.Step, tmp_path: Any) -> None:
    """placer has the ops in the file's order, which times are written in, and agrees on groups."""
    step.write(lstm, str(tmp_path))
    out = tmp_path / "g.json"
    subprocess.run([os.environ["PLACER"], "import", "--graph", str(tmp_path / step.GRAPH), "-o", str(out)], check=True, capture_output=True)
    ops = json.loads(out.read_text())["ops"]
    assert sum(o.get("params", 0) for o in ops) == lstm.parameters > 0
    assert [o["name"] for o in ops] == [n.name for n in lstm.graph.node]
    pairs = {(a, b) for a, b in zip([o.get("group", 0) for o in ops], lstm.group) if a or b}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) and all(a and b for a, b in pairs)


def test_errors_of_the_function_are_told() -> None:
    """The error in a graph is the cause of a function of TensorFlow 1's style, the one without a graph of others."""

    def wrong() -> Any:
        w = v1.get_variable("w", initializer=np.ones(2, "f"))
        if not tf.executing_eagerly():
            raise AttributeError("no layer normm")
        return w

    with pytest.raises(CaptureError, match="AttributeError: no layer normm") as e:
        capture.capture(wrong, "wrong")
    assert isinstance(e.value.__cause__, AttributeError)

    def fails() -> Any:
        raise ValueError("no such width\nand more") if tf.executing_eagerly() else RuntimeError("in a graph")

    with pytest.raises(CaptureError, match="failed: ValueError: no such width; in a graph .*: RuntimeError: in a graph$"):
        capture.capture(fails, "fails")


def test_functions_run_once() -> None:
    """A model of Keras is built once. A step of TensorFlow 1's style runs up to its first variable, or placeholder, before."""
    began, ended = [], []

    def keras() -> Any:
        began.append(tf.executing_eagerly())
        model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
        ended.append(tf.executing_eagerly())
        return model, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), (np.ones((2, 4), "f"), np.zeros(2, "i")), tf.keras.optimizers.SGD()

    def nodes() -> Any:
        began.append(tf.executing_eagerly())
        w = v1.get_variable("w", initializer=np.ones(2, "f"))
        loss = tf.reduce_sum(w * w)
        ended.append(tf.executing_eagerly())
        return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss)

    def placeholder() -> Any:
        began.append(tf.executing_eagerly())
        v1.placeholder_with_default(np.ones(2, "f"), [2])
        v1.placeholder(tf.float32, [2])
        ended.append(tf.executing_eagerly())
        raise AttributeError("no layer normm")

    s = capture.capture(keras, "keras")
    assert s.parameters == 4 * 3 + 3 < sum(v.size for v in s.values.values())
    assert began == ended == [True]
    capture.capture(nodes, "nodes")
    assert began == [True, True, False] and ended == [True, False]
    with pytest.raises(CaptureError, match="^the function failed: AttributeError: no layer normm$"):
        capture.capture(placeholder, "placeholder")


def test_refused(lstm: step.Step) -> None:
    n = len(lstm.graph.node)
    with pytest.raises(FormatError, match=f"{n - 1} ops"):
        schedule.make(schedule.ops(lstm), [0] * (n - 1), ["cpu:0"])
    with pytest.raises(FormatError, match="belong together"):
        schedule.make(schedule.ops(lstm), [int(x.op == "VarHandleOp") for x in lstm.graph.node], ["cpu:0", "cpu:1"])
    with pytest.raises(FormatError, match="which it needs"):
        schedule.make(schedule.ops(lstm), [0] * n, ["cpu:0"], list(reversed(range(n))))


def test_measurement_and_serve(lstm: step.Step) -> None:
    n = len(lstm.graph.node)
    meter = measure.Meter(lstm)
    x = scattered(lstm, 2)
    requests = [
        {"id": 1, "devices": x.devices, "device": x.device, "order": x.order, "steps": 2, "repeats": 1, "trace": True},
        {"id": "bad", "devices": ["cpu:0"], "device": [0] * (n - 1)},
        {"id": 3, "whatever": 1},
        {"id": 4, "devices": ["cpu:0"], "device": [0] * n, "clock": "virtual"},
    ]
    out = io.StringIO()
    measure.serve(meter, measure.Options(), io.StringIO("\n".join(map(json.dumps, requests)) + "\n"), out)
    ready, one, short, unknown, virtual = map(json.loads, out.getvalue().splitlines())
    assert ready["format"] == protocol.READY and ready["ops"] == n and ready["runtime"] == "tensorflow"
    assert one["format"] == protocol.FORMAT and one["equal"] is True and one["step_time_s"] > 0 and len(one["wall_s"]) == 2
    assert sum(d["sent_bytes"] for d in one["devices"]) == sum(d["received_bytes"] for d in one["devices"]) > 0
    assert {t["op"] for t in one["trace"]} <= set(lstm.index) and len(one["trace"]) > n / 2
    assert f"{n - 1} ops" in short["error"] and "unknown key" in unknown["error"] and "want wall" in virtual["error"]


def test_profile(lstm: step.Step) -> None:
    p = profile.on_core(lstm, steps=3)
    assert sum(p.seconds) == pytest.approx(p.step_s) and len(p.seconds) == len(lstm.graph.node)
    c = crossing.measure(rounds=1)
    assert 1e-7 <= c.send_s < 1e-2 and c.delivery_s > 0 and c.receive_bandwidth > 1e8
    doc = profile.machine_doc(c, 2)
    assert doc["cables"][0]["occupies"] == "sender" and doc["devices"] == [{"name": "cpu:[0-1]", "model": "core"}]
    assert set(profile.times_doc("h", p, c, 2)) == {"format", "graph", "source", "bandwidth", "latency", "models"}


def test_commands(tmp_path: Any, capsys: Any) -> None:
    folder = str(tmp_path)
    assert cli.main(["capture", "--model", "placer_tensorflow.examples:lstm", "--args", json.dumps(SMALL), "-o", folder]) == 0
    n = json.loads(capsys.readouterr().out)["ops"]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"format": "placer plan 1", "devices": ["cpu:0"], "device": [0] * n}))
    assert cli.main(["measure", "--graph", folder + "/graph.pb", "--steps", "2", str(plan)]) == 0
    assert json.loads(capsys.readouterr().out)["equal"]
    assert cli.main(["profile", "--graph", folder + "/graph.pb", "--hash", "abc", "--steps", "2", "-o", folder]) == 0
    assert json.loads((tmp_path / "times.json").read_text())["graph"] == "abc"
    capsys.readouterr()
    assert cli.main(["measure", "--graph", folder + "/times.json", str(plan)]) == 1
    assert "placer_tensorflow: " in capsys.readouterr().err
    assert cli.main(["profile", "--graph", folder + "/graph.pb", "--hash", "abc", "--devices", "999", "-o", folder]) == 4
    assert "at most 64" in capsys.readouterr().err
