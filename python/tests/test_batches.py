"""What a batch is bound by: paths, not order; values that are no tensors are part of the step."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import models
import pytest
import torch
from placer_torch import CaptureError, FormatError, Loop, Program, capture, load, schedule
from placer_torch import state as states


class Encoding(collections.UserDict):
    """A mapping with its entries as attributes, as HuggingFace's BatchEncoding."""

    def __getattr__(self, name: str) -> Any:
        if name == "data":
            raise AttributeError(name)
        return self.data[name]


@dataclasses.dataclass
class Unregistered:
    x: torch.Tensor


def weighted(model: Any, b: Any) -> torch.Tensor:
    """Tells its tensors apart, which have the same shape and type."""
    return (model(b["x"]) * b["weight"][:, :4]).sum() * b["scale"]


def example(scale: Any = 1.0) -> tuple[torch.nn.Module, dict[str, Any]]:
    torch.manual_seed(0)
    return torch.nn.Linear(8, 4), {"x": torch.randn(3, 8), "weight": torch.randn(3, 8), "scale": scale}


def loop_of(p: Program, model: torch.nn.Module) -> Loop:
    return Loop(p, schedule.single(schedule.ops(p)), model, workers=False)


def test_keys_in_another_order() -> None:
    model, batch = example()
    p = capture(model, weighted, batch)
    with loop_of(p, model) as loop:
        assert loop.step({k: batch[k] for k in ("scale", "weight", "x")}) == loop.step(batch) == weighted(model, batch).item()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"scale": 2.0}, r"batch\['scale'\] is 2.0, captured as 1.0.*torch.tensor\(1.0\)"),
        ({"scale": 1}, r"batch\['scale'\] is 1, captured as 1.0"),
        ({"scale": torch.tensor(1.0)}, r"batch\['scale'\] is a tensor"),
        ({"x": 3}, r"batch\['x'\] is 3, captured as a tensor"),
        ({"x": torch.zeros(3, 9)}, r"batch\['x'\]: \[3, 9\]"),
        ({"y": torch.zeros(3, 8)}, r"has no batch\['y'\]; it has batch\['x'\], batch\['weight'\], batch\['scale'\]"),
    ],
)
def test_another_batch_is_refused(change: dict[str, Any], says: str) -> None:
    """A number that differs trained with the captured one, without a word."""
    model, batch = example()
    p = capture(model, weighted, batch)
    with pytest.raises(FormatError, match=says):
        states.leaves(p, {**batch, **change})
    with pytest.raises(FormatError, match=r"the batch has no batch\['weight'\]"):
        states.leaves(p, {"x": batch["x"], "scale": 1.0})


def test_a_number_in_a_tensor_may_change() -> None:
    model, batch = example(torch.tensor(1.0))
    p = capture(model, weighted, batch)
    with loop_of(p, model) as loop:
        assert loop.step({**batch, "scale": torch.tensor(2.0)}) == pytest.approx(2 * loop.step(batch))


def test_mappings_of_other_classes() -> None:
    """Their tensors are inputs, not constants: another batch gives another loss. The
    model's code sees the class that it was given."""
    model, first = example()
    _, second = example()
    second["x"] = second["x"] + 1
    loss = lambda m, b: (m(b.x) * b.weight[:, :4]).sum()  # noqa: E731
    p = capture(model, loss, Encoding(first))
    assert not p.constants and len(p.batch) == 2
    with loop_of(p, model) as loop:
        assert [loop.step(Encoding(b)) for b in (first, second)] == [loss(model, Encoding(b)).item() for b in (first, second)]
        loop.step(second)  # a dict has the same paths
    inference = capture(torch.nn.Linear(4, 4), None, Encoding({"input": torch.ones(2, 4)}))
    assert [x.path for x in inference.inputs or []] == ["['input']"]


@pytest.mark.parametrize("leaf", [Unregistered(torch.ones(2, 4)), torch.float32, object()], ids=["dataclass", "dtype", "object"])
def test_leaves_of_other_classes_are_refused(leaf: Any) -> None:
    with pytest.raises(CaptureError, match=r"batch\[1\]\['k'\] is a value of type .*register"):
        capture(torch.nn.Linear(4, 4), lambda m, b: m(b[0]).sum(), (torch.ones(2, 4), {"k": leaf}))


def test_kept_in_the_file(tmp_path: Any) -> None:
    """Paths and values are in the file; one that an earlier version wrote binds by position."""
    model, batch = example()
    p = capture(model, weighted, {**batch, "more": (None, True, "s", float("nan"), [7])})
    p.save(str(tmp_path / "program.pt"))
    q = load(str(tmp_path / "program.pt"))
    assert q.inputs is not None and [x.path for x in q.inputs] == ["['x']", "['weight']", "['scale']", "['more'][0]", "['more'][1]", "['more'][2]", "['more'][3]", "['more'][4][0]"]
    assert set(states.leaves(q, {**batch, "more": [None, True, "s", float("nan"), (7,)]})) == {"batch.0", "batch.1"}
    doc = torch.load(tmp_path / "program.pt", weights_only=True)
    del doc["inputs"]
    torch.save(doc, tmp_path / "old.pt")
    old = load(str(tmp_path / "old.pt"))
    assert torch.equal(states.leaves(old, [batch["x"], batch["weight"]])["batch.1"], batch["weight"])
    with pytest.raises(FormatError, match="the batch has 1 tensors, the program 2"):
        states.leaves(old, [batch["x"]])


def test_step_without_a_batch() -> None:
    model, loss, batch, optimizer = models.tiny()
    p = capture(model, loss, batch, optimizer)
    with loop_of(p, model) as a, loop_of(p, model) as b:
        assert a.step() == b.step(batch)
