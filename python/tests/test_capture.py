"""Capture: counts against those worked out by hand, modules, aliases, updates, errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

import models
import pytest
import releases
import torch
import torch.nn as nn
import torch.nn.functional as F
from placer_torch import CaptureError, FormatError, capture, cli, flops, graph, load, schedule
from placer_torch import state as states
from placer_torch.run_inprocess import InProcess

KEYS = {"name", "kind", "phase", "dtype", "flops", "gemm", "bytes", "resident", "params", "workspace", "layer", "group", "forward", "in", "control", "out", "module", "precise"}


def captured(name: str, **options: Any) -> tuple[Any, dict[str, dict[str, Any]]]:
    model, loss, batch, optimizer = getattr(models, name)(**options)
    p = capture(model, loss, batch, optimizer, name=name)
    doc = json.loads(graph.text(p))
    assert doc["format"] == "placer graph 1"
    return p, {o["name"]: o for o in doc["ops"]}


@pytest.mark.parametrize("name", ["lstm", "gpt2", "inception", "moe", "resnet", "gnmt", "tiny"])
def test_file(name: str) -> None:
    """Names are unique, references exist and point back, keys are the format's, bytes repeat."""
    small = {"lstm": {"time": 4}, "gnmt": {"time": 3}, "gpt2": {"layers": 1}, "moe": {"layers": 1}, "inception": {"blocks": 1}}.get(name, {})
    p, ops = captured(name, **small)
    assert len(ops) == len(p.ops)
    seen: dict[str, int] = {}
    for o in ops.values():
        assert set(o) <= KEYS
        assert ":" not in o["name"]
        for x in o.get("in", []):
            producer, _, out = x.partition(":")
            assert int(out or 0) < seen[producer]
        for x in o.get("control", []):
            assert x in seen
        if "forward" in o:
            assert o["phase"] == "backward" and ops[o["forward"]].get("phase") is None
        seen[o["name"]] = len(o.get("out", []))
    model, _, _, _ = getattr(models, name)(**small)
    modules = {k for k, _ in model.named_modules()}
    assert {o.get("module", "") for o in ops.values()} <= modules
    assert sum(o.get("params", 0) for o in ops.values()) == sum(q.numel() for q in model.parameters())
    again, _ = captured(name, **small)
    assert graph.text(again) == graph.text(p)


def test_gpt2_counts() -> None:
    """Products of a decoder by hand: 2 m n k each; backward has two for each, but
    for the embedding none; attention's two batched products likewise."""
    layers, d, batch, t, vocab, heads = 2, 64, 2, 16, 100, 4
    p, ops = captured("gpt2", layers=layers, width=d, batch=batch, time=t, vocab=vocab, heads=heads)
    rows = batch * t
    linear = layers * 2 * rows * (d * 3 * d + d * d + 2 * d * 4 * d) + 2 * rows * d * vocab
    attention = layers * 2 * (2 * batch * heads * t * t * (d // heads))
    products = {k: sum(o.get("flops", 0) for o in ops.values() if o["kind"] in ("MatMul", "BatchMatMulV2") and o.get("phase", "forward") == k) for k in ("forward", "backward")}
    assert products == {"forward": linear + attention, "backward": 2 * (linear + attention)}
    block = 12 * d * d + 13 * d
    assert sum(o.get("params", 0) for o in ops.values()) == vocab * d + t * d + layers * block + 2 * d  # the head shares the embedding
    assert all(o["gemm"][0] * o["gemm"][1] * o["gemm"][2] * o["gemm"][3] * 2 == o["flops"] for o in ops.values() if "gemm" in o)


def test_resnet_counts() -> None:
    """The first convolution: 7x7, stride 2, 3 -> 8 on 32x32; its gradient has no part for the input."""
    _, ops = captured("resnet", batch=4)
    first = next(o for o in ops.values() if o["kind"] == "Conv2D")
    assert first["flops"] == 2 * 4 * 16 * 16 * 8 * 3 * 49 and first["gemm"] == [1, 4 * 16 * 16, 8, 3 * 49]
    gradient = next(o for o in ops.values() if o.get("forward") == first["name"] and o["kind"] == "ConvGrad")
    assert gradient["flops"] == first["flops"] and gradient["module"] == "conv1" and gradient["gemm"] == first["gemm"]
    second = [o for o in ops.values() if o["kind"] == "Conv2D"][1]  # 3x3, 8 -> 8 on 8x8: two products, of the input and of the weight
    gradient = next(o for o in ops.values() if o.get("forward") == second["name"] and o["kind"] == "ConvGrad")
    assert second["gemm"] == [1, 4 * 8 * 8, 8, 72] and gradient["gemm"] == [2, 4 * 8 * 8, 8, 72] and gradient["flops"] == 2 * second["flops"]
    assert {"assign.bn1.running_mean", "assign.bn1.running_var", "assign.bn1.num_batches_tracked"} <= set(ops)
    assert all(ops[f"update.{k}"]["kind"] == "ApplyMomentum" for k in ("conv1.weight", "fc.bias"))


def test_precise_products() -> None:
    """Products of f32 are precise by torch's default, convolutions are not."""
    _, ops = captured("resnet", batch=4)
    assert [bool(o.get("precise")) for o in ops.values() if "gemm" in o] == [o["kind"] == "MatMul" for o in ops.values() if "gemm" in o]
    try:
        torch.set_float32_matmul_precision("high")
        _, ops = captured("resnet", batch=4)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert not any(o.get("precise") for o in ops.values())


def test_bytes_of_several_kernels() -> None:
    """What runs as several kernels counts what each of them moves."""
    _, ops = captured("resnet", batch=4)
    image = 4 * 4 * 8 * 16 * 16  # batch norm behind the first convolution: read for the statistics, read and written
    assert ops["_native_batch_norm_legit_functional"]["bytes"] == 3 * image + 4 * 8 * 4 + 4 * 4 * 8
    assert ops["update.fc.bias"]["bytes"] == 8 * 10 * 4  # momentum: mul, add, add
    _, ops = captured("tiny", optimizer="adam")
    assert ops["update.0.weight"]["bytes"] == 18 * 16 * 8 * 4
    _, ops = captured("gpt2", layers=1, width=32, batch=2, time=8, vocab=50, heads=2)
    scores, mask = 4 * 2 * 2 * 8 * 8, 8 * 8
    assert ops["masked_fill"]["bytes"] == 4 * scores + mask


def test_bags_read_the_rows_that_are_looked_up() -> None:
    """And not the whole table, of which a step's samples name a few rows. Its gradient is as large."""

    def step(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        return model(batch).square().mean()

    model = nn.EmbeddingBag(1000, 16, mode="sum")
    batch = torch.randint(1000, (8, 3))
    program = capture(model, step, batch, torch.optim.SGD(model.parameters(), lr=0.1))
    ops = {o["kind"]: o for o in json.loads(graph.text(program))["ops"]}
    forward = ops["EmbeddingBag"]
    assert forward["flops"] == 8 * 3 * 16
    assert 8 * 3 * 16 * 4 + 8 * 16 * 4 + 8 * 3 * 8 <= forward["bytes"] < 1000 * 16 * 4 / 10
    assert ops["UnsortedSegmentSum"]["bytes"] > 1000 * 16 * 4


def products(ops: dict[str, dict[str, Any]], phase: str) -> int:
    return sum(o.get("flops", 0) for o in ops.values() if o["kind"] in ("MatMul", "BatchMatMulV2", "Conv2D") and o.get("phase", "forward") == phase)


def test_resnet50_counts() -> None:
    """Torchvision's ResNet-50 at 224: 25,557,032 parameters, and by the table of the
    paper 4.09 G multiply-adds an image."""
    _, ops = captured("resnet50", batch=2)
    assert sum(o.get("params", 0) for o in ops.values()) == 25_557_032
    macs, c, size = 112 * 112 * 64 * 3 * 49, 64, 56
    for stage, (k, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for b in range(blocks):
            before, size = size, size // 2 if stage and not b else size
            macs += before**2 * c * k + size**2 * (9 * k * k + 4 * k * k) + (size**2 * c * 4 * k if not b else 0)
            c = 4 * k
    assert products(ops, "forward") == 2 * 2 * (macs + 2048 * 1000)
    assert ops["update.layer3.5.conv2.weight"]["module"] == "layer3.5.conv2" and ops["update.layer3.5.conv2.weight"]["layer"] == 13


def test_llama_counts() -> None:
    """Products of a decoder with grouped queries and gated MLPs, by hand; backward has two for each."""
    n, d, heads, kv, hidden, vocab, t = 3, 64, 8, 2, 160, 300, 12
    _, ops = captured("llama", layers=n, width=d, heads=heads, kv_heads=kv, hidden=hidden, vocab=vocab, batch=2, time=t)
    weights = n * (2 * d * d + 2 * d * kv * (d // heads) + 3 * d * hidden) + d * vocab
    assert sum(o.get("params", 0) for o in ops.values()) == weights + d * vocab + (2 * n + 1) * d
    forward = 2 * 2 * t * weights + n * 2 * (2 * 2 * t * t * d)
    assert products(ops, "forward") == forward and products(ops, "backward") == 2 * forward


def test_moe_counts() -> None:
    """A router and experts that see half of the tokens each: their products and parameters by hand."""
    n, d, batch, t, vocab, experts = 2, 32, 2, 16, 50, 4
    _, ops = captured("moe", layers=n, width=d, batch=batch, time=t, vocab=vocab, experts=experts)
    rows, room = batch * t, batch * t // 2
    expert = 2 * room * 8 * d * d
    attention = 2 * rows * 4 * d * d + 2 * 2 * batch * t * t * d
    forward = n * (attention + 2 * rows * d * experts + experts * expert) + 2 * rows * d * vocab
    assert products(ops, "forward") == forward and products(ops, "backward") == 2 * forward
    block = 4 * d * d + 4 * d + 4 * d + d * experts + experts * (8 * d * d + 5 * d)
    assert sum(o.get("params", 0) for o in ops.values()) == vocab * d + t * d + n * block + 2 * d


def test_layers() -> None:
    """Elements of lists in turn, those of encoder and decoder each from 1; what stands outside belongs to the layer before it."""
    p, ops = captured("gnmt", layers=3, time=2, hidden=8, vocab=20)
    found = {(o.get("module", ""), o.get("layer", 0)) for o in ops.values()}
    assert found == {(f"{s}.{k}", k + 1) for s in ("encoder", "decoder") for k in range(3)} | {("attention", 3), ("attention.query", 3), ("head", 3), ("source", 0), ("target", 0), ("", 0)}
    _, ops = captured("resnet")
    assert {o["layer"] for o in ops.values() if o.get("module", "").startswith("layer2.1")} == {4}
    assert not any("layer" in o for o in captured("lstm", layers=0, time=2)[1].values())


def test_lstm_counts() -> None:
    batch, time, layers, d, vocab = 4, 5, 2, 16, 30
    _, ops = captured("lstm", batch=batch, time=time, layers=layers, hidden=d, vocab=vocab)
    forward = time * layers * 2 * (2 * batch * d * 4 * d) + time * 2 * batch * d * vocab
    products = [o for o in ops.values() if o["kind"] == "MatMul"]
    assert sum(o["flops"] for o in products if "phase" not in o) == forward
    # no gradient goes to the initial state: its product with the weight is missing in each layer
    assert sum(o["flops"] for o in products if o.get("phase") == "backward") == 2 * forward - layers * 2 * batch * d * 4 * d


class Experts(torch.nn.Module):
    """Each row by the expert of its group, as mixtures have them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 16, 32))

    def forward(self, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        return torch._grouped_mm(x, self.weight, ends)


@releases.traced_groups
def test_products_of_groups_of_rows() -> None:
    """24 rows in 4 groups: 2 x 24 x 32 x 16 operations, and as many for each gradient."""
    model, rows = Experts(), torch.randn(24, 16, requires_grad=True)
    p = capture(model, lambda m, b: (m(b[0] * 2, b[1]) ** 2).mean(), (rows, torch.tensor([3, 9, 9, 24], dtype=torch.int32)), torch.optim.SGD(model.parameters(), lr=0.1))
    found = [o for o in json.loads(graph.text(p))["ops"] if o["kind"].startswith("GroupedMatMul")]
    assert [(o.get("phase", "forward"), o["gemm"], o["flops"]) for o in found] == [("forward", [1, 24, 32, 16], 2 * 24 * 32 * 16), ("backward", [1, 16, 32, 24], 2 * 24 * 32 * 16)]
    assert flops.grouped((24, 32), (4, 32, 16)) == (1, 24, 16, 32)  # the gradient of the rows
    assert flops.grouped((4, 5, 16), (4, 16, 8)) == (4, 5, 8, 16) and flops.grouped((4, 5, 16), (16, 24)) == (1, 5, 24, 16)


def test_modules() -> None:
    """Forward and backward products carry the module that they belong to."""
    p, ops = captured("gpt2", layers=2, width=32, batch=2, time=8, vocab=50)
    for phase in ("forward", "backward"):
        found = {o.get("module") for o in ops.values() if o["kind"] == "MatMul" and o.get("phase", "forward") == phase}
        assert found == {f"h.{k}.{m}" for k in (0, 1) for m in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")} | {"lm_head"}
    calls = [o for o in p.ops if o.role == "call"]
    assert sum(o.module != "" for o in calls) / len(calls) > 0.9


def test_gradients_within_the_loss() -> None:
    """A gradient penalty is forward computation, in the modules of the ops whose gradients it
    takes: no forward op reads a backward one, which placer refuses."""

    def loss(m: Any, x: torch.Tensor) -> torch.Tensor:
        x = x.clone().requires_grad_()
        y = m(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y.square().mean() + (g.norm(dim=1) - 1).square().mean()

    p = capture(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)), loss, torch.randn(8, 8))
    assert not [o.name for o in p.ops for r in o.inputs() if o.phase == "forward" and p.ops[r.op].phase == "backward"]
    products = [(o.get("phase", "forward"), o["module"]) for o in graph.docs(p) if o["kind"] == "MatMul"]
    assert sorted(products) == [("backward", "0")] * 3 + [("backward", "2")] * 3 + [("forward", "0")] * 2 + [("forward", "2")] * 2


def test_aliases() -> None:
    """A view is in its producer's group, an update in its parameter's, and waits for the parameter's readers."""
    p, ops = captured("tiny", optimizer="adam")
    for o in p.ops:
        if o.view:
            assert ops[o.name]["group"] == ops[p.ops[next(o.inputs()).op].name]["group"]
    update = ops["update.0.weight"]
    assert update["kind"] == "ApplyAdam" and update["phase"] == "update" and "out" not in update
    assert {ops[k]["group"] for k in ("0.weight", "0.weight.exp_avg", "0.weight.exp_avg_sq")} == {update["group"]}
    late = graph.update_control(p)
    number = {o.name: i for i, o in enumerate(p.ops)}
    for k in ("0.weight", "3.weight"):
        readers = [i for i, o in enumerate(p.ops) if o.role == "call" and not o.view and number[k] in {p.root[r.op] for r in o.inputs()}]
        assert readers and all(ends_before(p, late, i, number[f"update.{k}"]) for i in readers)
    assert late[number["update.3.weight"]], "the gradient of the layer below reads it beside its own"


def ends_before(p: Any, control: dict[int, list[int]], i: int, j: int) -> bool:
    """Whether references and control dependencies lead from op i to op j."""
    left, seen = [j], set[int]()
    while left:
        k = left.pop()
        if k == i:
            return True
        if k not in seen:
            seen.add(k)
            left += [r.op for r in p.ops[k].inputs()] + control.get(k, [])
    return False


def test_in_place_code() -> None:
    """In-place ops of the model's code become values: no op writes what another reads."""
    p, ops = captured("resnet")
    assert not any(o.target.split(".")[1].endswith("_") for o in p.ops if o.role == "call")


def test_nothing_is_computed() -> None:
    """A 70B decoder on the meta device, one block of eighty, without its memory."""
    with torch.device("meta"):
        m = models.Decoder(4, 8192, 64, 32000, 128)
    batch = (torch.zeros(1, 128, dtype=torch.long), torch.zeros(1, 128, dtype=torch.long))
    p = capture(m, models.cross_entropy, batch, torch.optim.AdamW(m.parameters()))
    d = 8192
    assert sum(s.elements for o in p.ops if o.role == "parameter" for s in o.outputs if s) == 4 * (12 * d * d + 13 * d) + (32000 + 128) * d + 2 * d


def test_model_is_not_changed() -> None:
    model, loss, batch, optimizer = models.resnet()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    capture(model, loss, batch, optimizer)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())


def test_saved(tmp_path: Any) -> None:
    p, _ = captured("resnet")
    p.save(str(tmp_path / "program.pt"))
    q = load(str(tmp_path / "program.pt"))
    assert graph.text(q) == graph.text(p) and repr(q.ops) == repr(p.ops) and q.outputs == p.outputs
    assert states.equal(q.batch.values(), p.batch.values())


def bad(doc: dict[str, Any], change: Any) -> None:
    """Changes the first op that is a call."""
    change(next(o for o in doc["ops"] if o["role"] == "call"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: bad(d, lambda o: o["kwargs"]["dict"].update({"a=__import__('os').mkdir('made'), b": 1})), "is no argument's name"),
        (lambda d: bad(d, lambda o: o["kwargs"]["dict"].update({"class": 1})), "'class' is no argument's name"),
        (lambda d: bad(d, lambda o: o.update(args={"tuple": [{"ref": ("0_0, __import__('os').mkdir('made')", 0)}]})), "there is no tensor"),
        (lambda d: bad(d, lambda o: o.update(args={"tuple": [{"ref": (10**6, 0)}]})), "there is no tensor 1000000:0"),
        (lambda d: bad(d, lambda o: o.update(args={"tuple": [{"torch": "load"}]})), "torch.load is no layout"),
        (lambda d: bad(d, lambda o: o.update(target="load_library")), "load_library is no op of a step"),
        (lambda d: bad(d, lambda o: o.update(target="aten.from_file.default")), "is no op of a step"),
        (lambda d: bad(d, lambda o: o.update(role="update", target="exec")), "unknown update exec"),
        (lambda d: bad(d, lambda o: o.update(draws="0, t, 0); __import__('os').mkdir('made'); (0")), "draws the numbers of op"),
        (lambda d: bad(d, lambda o: o.update(draws=10**6)), "draws the numbers of op 1000000"),
        (lambda d: d.update(outputs=[("0", 0)]), "there is no tensor '0':0"),
        (lambda d: d.pop("batch"), "damaged: KeyError"),
    ],
)
def test_a_file_is_no_code(change: Any, says: str, tmp_path: Any, monkeypatch: Any) -> None:
    """What a file has goes into generated source: text in the place of a name or a number is refused."""
    monkeypatch.chdir(tmp_path)
    p, _ = captured("tiny")
    p.save("program.pt")
    doc = torch.load("program.pt", weights_only=True)
    change(doc)
    torch.save(doc, "program.pt")
    with pytest.raises(FormatError, match=says):
        q = load("program.pt")
        InProcess(q, schedule.single(schedule.ops(q)), states.example(q)).step(states.batch(q))
    assert os.listdir() == ["program.pt"]


@pytest.mark.parametrize(
    "make",
    [
        lambda q: torch.optim.SGD(q, lr=0.1),
        lambda q: torch.optim.SGD(q, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
        lambda q: torch.optim.SGD(q, lr=0.1, momentum=0.9, dampening=0.1),
        lambda q: torch.optim.Adam(q, lr=0.01, weight_decay=0.1, foreach=False),
        lambda q: torch.optim.AdamW(q, lr=0.01, foreach=False),
    ],
    ids=["sgd", "nesterov", "dampening", "adam", "adamw"],
)
def test_updates_have_the_optimizers_bits(make: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    optimizer = make(model.parameters())
    batch = (torch.randn(6, 8), torch.randint(0, 4, (6,)))
    p = capture(model, models.cross_entropy, batch, optimizer)
    run = InProcess(p, schedule.single(schedule.ops(p)), states.of_model(p, model))
    for _ in range(4):
        optimizer.zero_grad()
        loss = models.cross_entropy(model, batch)
        loss.backward()
        optimizer.step()
        (mine,), _ = run.step(states.batch(p))
        assert torch.equal(mine, loss.detach())
    assert all(torch.equal(run.state[k], v) for k, v in model.named_parameters())


def test_inference() -> None:
    model, _, batch, _ = models.gpt2(layers=1, width=32, time=8, vocab=40)
    p = capture(model, None, (batch[0],))
    assert not p.training and all(o.phase == "forward" for o in p.ops)
    (out,), _ = InProcess(p, schedule.single(schedule.ops(p)), states.of_model(p, model)).step(states.batch(p))
    with torch.no_grad():
        assert torch.equal(out, model(batch[0]))


class Branch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x)
        return y if y.sum() > 0 else -y


class Chosen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)[x[:, 0] > 0]


@pytest.mark.parametrize(("model", "says"), [(Branch(), ("aten._local_scalar_dense", "torch.where")), (Chosen(), ("aten.nonzero", "mask"))])
def test_what_cannot_be_traced_is_named(model: nn.Module, says: tuple[str, ...]) -> None:
    with pytest.raises(CaptureError) as e:
        capture(model, lambda m, b: m(b).sum(), torch.randn(3, 4))
    assert all(s in str(e.value) for s in says), str(e.value)


@pytest.mark.parametrize(
    ("loss", "optimizer", "says"),
    [
        (lambda m, b: m(b), None, "has to return a scalar"),
        (lambda m, b: m(b).sum(), lambda q: torch.optim.Adam(q, differentiable=True), "differentiable"),
        (lambda m, b: m(b).sum(), lambda q: torch.optim.LBFGS(q), "takes torch.optim's SGD, Adam, AdamW, Adadelta, Adafactor"),
        (None, lambda q: torch.optim.SGD(q, lr=1), "without a loss"),
    ],
)
def test_wrong_arguments(loss: Any, optimizer: Any, says: str) -> None:
    m = nn.Linear(4, 4)
    with pytest.raises(CaptureError, match=says):
        capture(m, loss, torch.randn(3, 4), optimizer(m.parameters()) if optimizer else None)


def test_parameters_of_the_optimizer_alone() -> None:
    """A head that the loss holds and not the model was never updated, without a word."""
    body, head = nn.Linear(4, 4), nn.Linear(4, 2)
    with pytest.raises(CaptureError, match="holds 2 parameters that the model does not"):
        capture(body, lambda m, b: head(m(b)).sum(), torch.randn(3, 4), torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1))


def test_library_lstm_and_attention() -> None:
    """nn.LSTM becomes its time steps; scaled_dot_product_attention stays one op."""

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(8, 8, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y, _ = self.rnn(x)
            return y + F.scaled_dot_product_attention(y[:, None], y[:, None], y[:, None], is_causal=True)[:, 0]

    m = Both()
    p = capture(m, lambda f, b: f(b).square().mean(), torch.randn(2, 5, 8), torch.optim.SGD(m.parameters(), lr=0.1))
    assert sum(o.module == "rnn" and graph.kind(p, o) == "MatMul" for o in p.ops) >= 5
    assert sum("scaled_dot_product" in o.target for o in p.ops) == 2
    work = [(graph.kind(p, o), flops.work(p, o).gemm) for o in p.ops if "scaled_dot_product" in o.target]
    assert work == [("Attention", (2, 5, 3, 2 * 8)), ("AttentionGrad", (2, 5, 3, 5 * 8))]  # 5 queries see 3 keys in the mean
    run = InProcess(p, schedule.single(schedule.ops(p)), states.of_model(p, m))
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    for _ in range(2):
        (loss,), _ = run.step(states.batch(p))
        optimizer.zero_grad()
        want = m(p.batch["batch.0"]).square().mean()
        want.backward()
        optimizer.step()
        torch.testing.assert_close(loss, want.detach())
    torch.testing.assert_close({k: run.state[k] for k, _ in m.named_parameters()}, {k: v.detach() for k, v in m.named_parameters()})


@pytest.mark.skipif("PLACER" not in os.environ, reason="$PLACER is not set: the program is not asked")
def test_placer_reads_it(tmp_path: Any) -> None:
    p, ops = captured("resnet")
    graph.write(p, str(tmp_path / "graph.json"))
    got = json.loads(subprocess.run([os.environ["PLACER"], "import", "--graph", str(tmp_path / "graph.json"), "--json"], capture_output=True, text=True, check=True).stdout)
    assert got["ops"] == len(ops)


class Asks(torch.nn.Module):
    """Checks a value unless it is traced, as HuggingFace's masks do."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling() and (x > 0).all():
            raise ValueError("all above 0")
        return self.linear(x)


def test_model_code_hears_that_it_is_traced() -> None:
    p = capture(Asks(), None, torch.ones(2, 4), name="asks")
    assert any(o.target.startswith("aten.addmm") for o in p.ops)
    assert not torch.compiler.is_compiling()
    with pytest.raises(ValueError, match="all above 0"):
        Asks()(torch.ones(2, 4))


class Mistaken(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, torch.ones(3, 5))  # the line that the test names


def test_errors_name_the_line() -> None:
    line = next(k for k, text in enumerate(open(__file__), 1) if "the line that the test names" in text)
    with pytest.raises(CaptureError, match=rf"test_capture.py:{line}\): "):
        capture(Mistaken(), lambda m, b: m(b).sum(), torch.ones(2, 4))
    with pytest.raises(CaptureError, match=r"test_capture.py:\d+\): AttributeError: .*no_such"):
        capture(Mistaken(), lambda m, b: m.no_such(b), torch.ones(2, 4))


def test_a_formatted_tensor() -> None:
    with pytest.raises(CaptureError, match=r"cannot trace the step in the model \(.*test_capture.py:\d+\): a tensor is formatted as a number; .* print it behind the step"):
        capture(nn.Linear(4, 1), lambda m, b: (f"{m(b).mean():.3f}", m(b).sum())[1], torch.ones(2, 4))


def test_fabrics_precision() -> None:
    def loss(m: Any, b: Any) -> torch.Tensor:
        raise RuntimeError("requires you to call `fabric.backward(loss)` instead of `loss.backward()`")

    with pytest.raises(CaptureError, match="give the model within, model.module, and put autocast into the loss"):
        capture(nn.Linear(4, 1), loss, torch.ones(2, 4))


MISTAKES = """
import torch
def late():
    return torch.ones(2).no_such
def asks(width):
    return {}[width]
def narrow():
    return torch.ones(2).view(3)
"""


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--model", "mistakes:late"], "mistakes.py:4: AttributeError: 'Tensor' object has no attribute 'no_such'"),
        (["--model", "mistakes:asks", "--args", '{"width": 3}'], "mistakes.py:6: KeyError: 3"),
        (["--model", "mistakes:narrow"], "mistakes.py:8: RuntimeError: shape '[3]' is invalid"),
        (["--model", "mistakes:asks"], "--model mistakes:asks: asks() missing 1 required"),
        (["--model", "mistakes:asks", "--args", "{"], "--args: Expecting property name"),
        (["--model", "mistakes:asks", "--args", "3"], "--args 3: want a JSON object"),
    ],
)
def test_errors_of_the_users_function(args: list[str], says: str, tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    """One line, which names the line of the function's code that failed."""
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mistakes", raising=False)
    assert cli.main(["capture", *args, "-o", "out"]) == 1
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1, err


def test_the_first_gradient_is_of_no_op() -> None:
    """The ones that backward begins with come from no forward op, whether or not one that has
    no gradient ran before the first that has: autograd numbers begin at 0 in each thread."""

    def run() -> None:
        p = capture(nn.Linear(4, 3), lambda m, x: m(x * 2).sum(), torch.randn(5, 4))
        found.append({o["name"]: o.get("forward") for o in graph.docs(p) if o.get("phase") == "backward"})

    found: list[dict[str, Any]] = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    run()
    assert found[0] == found[1] and found[0]["ones_like"] is None
