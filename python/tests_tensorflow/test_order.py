"""What a captured step keeps of the graph's order, of its loops, conditionals and calls, beside TensorFlow's own session."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from placer_runtime.errors import CaptureError
from placer_tensorflow import capture, run, schedule, step
from placer_tensorflow.runtime import tf, v1
from test_tensorflow import scattered

X = np.random.RandomState(0).randn(8, 4).astype("f")
STEPS = 3


def weight(name: str = "w", shape: tuple[int, ...] = (4, 3)) -> Any:
    return v1.get_variable(name, initializer=np.random.RandomState(1).randn(*shape).astype("f"))


def descent(loss: Any) -> Any:
    return v1.train.GradientDescentOptimizer(0.1).minimize(loss)


def square(*weights: Any) -> Any:
    return tf.add_n([tf.reduce_mean(tf.square(X @ w)) for w in weights])


def average() -> Any:
    """An average of the weights as the update leaves them, which waits for it by nodes without variables."""
    w, u = weight(), weight("u")
    loss = square(w, u)
    with tf.control_dependencies([tf.group(descent(loss))]):
        return loss, tf.group(tf.train.ExponentialMovingAverage(0.5).apply([w, u]))


def clipped() -> Any:
    """Two updates of a variable, the second of what the first leaves."""
    w = weight()
    loss = square(w)
    with tf.control_dependencies([descent(loss)]):
        return loss, tf.group(w.assign(tf.clip_by_value(w, -0.5, 0.5)))


def moments() -> Any:
    w, mean = weight(), v1.get_variable("mean", initializer=np.zeros(3, "f"), trainable=False)
    y = X @ w
    with tf.control_dependencies([v1.assign(mean, 0.9 * mean + 0.1 * tf.reduce_mean(y, 0))]):
        loss = tf.reduce_mean(tf.square(y))
        return loss, descent(loss)


def scheduled() -> Any:
    w, at = weight(), v1.train.get_or_create_global_step()
    loss = square(w)
    optimizer = v1.train.MomentumOptimizer(v1.train.exponential_decay(0.1, at, 1, 0.5), 0.9)
    (gradient,), _ = tf.clip_by_global_norm([g for g, _ in optimizer.compute_gradients(loss)], 0.1)
    return loss, optimizer.apply_gradients([(gradient, w)], global_step=at)


def metric() -> Any:
    """A metric's variables are local ones."""
    w = weight()
    loss = square(w)
    return loss, tf.group(descent(loss), v1.metrics.mean(loss)[1])


def conditional() -> Any:
    w = weight()
    loss = tf.reduce_mean(tf.square(tf.cond(tf.reduce_sum(w) > 0, lambda: X @ w, lambda: X @ w * 2)))
    return loss, descent(loss)


def writing() -> Any:
    """A conditional that writes a variable."""
    w, n = weight(), v1.get_variable("n", initializer=np.float32(0), trainable=False)
    loss = square(w)
    return loss, tf.group(descent(loss), tf.cond(loss > 0, lambda: n.assign_add(1.0).read_value(), lambda: n.read_value()))


def loop() -> Any:
    w = weight(shape=(4, 4))
    y = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x @ w), (0, tf.constant(X)))[1]
    loss = tf.reduce_mean(tf.square(y))
    return loss, descent(loss)


def called() -> Any:
    w = weight(shape=(4, 4))

    @tf.function
    def f(x: Any) -> Any:
        return tf.nn.relu(x @ w)

    @tf.function
    def g(x: Any) -> Any:
        return f(f(x))

    loss = tf.reduce_mean(tf.square(g(tf.constant(X))))
    return loss, descent(loss)


def rows() -> Any:
    w = weight(shape=(50, 8))
    ragged = tf.reduce_mean(tf.gather(w, tf.ragged.constant([[1, 2], [3], [4, 5, 6]])), axis=1)
    sparse = tf.sparse.sparse_dense_matmul(tf.sparse.from_dense(np.maximum(np.tile(X, 2), 0)), tf.transpose(w[:3]) @ tf.ones([3, 2]))
    loss = tf.reduce_sum(ragged**2) + tf.reduce_mean(sparse**2)
    return loss, v1.train.AdagradOptimizer(0.1).minimize(loss)


def own(build: Callable[[], Any]) -> tuple[list[float], dict[str, np.ndarray]]:
    """Losses and variables of the graph that TensorFlow itself runs."""
    graph = tf.Graph()
    with graph.as_default(), v1.variable_scope("", use_resource=True):
        v1.set_random_seed(capture.SEED)
        loss, train = build()
        variables = v1.global_variables() + v1.local_variables()
        with v1.Session(graph=graph) as s:
            s.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
            losses = [float(s.run([loss, train])[0]) for _ in range(STEPS)]
            return losses, dict(zip([v.handle.op.name for v in variables], s.run(variables)))


@pytest.mark.parametrize("build", [average, clipped, moments, scheduled, metric, conditional, writing, loop, called, rows])
def test_order(build: Callable[[], Any]) -> None:
    losses, values = own(build)
    s = capture.capture(build, build.__name__)
    found = []
    for x in (schedule.single(schedule.ops(s)), scattered(s, 1), scattered(s, 2)):
        with run.Runner(s, x) as r:
            found.append(r.results(STEPS))
    assert np.allclose(found[0][:STEPS], losses, rtol=1e-5)
    for k, v in zip(s.values, found[0][STEPS:]):
        assert np.allclose(v, values[k], rtol=1e-5, atol=1e-6), k
    assert set(s.values) == set(values)
    assert all(run.equal(found[0], x) for x in found[1:])


def test_calls_are_inlined_and_loops_are_one_op() -> None:
    s = capture.capture(called, "called")
    assert sum(n.op == "MatMul" for n in s.nodes) >= 4 and not any("Call" in n.op for n in s.nodes)
    ops = [n.op for n in capture.capture(loop, "loop").nodes]
    assert sum("While" in k for k in ops) == 2, "forward and backward"


def test_a_step_as_a_function(tmp_path: Any) -> None:
    """Several losses, a metric, clipping and decay by hand, as users write it."""

    def build() -> Any:
        model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(3)])
        total = tf.Variable(0.0, trainable=False, name="total")
        made.append((model, total))

        def train(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                out = model(x, training=True)
                fit, size = tf.reduce_mean(tf.square(out - y)), tf.add_n([tf.nn.l2_loss(v.value) for v in model.trainable_variables])
                loss = fit + 0.01 * size
            gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, [v.value for v in model.trainable_variables]), 1.0)
            for v, g in zip(model.trainable_variables, gradients):
                v.value.assign(v.value * 0.99 - 0.1 * g)
            total.assign_add(fit)
            return {"fit": fit, "loss": loss}

        return train, (X, X[:, :3])

    made: list[Any] = []
    s = capture.capture(build, "train")
    with run.Runner(s, schedule.single(schedule.ops(s))) as one, run.Runner(s, scattered(s, 1)) as two:
        got = one.results(STEPS)
        assert run.equal(got, two.results(STEPS))
    model, total = made[-1]
    train, batch = build()[0], tuple(map(tf.constant, (X, X[:, :3])))
    made[-1][0].set_weights(model.get_weights())
    step_ = tf.function(train)
    assert np.allclose([step_(*batch)["loss"] for _ in range(STEPS)], got[:STEPS], rtol=1e-5)
    values = dict(zip(s.values, got[STEPS:]))
    assert np.isclose(values["total"], made[-1][1].numpy(), rtol=1e-5)
    for old, new in zip(model.trainable_variables, made[-1][0].trainable_variables):
        assert np.allclose(values[old.path], new.numpy(), atol=1e-6)
    trained = {n.name for n in s.nodes if n.op == "VarHandleOp" and n.attr["_trainable"].b}
    assert trained == {v.path for v in model.trainable_variables}


def fed() -> Any:
    w = weight()
    loss = tf.reduce_mean(tf.square(v1.placeholder(tf.float32, [8, 4]) @ w))
    return loss, descent(loss)


def piped() -> Any:
    x = v1.data.make_one_shot_iterator(tf.data.Dataset.from_tensors(X)).get_next()
    loss = tf.reduce_mean(tf.square(x @ weight()))
    return loss, descent(loss)


def table() -> Any:
    t = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [0, 1]), -1)
    loss = tf.reduce_mean(tf.gather(weight(), t.lookup(tf.constant([1, 2]))) ** 2)
    return loss, descent(loss)


@pytest.mark.parametrize("build, why", [(fed, "fed from outside"), (piped, "input pipeline"), (table, "look up before")])
def test_what_a_step_cannot_have(build: Callable[[], Any], why: str) -> None:
    with pytest.raises(CaptureError, match=why):
        capture.capture(build, build.__name__)


def test_no_loss() -> None:
    with pytest.raises(CaptureError, match='entry "loss"'):
        capture.capture(lambda: (lambda x: x, (X,)), "none")
