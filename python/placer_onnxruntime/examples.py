"""A GPT-2-like model in ONNX, written without a framework."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def gpt2(path: str, layers: int = 4, width: int = 256, heads: int = 4, tokens: int = 64, batch: int = 4, vocabulary: int = 2000) -> None:
    """Writes the inference graph of a decoder with learned positions, as GPT-2 has. Nodes
    carry their module's path as torch's exporter writes it."""
    rng = np.random.RandomState(1)
    nodes: list[Any] = []
    weights: list[Any] = []
    scope = ""

    def weight(value: np.ndarray) -> str:
        weights.append(numpy_helper.from_array(value, f"{scope}.w{len(weights)}"))
        return str(weights[-1].name)

    def normal(*shape: int) -> str:
        return weight((rng.randn(*shape) * 0.05).astype("f"))

    def node(kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{scope}.{kind}_{len(nodes)}"
        made = helper.make_node(kind, list(inputs), [name + ".out"], name, **attributes)
        entry = made.metadata_props.add()
        entry.key, entry.value = "pkg.torch.onnx.name_scopes", repr(["", *[scope.rsplit(".", k)[0] for k in range(scope.count("."), -1, -1)], kind.lower()])
        nodes.append(made)
        return name + ".out"

    def linear(x: str, rows: int, columns: int) -> str:
        return node("Add", node("MatMul", x, normal(rows, columns)), normal(columns))

    def norm(x: str) -> str:
        return node("LayerNormalization", x, weight(np.ones(width, "f")), weight(np.zeros(width, "f")), axis=-1)

    scope = "wte"
    x = node("Gather", normal(vocabulary, width), "ids")
    scope = "wpe"
    x = node("Add", x, normal(tokens, width))
    split = np.array([batch, tokens, heads, width // heads], np.int64)
    mask = np.triu(np.full((tokens, tokens), -1e9, "f"), 1)
    for k in range(layers):
        scope = f"h.{k}.ln_1"
        y = norm(x)
        scope = f"h.{k}.attn"
        q, key, v = (node("Transpose", node("Reshape", linear(y, width, width), weight(split)), perm=order) for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = node("Add", node("Mul", node("MatMul", q, key), weight(np.array((width // heads) ** -0.5, "f"))), weight(mask))
        a = node("Transpose", node("MatMul", node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        x = node("Add", x, linear(node("Reshape", a, weight(np.array([batch, tokens, width], np.int64))), width, width))
        scope = f"h.{k}.ln_2"
        y = norm(x)
        scope = f"h.{k}.mlp"
        y = linear(node("Gelu", linear(y, width, 4 * width), approximate="tanh"), 4 * width, width)
        x = node("Add", x, y)
    scope = "ln_f"
    x = norm(x)
    scope = "lm_head"
    nodes.append(helper.make_node("MatMul", [x, normal(width, vocabulary)], ["logits"], "lm_head.MatMul"))
    graph = helper.make_graph(
        nodes, "gpt2",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [batch, tokens])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, tokens, vocabulary])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
