"""A training step of TensorFlow 1's style, of Keras, or as a function, as a Step."""

from __future__ import annotations

import collections
from typing import Any, Callable

import numpy as np

from placer_runtime.errors import CaptureError

from .inline import inlined
from .runtime import tf, v1
from .step import Step, alone

SEED = 1
FORMS = "(loss, train), (step, batch) or (model, loss, batch, optimizer)"


def capture(build: Callable[[], Any], name: str) -> Step:
    """The step that build makes. It returns (loss, train) of nodes that it adds to the
    default graph; or (model, loss, batch, optimizer) of Keras: batch is (inputs,
    labels), and loss takes labels and outputs; or (step, batch): a function, and a tuple
    of its arguments, which returns the loss, or a structure whose first tensor, or whose
    entry "loss", is the loss. The same seed gives the same values."""
    first: BaseException | None = None  # what the function failed of without a graph
    if tf.executing_eagerly():
        tf.keras.utils.set_random_seed(SEED)
        try:
            with v1.variable_scope("", custom_getter=_none_without_graph):
                made = build()
        except _OldStyle:
            made = None
        except Exception as e:
            made, first = None, None if "eager execution" in str(e) else e  # placeholders and optimizers of TensorFlow 1 say so
        if isinstance(made, tuple) and len(made) in (2, 4) and callable(made[0]):
            return _of_function(name, *made) if len(made) == 2 else _of_keras(name, *made)
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(SEED)
        v1.enable_resource_variables()
        with v1.variable_scope(v1.get_variable_scope(), use_resource=True):
            try:
                made = build()
            except Exception as e:
                if first is None:
                    raise CaptureError(f"the function failed: {_said(e)}") from e
                raise CaptureError(f"the function failed: {_said(first)}; in a graph of TensorFlow 1's style it failed: {_said(e)}") from first
    if not isinstance(made, (tuple, list)) or len(made) != 2 or callable(made[0]):
        before = f"; without a graph it failed: {_said(first)}" if first is not None else ""
        raise CaptureError(f"the function returned none of {FORMS}{before}") from first
    return _of_graph(graph, name, *made)


class _OldStyle(BaseException):
    """A variable that get_variable makes is of TensorFlow 1's style. It is no Exception, so
    that the function does not catch it."""


def _none_without_graph(*args: Any, **kwargs: Any) -> Any:
    raise _OldStyle


def _said(e: BaseException) -> str:
    """An error's type and first line."""
    return ": ".join([type(e).__name__, *str(e).splitlines()[:1]])


def _of_graph(graph: Any, name: str, loss: Any, train: Any) -> Step:
    with graph.as_default():
        variables = v1.global_variables() + v1.local_variables()
        trained = {v.handle.op.name for v in v1.trainable_variables() if hasattr(v, "handle")}
        for v in variables:
            if not hasattr(v, "handle") or v.handle.op.type != "VarHandleOp":
                raise CaptureError(f"variable {v.name} is no resource variable: make it by get_variable")
        init = [v1.global_variables_initializer(), v1.local_variables_initializer()]
    with v1.Session(graph=graph, config=v1.ConfigProto(device_count={"GPU": 0}, intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, use_per_session_threads=True)) as s:
        s.run(init)
        values = dict(zip([v.handle.op.name for v in variables], s.run(variables)))
    definition = inlined(graph)
    for n in definition.node:
        if n.op == "VarHandleOp":
            n.attr["_trainable"].b = n.name in trained
    return alone(definition, name, loss.name, [train.name if isinstance(train, tf.Operation) else train.op.name], values)


def _of_keras(name: str, model: Any, loss: Any, batch: Any, optimizer: Any) -> Step:
    """As fit trains: the model's own losses count, and an optimizer may scale the loss."""
    x, y = _tensors(tuple(batch))
    model(x)
    optimizer.build(model.trainable_variables)
    scaled = getattr(optimizer, "scale_loss", lambda value: value)

    def step() -> Any:
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
            if model.losses:
                value = value + tf.add_n([tf.cast(v, value.dtype) for v in model.losses])
            high = scaled(value)
        optimizer.apply(tape.gradient(high, model.trainable_variables), model.trainable_variables)
        return value

    return _of_function(name, step, (), [*model.variables, *optimizer.variables], model.trainable_variables)


def _of_function(name: str, step: Any, batch: Any, variables: Any = (), trained: Any = None) -> Step:
    """variables: of Keras, whose names say more than those of the function's captures;
    trained: those of them that are; without it each variable says so itself."""
    weights = None if trained is None else {id(v.value.handle) for v in trained if hasattr(v.value, "handle")}
    arguments = _tensors(tuple(batch) if isinstance(batch, (tuple, list)) else (batch,))
    function = step if hasattr(step, "get_concrete_function") else tf.function(step, autograph=True)
    try:
        made = function.get_concrete_function(*arguments)
    except Exception as e:
        raise CaptureError(f"the step failed while it was traced: {_said(e)}") from e
    held = {id(v.handle): v for v in made.graph.variables}
    called = {id(v.value.handle): v.path for v in variables if hasattr(v.value, "handle")}
    given = dict(zip((t.op.name for t in made.graph.inputs), tf.nest.flatten(arguments, expand_composites=True)))
    outer = {inner.op.name: t for t, inner in made.graph.captures}
    definition = made.graph.as_graph_def(add_shapes=True)
    values: dict[str, np.ndarray] = {}
    names: dict[str, str] = {}
    taken = collections.Counter(n.name for n in definition.node)
    for n in definition.node:
        t = outer.get(n.name, given.get(n.name) if n.op == "Placeholder" else None)
        if t is None:
            continue
        v = held.get(id(t))
        if v is not None:
            names[n.name] = _free(called.get(id(t)) or v.name.partition(":")[0], taken)
            values[names[n.name]] = v.numpy()
            n.op = "VarHandleOp"
            n.attr.clear()
            n.attr["dtype"].type = v.dtype.as_datatype_enum
            n.attr["shape"].shape.CopyFrom(v.shape.as_proto())
            n.attr["_output_shapes"].list.shape.add()
            n.attr["_trainable"].b = bool(v.trainable) if weights is None else id(t) in weights
        elif t.dtype in (tf.resource, tf.variant):
            raise CaptureError(f"node {n.name} is a resource that is no variable: a step has variables and tensors alone; read tables, datasets and iterators before it")
        else:
            proto = tf.make_tensor_proto(t.numpy())
            n.op = "Const"
            n.attr.clear()
            n.attr["dtype"].type = proto.dtype
            n.attr["value"].tensor.CopyFrom(proto)
            n.attr["_output_shapes"].list.shape.add().CopyFrom(t.shape.as_proto())
    _rename(definition, names)
    loss = _loss(made)
    while loss.op.type == "Identity":  # behind everything; what it gives is the loss
        loss = loss.op.inputs[0]
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    return alone(inlined(graph), name, loss.name, [op.name for op in made.graph.control_outputs], values)


def _tensors(batch: Any) -> Any:
    return tf.nest.map_structure(lambda b: b if tf.is_tensor(b) or isinstance(b, (tf.RaggedTensor, tf.SparseTensor)) else tf.constant(b), batch)


def _loss(made: Any) -> Any:
    """The symbolic tensor that a traced function gives as its loss."""
    outputs = made.graph.structured_outputs
    found = outputs["loss"] if isinstance(outputs, dict) and "loss" in outputs else next((t for t in tf.nest.flatten(outputs) if tf.is_tensor(t)), None)
    if found is None or found.shape.rank not in (0, None):
        raise CaptureError(f"the step returns {outputs}: its loss, a scalar, has to be the first tensor or the entry \"loss\"")
    return found


def _free(name: str, taken: collections.Counter[str]) -> str:
    while taken[name]:
        name += "_variable"
    taken[name] += 1
    return name


def _rename(graph: Any, names: dict[str, str]) -> None:
    """Gives nodes new names, in the inputs and colocation classes of all."""
    for n in graph.node:
        n.name = names.get(n.name, n.name)
        for i, k in enumerate(n.input):
            mark, bare = ("^", k[1:]) if k.startswith("^") else ("", k)
            node, colon, slot = bare.partition(":")
            if node in names:
                n.input[i] = mark + names[node] + colon + slot
        for i, c in enumerate(n.attr["_class"].list.s if "_class" in n.attr else ()):
            k = c.decode().removeprefix("loc:@")
            if k in names:
                n.attr["_class"].list.s[i] = ("loc:@" + names[k]).encode()
