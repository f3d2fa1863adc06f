"""Small models of torchvision, timm, transformers and torch, exported to ONNX by
both exporters of torch, then optimised and quantised by ONNX Runtime: what placer reads is
held to the torch model and to the shapes that ONNX Runtime computes."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any, Callable

import numpy as np
import onnx
import onnx.inliner
import onnxruntime as ort
import pytest
import timm
import torch
import torch.nn as nn
import torchvision.models as M
import transformers as T
from onnxruntime.quantization import CalibrationDataReader, quantize_dynamic, quantize_static
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from placer_onnxruntime import session

PLACER = os.environ.get("PLACER", "")
V, B, S = 50, 2, 12
WIDTH: dict[str, Any] = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2)
ENCODER = dict(WIDTH, vocab_size=V, intermediate_size=32, max_position_embeddings=64)
DECODER = dict(ENCODER, pad_token_id=0, bos_token_id=1, eos_token_id=2, num_key_value_heads=1)
BOTH = dict(vocab_size=V, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32)


class Logits(nn.Module):
    """A model of transformers that takes tensors and gives one."""

    def __init__(self, m: nn.Module, *names: str) -> None:
        super().__init__()
        self.m, self.names = m, names

    def forward(self, *args: torch.Tensor) -> Any:
        y = self.m(**dict(zip(self.names, args)))
        return y if isinstance(y, torch.Tensor) else y[0]


class Past(nn.Module):
    """A step of a decoder with the keys and values before it."""

    def __init__(self, m: nn.Module) -> None:
        super().__init__()
        self.m = m

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, *past: torch.Tensor) -> Any:
        cache = T.DynamicCache()
        for i in range(len(past) // 2):
            cache.update(past[2 * i], past[2 * i + 1], i)
        y = self.m(input_ids=ids, attention_mask=mask, position_ids=torch.arange(ids.shape[1])[None] + past[0].shape[2], past_key_values=cache, use_cache=True)
        return (y.logits, *[t for layer in y.past_key_values.layers for t in (layer.keys, layer.values)])


class Spectrum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(17, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.view_as_real(torch.stft(x, 32, 8, window=torch.hann_window(32), return_complex=True)).square().sum(-1)
        return self.w(y.transpose(1, 2))


class Branch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.b(self.a(x)), lambda x: self.a(x), (x,))


class Resampled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c, self.t = nn.Conv2d(3, 6, 3, 2, 1), nn.ConvTranspose2d(6, 3, 4, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.interpolate(self.c(x), size=(10, 10), mode="bicubic")
        return self.t(nn.functional.adaptive_avg_pool2d(y, 5))


class First(nn.Module):
    def __init__(self, m: nn.Module) -> None:
        super().__init__()
        self.m = m

    def forward(self, x: torch.Tensor) -> Any:
        y = self.m(x)
        return y["out"] if isinstance(y, dict) else y[0]


def ids() -> torch.Tensor:
    return torch.randint(3, V, (B, S))


def picture(edge: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(B, 3, edge, edge),)


@dataclasses.dataclass
class Case:
    make: Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]
    opset: int
    dynamo: bool = True
    dims: dict[int, str] = dataclasses.field(default_factory=lambda: {0: "batch"})
    # Why FLOPs or parameters differ from torch's, where they do.
    flops: str = ""
    parameters: str = ""


def text(make: Any, config: Any) -> Callable[[], Any]:
    config.use_cache = False
    return lambda: (Logits(make(config), "input_ids"), (ids(),))


def vision(name: str, edge: int) -> Callable[[], Any]:
    return lambda: (getattr(M, name)(num_classes=10), picture(edge))


def of_timm(name: str, edge: int) -> Callable[[], Any]:
    def make() -> Any:
        try:
            return timm.create_model(name, num_classes=10, img_size=edge), picture(edge)
        except TypeError:  # a model of pictures of any size
            return timm.create_model(name, num_classes=10), picture(edge)

    return make


FOLDED = "the exporter folded normalisations"
CONSTANTS = "a tied weight stands twice, or a table of positions is cut to those in use"
CASES: dict[str, Case] = {
    "resnet18": Case(vision("resnet18", 32), 14, False, parameters=FOLDED),
    "efficientnet_b0": Case(vision("efficientnet_b0", 32), 18, False, parameters=FOLDED),
    "squeezenet": Case(vision("squeezenet1_1", 64), 17, False),
    "shufflenet": Case(vision("shufflenet_v2_x0_5", 32), 20, False, parameters=FOLDED),
    "vit of timm": Case(of_timm("vit_tiny_patch16_224", 32), 17, False),
    "nf_resnet26": Case(of_timm("nf_resnet26", 32), 17, False, parameters="gains of standardised weights that are zero or one are constants"),
    "bert": Case(text(T.BertForMaskedLM, T.BertConfig(**ENCODER)), 18, False, parameters=CONSTANTS),
    "bart": Case(lambda: (Logits(T.BartForConditionalGeneration(T.BartConfig(**BOTH, max_position_embeddings=64, use_cache=False)), "input_ids", "decoder_input_ids"), (ids(), ids())), 14, False, parameters=CONSTANTS),
    "lstm": Case(lambda: (First(nn.LSTM(8, 16, 2, bidirectional=True, batch_first=True)), (torch.randn(B, 10, 8),)), 20, False),
    "bert, dynamo": Case(text(T.BertForMaskedLM, T.BertConfig(**ENCODER)), 21, parameters=CONSTANTS),
    "vit": Case(lambda: (Logits(T.ViTForImageClassification(T.ViTConfig(**WIDTH, intermediate_size=32, image_size=16, patch_size=8)), "pixel_values"), picture(16)), 24),
    "llama with past": Case(lambda: (Past(T.LlamaForCausalLM(T.LlamaConfig(**DECODER, head_dim=8))), (torch.randint(3, V, (B, 1)), torch.ones(B, 6, dtype=torch.long), *[torch.randn(B, 1, 5, 8) for _ in range(4)])), 20, dims={}),
    "spectrum": Case(lambda: (Spectrum(), (torch.randn(B, 256),)), 18),
    "branch": Case(lambda: (Branch(), (torch.randn(B, 8),)), 23),
    "resampled": Case(lambda: (Resampled(), picture(16)), 22),
}  # fmt: skip


@dataclasses.dataclass
class Exported:
    path: str
    feed: dict[str, np.ndarray]
    dims: list[str]
    parameters: int
    forward: float
    step: float
    trained: int


def convolution_gradient(grad: Any, x: Any, w: Any, *args: Any, out_shape: Any = None) -> float:
    """A product for each gradient that is wanted, by groups: torch's own formula takes every
    group for the whole."""
    transposed, wanted = args[4], args[-1]
    rows = x if transposed else grad
    return 2.0 * rows[0] * float(np.prod(rows[2:])) * float(np.prod(w)) * sum(bool(m) for m in wanted[:2])


def attention_gradient(fn: Any) -> Any:
    """fn without the scores that fused kernels compute again."""

    def count(*args: Any, **kw: Any) -> float:
        return fn(*args, **kw) * 4 / 5

    count._get_raw = True  # type: ignore[attr-defined]  # fn takes tensors itself
    return count


def own_formulas() -> dict[Any, Any]:
    found: dict[Any, Any] = {torch.ops.aten.convolution_backward: convolution_gradient}
    for op, fn in flop_registry.items():
        if "attention" in str(op) and "backward" in str(op):
            found[op] = attention_gradient(fn)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> pathlib.Path:
    return tmp_path_factory.mktemp("models")


MADE: dict[str, Exported] = {}


def export(name: str, folder: pathlib.Path) -> Exported:
    if name in MADE:
        return MADE[name]
    c = CASES[name]
    torch.manual_seed(0)
    m, args = c.make()
    with torch.no_grad():  # equal weights are one in the file
        for t in [*m.parameters(), *[b for n, b in m.named_buffers() if "running_" in n]]:
            t.add_(torch.rand_like(t) * 0.01)
    m.eval()
    with torch.no_grad(), FlopCounterMode(display=False) as forward:
        m(*args)
    step = FlopCounterMode(display=False, custom_mapping=own_formulas())
    with step:
        y = m(*args)
        loss = sum(t.float().sum() for t in (y if isinstance(y, tuple) else (y,)) if t.requires_grad)
        if isinstance(loss, torch.Tensor):  # a conditional has none
            loss.backward()
    path = str(folder / (name.replace(" ", "_").replace(",", "") + ".onnx"))
    names = [f"x{k}" for k in range(len(args))]
    kw: dict[str, Any] = {}
    if c.dims and c.dynamo:
        shapes = tuple(dict(c.dims) for _ in args)
        kw = dict(dynamic_shapes=(shapes,) if isinstance(m, Logits) else shapes)
    elif c.dims:
        kw = dict(dynamic_axes={n: c.dims for n in names})
    with torch.no_grad():
        torch.onnx.export(m, args, path, input_names=names, dynamo=c.dynamo, opset_version=c.opset, external_data=False, verbose=False, **kw)
    feed = {n: a.numpy() for n, a in zip(names, args)}
    dims = [x for k, d in c.dims.items() for x in ("--dim", f"{d}={args[0].shape[k]}")]
    grads = [p for p in m.parameters() if p.grad is not None]
    MADE[name] = Exported(path, feed, dims, sum(p.numel() for p in m.parameters()), forward.get_total_flops(), step.get_total_flops(), len(grads))
    return MADE[name]


def placer(*args: str) -> None:
    r = subprocess.run([PLACER, *args], capture_output=True, text=True, cwd=tempfile.gettempdir())
    assert r.returncode == 0, r.stderr


def read(path: str, dims: list[str], *more: str) -> Any:
    out = path + ".json"
    placer("import", "--graph", path, *dims, *more, "-o", out)
    with open(out, encoding="utf-8") as f:
        return json.load(f)["ops"]


def products(ops: Any) -> float:
    return sum(2.0 * float(np.prod(o["gemm"])) * o.get("repeats", 1) for o in ops if "gemm" in o)


def parameters(ops: Any) -> int:
    return sum(o.get("params", 0) for o in ops)


def computed(path: str, feed: dict[str, np.ndarray]) -> tuple[Any, dict[str, Any]]:
    """The nodes of the main graph, functions written out, and the values of all tensors."""
    m = onnx.inliner.inline_local_functions(onnx.load(path))
    named = {o.name for o in m.graph.output}
    m.graph.output.extend(onnx.helper.make_empty_tensor_value_info(t) for n in m.graph.node for t in n.output if t and t not in named)
    whole = path + ".all.onnx"
    onnx.save(m, whole)
    s = session.open_session(whole)
    names = [o.name for o in s.get_outputs()]
    return m.graph.node, dict(zip(names, s.run(names, feed)))


# What these make, and what is made of it, depends on data: the most possible counts.
BY_DATA = {"NonZero", "NonMaxSuppression", "TopK", "Compress", "Unique"}


def hold_shapes(path: str, feed: dict[str, np.ndarray], ops: Any) -> None:
    """Every op has the shape that ONNX Runtime computes."""
    nodes, values = computed(path, feed)
    times = collections.Counter(n.name for n in nodes)
    by = {o["name"]: o for o in ops}
    data: set[str] = set()
    held, wrong = 0, []
    for n in nodes:
        if n.op_type in BY_DATA or any(t in data for t in n.input):
            data.update(n.output)
            continue
        o = by.get(n.name)
        if o is None or times[n.name] > 1 or not o.get("out"):
            continue
        held += 1
        if tuple(o["out"][0]["shape"]) != values[n.output[0]].shape:
            wrong.append((n.op_type, n.name, o["out"][0]["shape"], values[n.output[0]].shape))
    assert held and not wrong, wrong[:5]


@pytest.mark.parametrize("name", CASES)
def test_import(name: str, folder: pathlib.Path) -> None:
    c, e = CASES[name], export(name, folder)
    ops = read(e.path, e.dims)
    if not c.parameters:
        assert parameters(ops) == e.parameters
    assert 0.95 < parameters(ops) / e.parameters < 1.3
    if e.forward:
        assert products(ops) == pytest.approx(e.forward, rel=0.01)
    hold_shapes(e.path, e.feed, ops)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("branch", "lstm")])
def test_training(name: str, folder: pathlib.Path) -> None:
    """The derived step has torch's products, and an update of every weight."""
    e = export(name, folder)
    forward, step = read(e.path, e.dims), read(e.path, e.dims, "--train", "sgd")
    assert products(step) == pytest.approx(e.step, rel=0.02)
    assert sum(o["kind"] in ("ApplyGradientDescent", "SparseApplyGradientDescent", "AssignSub", "ScatterSub") for o in step) >= sum(1 for o in forward if o.get("params"))


@pytest.mark.parametrize("name", ["resnet18", "bert", "lstm", "llama with past", "vit", "spectrum"])
def test_stages(name: str, folder: pathlib.Path) -> None:
    """Two stages in ONNX Runtime give the bits of the whole."""
    e = export(name, folder)
    machine = ["--graph", e.path, *e.dims, "--gpu", "a100", "--gpus", "2", "--objective", "throughput"]
    plan, out = e.path + ".plan", e.path + ".stages.json"
    placer("search", *machine, "--evaluations", "50", "-o", plan)
    placer("export", *machine, "--plan", plan, "--to", "onnx", "-o", out)
    s = session.open_session(e.path)
    names = [o.name for o in s.get_outputs()]
    whole, have = s.run(names, e.feed), dict(e.feed)
    for stage in session.stages(out):
        have.update(zip(stage.outputs, session.open_session(stage.path).run(list(stage.outputs), {t: have[t] for t in stage.inputs})))
    assert all(np.array_equal(have[n], w) for n, w in zip(names, whole))


class One(CalibrationDataReader):
    def __init__(self, feed: dict[str, np.ndarray]) -> None:
        self.left = [feed]

    def get_next(self) -> Any:
        return self.left.pop() if self.left else None


def optimised(path: str, out: str) -> None:
    o = ort.SessionOptions()
    o.optimized_model_filepath, o.log_severity_level = out, 4
    ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", ["resnet18", "shufflenet", "bert", "lstm", "llama with past", "resampled"])
def test_by_onnxruntime(name: str, folder: pathlib.Path) -> None:
    """What ONNX Runtime makes of models, by its optimiser and by both quantisers."""
    e = export(name, folder)
    base = parameters(read(e.path, e.dims))
    dynamic, static = e.path + ".dynamic.onnx", e.path + ".static.onnx"
    quantize_dynamic(e.path, dynamic)
    quantize_static(e.path, static, One(e.feed))
    for path in (e.path, dynamic, static):
        optimised(path, path + ".optimised.onnx")
    for path in (dynamic, static, e.path + ".optimised.onnx", dynamic + ".optimised.onnx", static + ".optimised.onnx"):
        ops = read(path, e.dims)
        assert parameters(ops) >= 0.99 * base, path
        nodes = onnx.load(path).graph.node
        if not any(n.op_type == "ReorderInput" for n in nodes):  # whose padding the file does not tell
            hold_shapes(path, e.feed, ops)
