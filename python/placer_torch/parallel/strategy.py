"""The file `placer strategy 1`: how the samples, layers and products of a step are divided."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Sequence

from ..errors import FormatError

FORMAT = "placer strategy 1"

Paths = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Strategy:
    """One strategy, with the model's modules by the paths that named_modules() has."""

    graph: str
    strategy: str  # as the table of `placer strategies` has it
    batch: int  # samples of a step, all replicas together
    data: int  # replicas
    sharding: str  # ddp, zero-1, zero-2, zero-3: what replicas share out among themselves
    tensor: int = 1  # parts of each cut product
    pipeline: int = 1  # ranks that stages lie on
    schedule: str = ""  # of a pipeline: gpipe, 1f1b, interleaved
    chunks: int = 1  # stages a rank of the pipeline
    micro_batches: int = 1
    context: int = 1  # neighbouring replicas that share the tokens of the same samples out among themselves
    recompute: str = "nothing"
    vocabulary: bool = False
    sequence: bool = False
    layers: tuple[Paths, ...] = ()  # in the order in which they run
    columns: Paths = ()  # products cut by columns
    parts: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)  # of columns that the model takes apart, the sizes
    rows: Paths = ()  # products cut by rows, whose results are added up
    vocabulary_columns: Paths = ()  # output layers
    vocabulary_rows: Paths = ()  # embedding tables
    transposed: Paths = ()  # of all these, layers whose weight has a row for each input
    expert_ranks: int = 1  # neighbouring replicas that share experts out among themselves
    experts: Paths = ()  # modules that hold the weights of all experts of a layer, where replicas share these or tokens out
    by_rows: Paths = ()  # what works on a share of the tokens
    stages: tuple[Paths, ...] = ()
    predicted: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def world(self) -> int:
        """Processes: rank = (stage * data + replica) * tensor + part."""
        return self.pipeline * self.data * self.tensor

    @property
    def groups(self) -> int:
        """Replicas, or groups of them that share tokens out, with samples of their own."""
        return self.data // self.context

    @property
    def samples(self) -> int:
        """Of a replica's step."""
        return self.batch // self.groups

    @property
    def shared_experts(self) -> Paths:
        """Modules of whose experts a replica has some."""
        return self.experts if self.expert_ranks > 1 else ()

    @property
    def divided(self) -> bool:
        """Whether a process holds parameters, or an optimizer's state of them, in part."""
        return self.tensor > 1 or self.expert_ranks > 1 or self.data > 1 and self.sharding != "ddp"


_NUMBERS = ("batch", "data", "tensor", "pipeline", "chunks", "micro_batches", "context", "expert_ranks")
_WORDS: dict[str, tuple[str, ...]] = {
    "sharding": ("ddp", "zero-1", "zero-2", "zero-3"),
    "schedule": ("", "gpipe", "1f1b", "interleaved"),
    "recompute": ("nothing", "selective", "layers"),
}
_FLAGS = ("vocabulary", "sequence")
_PATHS = ("columns", "rows", "vocabulary_columns", "vocabulary_rows", "transposed", "by_rows", "experts")
_GROUPS = ("layers", "stages")
_REQUIRED = ("batch", "data", "sharding")


def read(source: str | Mapping[str, Any]) -> Strategy:
    """The strategy of a file, or of what such a file holds. Raises FormatError with file,
    key and reason."""
    if isinstance(source, Mapping):
        return _of(source, "strategy")
    try:
        with open(source, encoding="utf-8") as f:
            doc = json.load(f)
    except ValueError as e:
        raise FormatError(f"{source}: {e}") from None
    if not isinstance(doc, dict):
        raise FormatError(f"{source}: want a JSON object")
    return _of(doc, source)


def _of(doc: Mapping[str, Any], file: str) -> Strategy:
    if doc.get("format") != FORMAT:
        raise FormatError(f"{file}: format is {doc.get('format')!r}, want {FORMAT!r}, which placer strategies --for torch writes")
    if doc.get("trains", True) is not True:
        raise FormatError(f"{file}: trains is {doc['trains']!r}: torch runs strategies of training steps alone")
    for k in _REQUIRED:
        if k not in doc:
            raise FormatError(f"{file}: has no {k}")
    known = {f.name for f in dataclasses.fields(Strategy)}
    v = {k: _value(k, x, file) for k, x in doc.items() if k in known}
    s = Strategy(**{"graph": "", "strategy": "", **v})
    if s.data % s.context:
        raise FormatError(f"{file}: {s.data} replicas cannot share tokens out in groups of {s.context}")
    if s.batch % (s.groups * s.micro_batches):
        of = f"{s.data} replicas" if s.context == 1 else f"{s.groups} groups of replicas"
        raise FormatError(f"{file}: {s.batch} samples cannot be divided among {of} with {s.micro_batches} micro-batches each")
    if s.data % s.expert_ranks:
        raise FormatError(f"{file}: {s.data} replicas cannot share experts out in groups of {s.expert_ranks}")
    if s.expert_ranks > 1 and not s.experts or s.experts and s.expert_ranks == s.context == 1:
        raise FormatError(f"{file}: expert_ranks is {s.expert_ranks}, and {len(s.experts)} modules of experts are named")
    if s.pipeline > 1 and not s.schedule:
        raise FormatError(f"{file}: a pipeline of {s.pipeline} without a schedule")
    if s.pipeline > 1 and len(s.stages) != s.pipeline * s.chunks:
        raise FormatError(f"{file}: {len(s.stages)} stages, want {s.pipeline * s.chunks}: {s.pipeline} ranks with {s.chunks} each")
    return s


def _value(key: str, x: Any, file: str) -> Any:
    if key in _NUMBERS:
        if type(x) is not int or x < 1:
            raise FormatError(f"{file}: {key} is {x!r}, want a number of 1 or more")
    elif key in _WORDS:
        if x not in _WORDS[key]:
            raise FormatError(f"{file}: {key} is {x!r}, want one of {', '.join(w for w in _WORDS[key] if w)}")
    elif key in _FLAGS:
        if not isinstance(x, bool):
            raise FormatError(f"{file}: {key} is {x!r}, want true or false")
    elif key in _PATHS:
        return _paths(key, x, file)
    elif key in _GROUPS:
        if not isinstance(x, Sequence) or isinstance(x, str):
            raise FormatError(f"{file}: {key} is {x!r}, want a list of lists of module paths")
        return tuple(_paths(f"{key}[{i}]", y, file) for i, y in enumerate(x))
    elif key == "parts":
        if not isinstance(x, Mapping) or not all(isinstance(y, Sequence) and y and all(type(n) is int and n > 0 for n in y) for y in x.values()):
            raise FormatError(f"{file}: {key} is {x!r}, want lists of numbers of columns by module")
        return {path: tuple(y) for path, y in x.items()}
    elif key == "predicted" and not isinstance(x, Mapping):
        raise FormatError(f"{file}: {key} is {x!r}, want an object")
    return x


def _paths(key: str, x: Any, file: str) -> Paths:
    if not isinstance(x, Sequence) or isinstance(x, str) or not all(isinstance(y, str) for y in x):
        raise FormatError(f"{file}: {key} is {x!r}, want a list of module paths")
    return tuple(x)
