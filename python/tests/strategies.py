"""Strategies of the tests' models, run by processes of this host beside plain torch."""

from __future__ import annotations

import copy
import dataclasses
import multiprocessing
import os
import tempfile
import traceback
from typing import Any, Callable, Sequence

# Here, before processes are forked, for each would take seconds to import them.
import torch
import torch._dynamo
import torch.distributed as dist

import models
import split_models
from collectives import Collectives
from placer_torch.clipping import Clip
from placer_torch.parallel import check, distribute, micro

SIZE = {"layers": 2, "width": 16, "heads": 4}
VOCABULARY, SAMPLES, TIME = 32, 8, 8
LAYERS = range(SIZE["layers"])


@dataclasses.dataclass(frozen=True)
class Kind:
    """A model and the paths that a strategy has of it."""

    make: Callable[[], models.Example]
    layers: str
    columns: tuple[str, ...]  # of a layer
    rows: tuple[str, ...]
    table: str


def gpt2() -> models.Example:
    model, loss, batch, _ = models.gpt2(**SIZE, batch=SAMPLES, time=TIME, vocab=VOCABULARY)
    return model.double(), loss, batch, _adam(model)


def llama() -> models.Example:
    torch.manual_seed(0)
    model = models.Llama(**SIZE, kv_heads=2, hidden=24, vocab=VOCABULARY).double()
    ids = torch.randint(0, VOCABULARY, (SAMPLES, TIME))
    return model, models.cross_entropy, (ids, ids.roll(-1, 1)), _adam(model)


def mixed() -> models.Example:
    """Products in bfloat16, the rest in float32."""
    model, loss, batch, _ = llama()
    model.float()

    def under_autocast(model: Any, batch: Any) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return loss(model, batch)

    return model, under_autocast, batch, torch.optim.SGD(model.parameters(), lr=0.1)


def encoder() -> models.Example:
    model, loss, batch, _ = split_models.encoder(SAMPLES)
    return model.double(), loss, batch, _adam(model)


def _adam(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)


KINDS = {
    "gpt2": Kind(gpt2, "h", ("attn.c_attn", "mlp.c_fc"), ("attn.c_proj", "mlp.c_proj"), "wte"),
    "llama": Kind(llama, "layers", ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"), ("o_proj", "down_proj"), "embed_tokens"),
}


def strategy(kind: Kind, sharding: str = "ddp", data: int = 1, tensor: int = 1, mb: int = 1, recompute: bool = False, vocabulary: bool = False, sequence: bool = False, **more: Any) -> dict[str, Any]:
    """A file's content."""

    def paths(of: Sequence[str]) -> list[str]:
        return [f"{kind.layers}.{k}.{x}" for k in LAYERS for x in of] if tensor > 1 else []

    text = f"{sharding}={data} tp={tensor} mb={mb}" + " recompute" * recompute + " vocab" * vocabulary + " sp" * sequence
    doc = {"format": "placer strategy 1", "graph": "g", "strategy": text, "batch": SAMPLES, "trains": True, "data": data, "sharding": sharding, "pipeline": 1, "tensor": tensor, "micro_batches": mb}
    doc |= {"recompute": "layers" if recompute else "nothing", "vocabulary": vocabulary, "sequence": sequence, "layers": [[f"{kind.layers}.{k}"] for k in LAYERS]}
    doc |= {"columns": paths(kind.columns), "rows": paths(kind.rows), "by_rows": []}
    doc |= {"vocabulary_columns": ["lm_head"] if vocabulary else [], "vocabulary_rows": [kind.table] if vocabulary else []}
    return doc | more


@dataclasses.dataclass
class Got:
    """What came of three steps on rank 0."""

    loss: float  # the largest relative difference from plain torch's
    state: float  # likewise, of an element to its tensor's largest
    norm: float  # likewise, of the norms
    norms: list[float]  # of each step's gradients, where they are clipped by them
    calls: dict[str, int]  # collectives of the last step
    bytes: dict[str, int]


def run(make: Callable[[], models.Example], docs: Sequence[dict[str, Any]], steps: int = 3, clip: Clip = Clip()) -> list[Got]:
    """Trains what make returns by each of the strategies, which have the same number of
    processes. Raises what the first process that fails does."""
    return in_processes(docs[0]["data"] * docs[0]["tensor"], lambda: _train(make, docs, steps, clip))


def in_processes(world: int, work: Callable[[], Any]) -> Any:
    """What work returns in rank 0 of so many processes."""
    context = multiprocessing.get_context("fork")
    ends = [context.Pipe(duplex=False) for _ in range(world)]
    with tempfile.TemporaryDirectory() as folder:
        workers = [context.Process(target=_work, args=(k, world, os.path.join(folder, "store"), ends[k][1], work)) for k in range(world)]
        for w in workers:
            w.start()
        for _, end in ends:
            end.close()
        try:
            got = [here.recv() if here.poll(120) else RuntimeError("no answer") for here, _ in ends]
        finally:
            for w in workers:
                w.join(5)
                w.kill()
                w.join()
    for x in got:
        if isinstance(x, BaseException):
            raise x
    return got[0]


def _work(rank: int, world: int, store: str, end: Any, work: Callable[[], Any]) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(store, world), rank=rank, world_size=world)
    try:
        end.send(work())
        dist.barrier()
    except Exception as e:
        traceback.print_exc()
        end.send(e)


def _train(make: Callable[[], models.Example], docs: Sequence[dict[str, Any]], steps: int, clip: Clip) -> list[Got]:
    model, loss, batch, optimizer = make()
    want = check.Reference(model, loss, optimizer, clip).run(batch, steps, torch.device("cpu"))
    found = []
    for doc in docs:
        m, o = copy.deepcopy((model, optimizer))
        if dist.get_rank() > 0:  # rank 0's are sent
            for p in m.parameters():
                p.data.zero_()
        t = distribute(m, loss, o, doc, device="cpu", clip_norm=clip.norm, clip_value=clip.value, norm_type=clip.type)
        own = micro.part(batch, t.replica, t.strategy.groups)
        got, norms = [], []
        for _ in range(steps):
            with Collectives() as seen:
                got.append(t.step(own))
            norms += [t.grad_norm()] if clip.norm is not None else []
        whole = t.state_dict()
        if dist.get_rank() == 0:
            assert whole.keys() == want.state.keys()
            assert len(norms) == len(want.norms)
            found.append(Got(check.of_numbers(got, want.losses), check.of_states(whole, want.state), check.of_numbers(norms, want.norms), norms, dict(seen.calls), dict(seen.bytes)))
    return found
