"""What it costs on this host that a tensor goes from one logical device to another.

TensorFlow sends between CPU devices by its rendezvous: the buffer is shared, nothing is
copied. The sender's thread hands the tensor over and, where the receiver's next node waits
for it, wakes the receiver's thread; the first reader fetches what its core's cache lacks.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Callable, Sequence

import numpy as np

from .run import Runner
from .runtime import tf
from .schedule import Schedule, make, ops
from .step import Step, alone

FLOOR = 1e-7  # seconds of a send or a delivery that could not be told from noise
_HOPS = 120
_SENDS = 96
_WEIGHTS = 16  # matrices of 256 KB that nodes read in turn, as in a step
_SIZES = (32 << 10, 1 << 20)  # bytes of what goes to and fro


@dataclasses.dataclass(frozen=True)
class Crossing:
    """Seconds and bytes a second: a send takes the sender send_s, the tensor is there
    delivery_s later, and its first reader takes bytes / receive_bandwidth longer."""

    send_s: float
    delivery_s: float
    receive_bandwidth: float
    flops: float  # a second, of a core's products
    stream: float  # bytes a second that a core reads and writes


def measure(rounds: int = 5, realtime: bool = False) -> Crossing:
    """Measures between cpu:0 and cpu:1, with the runner that runs schedules."""
    fan, fan_place = _step(_fan)
    here = [0] * len(fan.graph.node)
    away = _each(fan, fan_place)
    none, some = _least([make(ops(fan), here, ["cpu:0", "cpu:1"]), make(ops(fan), away, ["cpu:0", "cpu:1"])], fan, rounds, realtime)
    send = max((some - none) / _SENDS, FLOOR)
    hops, place = _step(_products)
    one, two = _least([make(ops(hops), [0] * len(hops.graph.node), ["cpu:0", "cpu:1"]), make(ops(hops), _each(hops, place), ["cpu:0", "cpu:1"])], hops, rounds, realtime)
    delivery = max((two - one) / _HOPS - send, FLOOR)
    added = []
    own = []
    for size in _SIZES:
        s, p = _step(functools.partial(_streamed, size))
        a, b = _least([make(ops(s), [0] * len(s.graph.node), ["cpu:0", "cpu:1"]), make(ops(s), _each(s, p), ["cpu:0", "cpu:1"])], s, rounds, realtime)
        added.append((b - a) / _HOPS)
        own.append(a / _HOPS)
    slope = max((added[1] - added[0]) / (_SIZES[1] - _SIZES[0]), 1e-12)
    stream = 2 * (_SIZES[1] - _SIZES[0]) / max(own[1] - own[0], 1e-9)
    return Crossing(send, delivery, min(1 / slope, 1e12), 2 * 32 * 256 * 256 * _HOPS / one, stream)


def _least(schedules: Sequence[Schedule], s: Step, rounds: int, realtime: bool) -> list[float]:
    """The least step of each schedule, in turns."""
    runners = [Runner(s, x, realtime=realtime) for x in schedules]
    best = [1e9] * len(runners)
    for k in range(rounds + 1):
        for i, r in enumerate(runners):
            took = min(r.run(4))
            if k:
                best[i] = min(best[i], took)
    for r in runners:
        r.close()
    return best


def _each(s: Step, place: Callable[[str], int]) -> list[int]:
    return [place(n.name) for n in s.graph.node]


def _step(build: Callable[[], tuple[Any, Callable[[str], int]]]) -> tuple[Step, Callable[[str], int]]:
    graph = tf.Graph()
    with graph.as_default():
        last, place = build()
    return alone(graph.as_graph_def(add_shapes=True), "crossing", last.name, [], {}), place


def _weights() -> list[Any]:
    values = np.random.RandomState(1).randn(_WEIGHTS, 256, 256).astype("f") / 16
    return [tf.constant(v, name=f"weight{k}") for k, v in enumerate(values)]


def _products() -> tuple[Any, Callable[[str], int]]:
    """A chain of products, every other one on the other device, whose weights are there."""
    w = _weights()
    y = tf.constant(np.ones((32, 256), "f"), name="begin")
    for k in range(_HOPS):
        y = tf.matmul(y, w[k % _WEIGHTS], name=f"at{k % 2}_{k}")

    def place(name: str) -> int:
        if name.startswith("weight"):
            return int(name.removeprefix("weight")) % 2
        return int(name.startswith("at1"))

    return tf.identity(y, name="end"), place


def _fan() -> tuple[Any, Callable[[str], int]]:
    """A chain of products on one device, all of which one node of the other reads."""
    w = _weights()
    y = tf.constant(np.ones((32, 256), "f"), name="begin")
    made = []
    for k in range(_SENDS):
        y = tf.matmul(y, w[k % _WEIGHTS], name=f"made{k}")
        made.append(y)
    return tf.identity(tf.raw_ops.IdentityN(input=made, name="reader")[-1], name="end"), lambda name: int(name in ("reader", "end"))


def _streamed(size: int) -> tuple[Any, Callable[[str], int]]:
    """A chain of nodes that read and write size bytes, every other one on the other device."""
    y = tf.constant(np.ones(size // 4, "f"), name="begin")
    for k in range(_HOPS):
        y = tf.negative(y, name=f"at{k % 2}_{k}")
    return tf.identity(y, name="end"), lambda name: int(name.startswith("at1"))
