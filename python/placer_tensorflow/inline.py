"""A graph without calls: the nodes of called functions are the graph's own."""

from __future__ import annotations

from typing import Any

from .runtime import tf, v1  # first: it sets what TensorFlow reads when it is imported

from tensorflow.python.framework import function_def_to_graph  # isort: skip  # noqa: E402

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")


def inlined(graph: Any) -> Any:
    """The definition of a graph, with shapes, whose calls of functions are replaced by the
    functions' nodes, and calls in these. What is compiled as a whole stays a call."""
    while True:
        definition = graph.as_graph_def(add_shapes=True)
        library = {f.signature.name: f for f in definition.library.function}
        calls = [n for n in definition.node if n.op in _CALLS and not _compiled(n, library)]
        if not calls:
            return definition
        bodies = {n.name: _body(graph, n, library) for n in calls}
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(_spliced(definition, bodies), name="")


def _compiled(n: Any, library: dict[str, Any]) -> bool:
    f = library.get(n.attr["f"].func.name)
    return f is None or n.attr["_XlaMustCompile"].b or f.attr["_XlaMustCompile"].b


def _body(graph: Any, n: Any, library: dict[str, Any]) -> Any:
    """The function that n calls as a graph, for the shapes that n gives it."""
    shapes = [t.shape for t in graph.get_operation_by_name(n.name).inputs]
    with graph.as_default():
        return function_def_to_graph.function_def_to_graph(library[n.attr["f"].func.name], input_shapes=shapes)


def _spliced(definition: Any, bodies: dict[str, Any]) -> Any:
    """What waited for a call waits for what the function does and returns; what a call
    waited for comes before each of its nodes."""
    made = v1.GraphDef(versions=definition.versions, library=definition.library)
    results = {k: [f"{k}/{t.op.name}:{t.value_index}" for t in b.outputs] for k, b in bodies.items()}
    behind = {k: [f"^{k}/{op.name}" for op in b.control_outputs] or [f"^{k}/{t.op.name}" for t in b.outputs] for k, b in bodies.items()}

    def moved(inputs: Any) -> list[str]:
        found: list[str] = []
        for i in inputs:
            name, _, slot = i.lstrip("^").partition(":")
            if name not in bodies:
                found.append(i)
            elif i.startswith("^"):
                found += behind[name]
            else:
                found.append(results[name][int(slot or 0)])
        data = [i for i in found if not i.startswith("^")]
        return data + list(dict.fromkeys(i for i in found if i.startswith("^")))

    for n in definition.node:
        if n.name not in bodies:
            x = made.node.add()
            x.CopyFrom(n)
            del x.input[:]
            x.input.extend(moved(n.input))
            if "_class" in x.attr:  # a call is on no device
                kept = [c for c in x.attr["_class"].list.s if c.decode().removeprefix("loc:@") not in bodies]
                del x.attr["_class"].list.s[:]
                x.attr["_class"].list.s.extend(kept)
            continue
        body = bodies[n.name]
        given = [i for i in n.input if not i.startswith("^")]
        waits = [i for i in n.input if i.startswith("^")]
        argument = {t.op.name: i for t, i in zip(body.inputs, given)}
        for inner in body.as_graph_def(add_shapes=True).node:
            x = made.node.add()
            x.CopyFrom(inner)
            x.name = f"{n.name}/{inner.name}"
            del x.input[:]
            if inner.name in argument:
                x.op = "Identity"
                x.attr.clear()
                x.attr["T"].type = inner.attr["dtype"].type
                x.input.extend(moved([argument[inner.name], *waits]))
                continue
            x.input.extend(("^" if i.startswith("^") else "") + f"{n.name}/{i.lstrip('^')}" for i in inner.input)
            x.input.extend(k for k in moved(waits) if k not in x.input)
            if "_class" in x.attr:
                own = [b"loc:@" + n.name.encode() + b"/" + c.removeprefix(b"loc:@") for c in x.attr["_class"].list.s]
                del x.attr["_class"].list.s[:]
                x.attr["_class"].list.s.extend(own)
    return made
