"""A training step of TensorFlow 1's style, or of Keras, as a Step."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from placer_runtime.errors import CaptureError

from .runtime import tf, v1
from .step import Step, alone

SEED = 1


def capture(build: Callable[[], Any], name: str) -> Step:
    """The step that build makes. It returns (loss, train) of nodes that it adds to the
    default graph, or (model, loss, batch, optimizer) of Keras: batch is (inputs,
    labels), and loss takes labels and outputs. The same seed gives the same values."""
    graph = tf.Graph()
    first: Exception | None = None  # what the function failed of there
    with graph.as_default():
        v1.set_random_seed(SEED)
        v1.enable_resource_variables()
        with v1.variable_scope(v1.get_variable_scope(), use_resource=True):
            try:
                made = build()
            except (RuntimeError, AttributeError, NotImplementedError) as e:
                made, first = None, e  # as Keras does in a graph
    if isinstance(made, (tuple, list)) and len(made) == 2:
        return _of_graph(graph, name, *made)
    tf.keras.utils.set_random_seed(SEED)
    before = f"; in a graph of TensorFlow 1's style it failed: {_said(first)}" if first is not None else ""
    try:
        made = build()
    except Exception as e:
        raise CaptureError(f"the function failed: {_said(e)}{before}") from (first or e)
    if not isinstance(made, tuple) or len(made) != 4:
        raise CaptureError(f"the function returned neither (loss, train) nor (model, loss, batch, optimizer){before}") from first
    return _of_keras(name, *made)


def _said(e: BaseException) -> str:
    """An error's type and first line."""
    return ": ".join([type(e).__name__, *str(e).splitlines()[:1]])


def _of_graph(graph: Any, name: str, loss: Any, train: Any) -> Step:
    with graph.as_default():
        variables = v1.global_variables()
        for v in variables:
            if not hasattr(v, "handle") or v.handle.op.type != "VarHandleOp":
                raise CaptureError(f"variable {v.name} is no resource variable: make it by get_variable")
        init = v1.global_variables_initializer()
    definition = graph.as_graph_def(add_shapes=True)
    with v1.Session(graph=graph, config=v1.ConfigProto(device_count={"GPU": 0}, intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, use_per_session_threads=True)) as s:
        s.run(init)
        values = dict(zip([v.handle.op.name for v in variables], s.run(variables)))
    return alone(definition, name, loss.name, [train.name if isinstance(train, tf.Operation) else train.op.name], values)


def _of_keras(name: str, model: Any, loss: Any, batch: Any, optimizer: Any) -> Step:
    x, y = (tf.constant(b) for b in batch)
    model(x)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        optimizer.apply(tape.gradient(value, model.trainable_variables), model.trainable_variables)
        return value

    made = step.get_concrete_function()
    held = {id(v.handle): v for v in made.graph.variables}
    definition = made.graph.as_graph_def(add_shapes=True)
    node = {n.name: n for n in definition.node}
    values: dict[str, np.ndarray] = {}
    for outer, inner in made.graph.captures:
        n = node[inner.op.name]
        v = held.get(id(outer))
        if v is not None:
            values[n.name] = v.numpy()
            n.op = "VarHandleOp"
            n.attr.clear()
            n.attr["dtype"].type = v.dtype.as_datatype_enum
            n.attr["shape"].shape.CopyFrom(v.shape.as_proto())
            n.attr["_output_shapes"].list.shape.add()
        elif outer.dtype == tf.resource:
            raise CaptureError(f"node {n.name} is a resource that is no variable")
        else:
            proto = tf.make_tensor_proto(outer.numpy())
            n.op = "Const"
            n.attr.clear()
            n.attr["dtype"].type = proto.dtype
            n.attr["value"].tensor.CopyFrom(proto)
            n.attr["_output_shapes"].list.shape.add().CopyFrom(outer.shape.as_proto())
    # the function gives its result by an Identity behind everything; what it gives is the loss
    result = made.graph.outputs[0]
    while result.op.type == "Identity":
        result = result.op.inputs[0]
    return alone(definition, name, result.name, [op.name for op in made.graph.control_outputs], values)
