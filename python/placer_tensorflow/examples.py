"""Training steps in TensorFlow 1's style, for tests and experiments: functions for capture."""

from __future__ import annotations

from typing import Any

import numpy as np

from .runtime import tf, v1


def lstm(layers: int = 2, hidden: int = 256, batch: int = 32, steps: int = 16, vocab: int = 1000, rate: float = 0.1) -> tuple[Any, Any]:
    """An LSTM language model, unrolled."""
    rng = np.random.RandomState(1)
    x, y = (tf.constant(rng.randint(0, vocab, (batch, steps)).astype("i")) for _ in range(2))
    table = _variable(rng, "embedding", vocab, hidden)
    inputs = [tf.gather(table, x[:, t], name=f"embed_{t}") for t in range(steps)]
    for k in range(layers):
        with v1.variable_scope(f"layer{k + 1}"):
            w, b = _variable(rng, "w", 2 * hidden, 4 * hidden), _variable(rng, "b", 4 * hidden)
            h = c = tf.zeros([batch, hidden])
            for t in range(steps):
                with tf.name_scope(f"t{t}"):
                    i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([inputs[t], h], 1), w), b), 4, 1)
                    c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
                    h = tf.tanh(c) * tf.sigmoid(o)
                    inputs[t] = h
    with v1.variable_scope("head"):
        w, b = _variable(rng, "w", hidden, vocab), _variable(rng, "b", vocab)
        losses = []
        for t in range(steps):
            with tf.name_scope(f"t{t}"):
                logits = tf.nn.bias_add(tf.matmul(inputs[t], w), b)
                losses.append(tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y[:, t], logits=logits)))
        loss = tf.add_n(losses) / steps
    return loss, v1.train.GradientDescentOptimizer(rate).minimize(loss)


def inception(blocks: int = 4, branches: int = 4, width: int = 32, size: int = 24, batch: int = 8, classes: int = 100, rate: float = 0.01) -> tuple[Any, Any]:
    """A convolutional net of blocks of parallel branches, joined by concatenation."""
    rng = np.random.RandomState(1)
    x = tf.constant(rng.randn(batch, size, size, 3).astype("f"))
    y = tf.constant(rng.randint(0, classes, batch).astype("i"))

    def conv(name: str, x: Any, out: int, k: int) -> Any:
        with v1.variable_scope(name):
            w, b = _variable(rng, "w", k, k, int(x.shape[-1]), out), _variable(rng, "b", out)
            return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b))

    x = conv("stem", x, branches * width, 3)
    for k in range(blocks):
        with v1.variable_scope(f"block{k}"):
            made = []
            for n in range(branches):
                with v1.variable_scope(f"branch{n}"):
                    h = conv("reduce", x, width, 1)
                    for d in range(1 + n % 2):
                        h = conv(f"conv{d}", h, width, 3)
                    made.append(h)
            x = tf.concat(made, 3)
            if k % 2:
                x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    with v1.variable_scope("head"):
        logits = tf.nn.bias_add(tf.matmul(tf.reduce_mean(x, [1, 2]), _variable(rng, "w", int(x.shape[-1]), classes)), _variable(rng, "b", classes))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return loss, v1.train.GradientDescentOptimizer(rate).minimize(loss)


def keras(width: int = 32, batch: int = 16) -> tuple[Any, Any, Any, Any]:
    """A small dense model of Keras with Adam."""
    rng = np.random.RandomState(1)
    model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(width, "relu"), tf.keras.layers.Dense(4)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return model, loss, (rng.randn(batch, 8).astype("f"), rng.randint(0, 4, batch).astype("i")), tf.keras.optimizers.Adam(0.01)


def _variable(rng: np.random.RandomState, name: str, *shape: int) -> Any:
    return v1.get_variable(name, initializer=(rng.randn(*shape) * 0.05).astype("f"))
