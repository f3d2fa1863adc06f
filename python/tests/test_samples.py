"""A captured step at any number of samples, held to a capture at that number."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Callable

import models
import pytest
import releases
import samples_fixture
import torch
import torch.nn as nn
import torch.nn.functional as F
from placer_torch import Program, capture, cli, graph, samples
from placer_torch.polynomial import Polynomial, fit

Step = Callable[[int], Program]


def steps(made: models.Example, device: str | None = None) -> tuple[int, Step]:
    model, loss, batch, optimizer = made
    n = samples.count(batch)
    return n, lambda m: capture(model, loss, samples.resized(batch, n, m), optimizer, name="step", device=device)


def opened(made: models.Example, device: str | None = None) -> tuple[int, Step, dict[str, Any]]:
    n, step = steps(made, device)
    return n, step, json.loads(samples.text(step(n), n, step))


def value(v: Any, n: int) -> Any:
    """What a file's value is at n samples, by Python's own arithmetic."""
    if isinstance(v, dict):
        return {k: value(x, n) if k in samples.SIZES | {"out"} else x for k, x in v.items()}
    if isinstance(v, list):
        return [value(x, n) for x in v]
    return eval(v, {"batch": n, "max": max, "__builtins__": {}}) if isinstance(v, str) else v


def adam(made: models.Example) -> models.Example:
    model, loss, batch, _ = made
    return model, loss, batch, torch.optim.Adam(model.parameters())


EXAMPLES: dict[str, tuple[Callable[[], models.Example], int]] = {  # and the least number of samples that equals a capture
    "tiny": (models.tiny, 1),
    "tiny with Adam": (lambda: adam(models.tiny()), 1),
    "gpt2": (lambda: adam(models.gpt2(layers=2, width=64, vocab=300, time=16)), 2),
    "resnet18": (lambda: models.resnet(), 1),
    "inception": (lambda: models.inception(blocks=1), 1),
    "moe": (lambda: models.moe(layers=1), 2),
    "lstm": (lambda: models.lstm(time=2, layers=1), 1),
    "gnmt": (lambda: models.gnmt(time=1), 1),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_equals_a_capture(name: str) -> None:
    """Every op, with its sizes, FLOPs and bytes, at numbers of samples that the file was not made of."""
    make, least = EXAMPLES[name]
    n, step, doc = opened(make())
    assert doc["dims"] == {"batch": {"size": n, "min": 2 if name == "moe" else 1}}  # whose experts take 32 tokens each
    for m in {least, 3, 4 * n, 100}:
        assert value(doc["ops"], m) == json.loads(graph.text(step(m)))["ops"], f"{m} samples"


class Block(nn.Module):
    """A block of ConvNeXt: a depthwise convolution, then channels last."""

    def __init__(self) -> None:
        super().__init__()
        self.depthwise, self.norm, self.out = nn.Conv2d(16, 16, 7, padding=3, groups=16), nn.LayerNorm(16), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.norm(self.depthwise(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2) + x


def test_convolutions_of_any_batch() -> None:
    """torch takes NNPACK for 16 samples and more, which lays results out otherwise than for less."""
    model = nn.Sequential(nn.Conv2d(3, 16, 4, 4), Block(), Block())
    _, step = steps((model, lambda m, x: m(x).square().mean(), torch.randn(4, 3, 32, 32), None))
    order = [[sorted(range(len(s.shape)), key=lambda k: (-s.stride[k], k)) for o in step(m).ops for s in o.outputs if s] for m in (4, 37)]
    assert order[0] == order[1]


def test_one_sample_has_the_copies_of_several() -> None:
    """Of one sample torch leaves out copies of transposed tensors and sums over samples, which
    the file has."""
    _, step, doc = opened(models.gpt2(layers=1, width=64, vocab=300, time=16))
    file, fresh = value(doc["ops"], 1), json.loads(graph.text(step(1)))["ops"]
    work = lambda ops: [(o["kind"], o.get("flops"), o.get("gemm")) for o in ops if o["kind"] not in ("Reshape", "Transpose")]  # noqa: E731
    assert len(file) > len(fresh) and work(file) == work(fresh)

    class Token(nn.Module):  # as a vision transformer's, one for all samples
        def __init__(self) -> None:
            super().__init__()
            self.token, self.head = nn.Parameter(torch.zeros(1, 8)), nn.Linear(8, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(x + self.token)

    _, step, doc = opened((Token(), lambda m, x: m(x).square().sum(), torch.randn(6, 8), None))
    assert doc["dims"]["batch"]["min"] == 1 and len(doc["ops"]) > len(json.loads(graph.text(step(1)))["ops"])


def test_attention_of_gpus() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(32, 96)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = (y.unflatten(-1, (4, 8)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1)

    model = Model()
    for device in ("cpu", "cuda"):
        n, step, doc = opened((model, lambda m, x: m(x).sum(), torch.randn(3, 12, 32), None), device)
        assert value(doc["ops"], 7) == json.loads(graph.text(step(7)))["ops"]


def test_products_of_samples() -> None:
    """A contrastive loss compares every sample with every other: sizes are squares."""
    model = nn.Linear(8, 4)

    def loss(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = F.normalize(m(x))
        return F.cross_entropy(y @ y.T, torch.arange(len(x)))

    n, step, doc = opened((model, loss, torch.randn(6, 8), torch.optim.SGD(model.parameters(), lr=0.1)))
    assert ["batch", "batch"] in [t["shape"] for o in doc["ops"] for t in o.get("out", [])]
    assert any("batch*batch" in str(o.get("flops", "")) for o in doc["ops"])
    for m in (2, 9, 50):
        assert value(doc["ops"], m) == json.loads(graph.text(step(m)))["ops"]


def test_the_larger_of_two() -> None:
    """An embedding's gradient has the size of the table or that of the tokens."""
    _, step, doc = opened(models.gpt2(layers=1, width=64, vocab=300, time=16))
    (flops,) = (o["flops"] for o in doc["ops"] if "embedding_dense_backward" in o["name"] and o["module"] == "wte")
    assert flops == "max(1024*batch, 19200)"


class Branches(nn.Module):
    """Calls what it is given between two layers."""

    def __init__(self, f: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.f, self.body, self.head = f, nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.f(self.body(x)))


REFUSED = {
    "a view that has the number in it": (lambda x: x.view(6, 2, 4).flatten(1), r"at 7 samples: cannot trace op aten.view.* in the model \(.*test_samples.py:\d+\): "),
    "half of the samples": (lambda x: x[: len(x) // 2], r"op slice_1 \(Reshape\): its shape depends on the number of samples in a way that a file cannot have: 3 at 6, 3 at 7, 26 at 53"),
    "a branch": (lambda x: x.relu() if len(x) < 10 else x.tanh(), r"op \d+ is relu \(Relu\) at 6 samples and tanh \(Tanh\) at 53"),
    "a loop": (lambda x: torch.stack([y * 2 for y in x]), r"op \d+ is .* at 6 samples and .* at 7"),
    "indices of so many": (lambda x: x + torch.zeros(6, 8).index_add(0, torch.tensor([0, 5, 1, 2, 3, 4]), x), r"at 7 samples: cannot trace op aten.index_add"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """What holds for one number of samples alone names the op."""
    f, why = REFUSED[name]
    model = Branches(f)
    n, step = steps((model, lambda m, x: m(x).sum(), torch.randn(6, 8), None))
    with pytest.raises(samples.FixedError, match=why):
        samples.text(step(n), n, step)


@pytest.mark.parametrize("f", [lambda x: F.dropout(x, 0.5), lambda x: x + torch.rand_like(x), lambda x: x[torch.randperm(len(x))], lambda x: x[[2, 0, 1]]], ids=["dropout", "noise", "shuffle", "index"])
def test_random_and_index_ops(f: Callable[[torch.Tensor], torch.Tensor]) -> None:
    model = Branches(f)
    _, step, doc = opened((model, lambda m, x: m(x).sum(), torch.randn(6, 8), None))
    for m in (4, 17):
        assert value(doc["ops"], m) == json.loads(graph.text(step(m)))["ops"]


def test_least() -> None:
    """Batch norm of vectors takes two samples and more; three are kept by three indices."""
    norm = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    assert opened((norm, lambda m, x: m(x).sum(), torch.randn(6, 8), None))[2]["dims"] == {"batch": {"size": 6, "min": 2}}


def test_what_is_a_sample() -> None:
    """Leading dimensions that are the first tensor's, or the number given, change; strides keep their order."""
    images = torch.randn(8, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    batch = {"clips": images, "labels": torch.zeros(2), "positions": torch.arange(16), "scale": torch.tensor(2.0), "flip": True}
    got = samples.resized(batch, 2, 5)
    assert got["clips"].shape == (20, 3, 4, 4) and got["clips"].is_contiguous(memory_format=torch.channels_last)
    assert got["labels"].shape == (5,) and got["positions"] is batch["positions"] and got["scale"] is batch["scale"] and got["flip"] is True
    assert samples.count(batch) == 8 and samples.count({"scale": torch.tensor(1.0)}) == 0
    for bad in (3, 0, -1, 16):
        with pytest.raises(samples.FixedError, match=f"leading dimension of the batch's first tensor is 8: it is not a multiple of {bad} samples"):
            samples.resized(batch, bad, 5)
    with pytest.raises(samples.FixedError, match="no tensor whose leading dimension"):
        samples.resized({"scale": torch.tensor(1.0)}, 1, 5)


def test_polynomials() -> None:
    for c in [(7, 0, 0), (0, 3, 0), (-4, 5, 0), (0, -1, 1), (12, -3, 2), (-1, 1, 1)]:
        p = Polynomial(c)
        assert fit([(n, p.at(n)) for n in (4, 5, 37, 11, 16)]) == p
        assert eval(p.text("batch"), {"batch": 9}) == p.at(9) and not p.text("batch").startswith("-")
    assert fit([(2, 1), (3, 1), (17, 8)]) is None  # halves
    assert fit([(n, n**3) for n in (2, 3, 21, 7, 10)]) is None
    assert Polynomial((5, 1, 0)).covers(Polynomial((6, 0, 0))) and not Polynomial((4, 1, 0)).covers(Polynomial((6, 0, 0)))


def example(batch: int = 4, time: int = 6) -> models.Example:
    """A batch that is time-major: its samples are the second dimension."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    return model, lambda m, b: F.cross_entropy(m(b[0]).flatten(0, 1), b[1].flatten()), (torch.randn(time, batch, 8), torch.zeros(time, batch, dtype=torch.long)), torch.optim.Adam(model.parameters())


def test_command(tmp_path: Any, capsys: Any, monkeypatch: Any) -> None:
    """By the leading dimensions time is taken for samples; --batch-arg says what they are."""
    def run(*flags: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
        assert cli.main(["capture", "--model", "test_samples:example", "-o", str(tmp_path), *flags]) == 0
        said, err = capsys.readouterr()
        return json.loads(said), err, json.loads((tmp_path / "graph.json").read_text())

    said, err, doc = run("--batch-arg", "batch")
    assert said["batch"] == 4 and said["any_batch"] and not err
    assert doc["dims"] == {"batch": {"size": 4, "min": 1}} and doc["ops"][4]["out"] == [{"shape": [6, "batch", 8]}]
    said, err, doc = run()
    assert said["batch"] == 6 and doc["ops"][4]["out"] == [{"shape": ["batch", 4, 8]}]
    said, err, doc = run("--samples", "4")
    assert said["batch"] == 4 and not said["any_batch"] and "dims" not in doc
    assert err == f"placer_torch: {tmp_path}/graph.json holds for 4 samples alone: the leading dimension of the batch's first tensor is 6: it is not a multiple of 4 samples\n"
    assert cli.main(["capture", "--model", "test_samples:example", "-o", str(tmp_path), "--batch-arg", "samples"]) == 1
    assert capsys.readouterr().err == "placer_torch: --batch-arg samples: test_samples:example has no such argument whose default is a number of samples, and --args gives none\n"
    assert run("--batch-arg", "batch", "--args", '{"batch": 5}')[0]["batch"] == 5


@releases.developed
@pytest.mark.parametrize("path", samples_fixture.FILES)
def test_fixture_is_current(path: str) -> None:
    with open(os.path.join(samples_fixture.ROOT, path)) as f:
        assert f.read() == samples_fixture.text(path)


@pytest.mark.skipif("PLACER" not in os.environ, reason="no placer")
def test_placer_reads_it(tmp_path: Any) -> None:
    """placer at m samples has the graph, by its hash, of a capture at m samples."""
    n, step = steps(adam(models.gpt2(layers=2, width=64, vocab=300, time=16)))
    file, fresh = tmp_path / "open.json", tmp_path / "fresh.json"
    file.write_text(samples.text(step(n), n, step))

    def hash_of(*flags: str) -> str:
        return str(json.loads(subprocess.run([os.environ["PLACER"], "import", *flags, "--json"], check=True, capture_output=True, text=True).stdout)["hash"])

    for m in (2, n, 37):
        graph.write(step(m), str(fresh))
        assert hash_of("--graph", str(file), "--dim", f"batch={m}") == hash_of("--graph", str(fresh))
    graph.write(step(n), str(fresh))
    assert hash_of("--graph", str(file)) == hash_of("--graph", str(fresh))
