"""A training loop by a plan: the parameters live where the plan says."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import torch
import torch.utils._pytree as pytree

from . import schedule as schedules, state as states
from .errors import RunError
from .optim import Optimizers
from .rates import Rates
from .schedule import Schedule
from .program import SOURCES, Program, check_kernels
from .run_inprocess import InProcess, torch_devices
from .run_workers import Workers, observe
from .state import Tensors
from .wrappers import unwrap


class Loop:
    """Steps of a captured program by a schedule: on CUDA devices in this process,
    on CPU devices with a worker process for each. Use it as a context."""

    def __init__(self, p: Program, s: Schedule, model: torch.nn.Module | None = None, *, batch: Any = None, workers: bool | None = None, fuse: str = "", optimizer: Optimizers | None = None, gradients: bool = False, seed: int = 0):
        """model: where parameters and buffers start; without it they are made up.
        optimizer: where its slots, step count and hyperparameters start, which begin anew
        without it; it is not changed. gradients: whether `gradients` has them.
        seed: from which random ops draw (torch.initial_seed() follows torch.manual_seed).
        workers: whether a process runs each device; by default on CPU alone.
        fuse: torch.compile's backend ("inductor") for the schedule's kernels, where
        devices are run in this process; "" runs op by op."""
        self.program, self.schedule, self._fuse = p, s, fuse
        first = states.of_model(p, model) if model is not None else states.example(p)
        self._rates = Rates(dataclasses.replace(p, seed=seed))
        made = 0
        if optimizer is not None:
            if model is None:
                raise RunError("an optimizer without a model: give the model whose parameters it holds")
            slots, made = states.of_optimizer(p, model, optimizer)
            first.update(slots)
            self._rates.follow(optimizer)
        elif model is not None and p.in_use:
            raise RunError("the optimizer had made steps before the program was captured: give optimizer=, that one to go on from its state or a new one to begin anew")
        self._kept = [*(p.gradients.values() if gradients else []), *([p.norm] if p.norm else [])]
        self._results: list[torch.Tensor] = []
        # results in memory of the state or the batch, which are others' to write
        self._lent = {k for k, r in enumerate(p.outputs) if p.ops[p.root[r.op]].role in SOURCES}
        self._entries = states.entries(p, model) if model is not None else {p.ops[i].target: p.ops[i].name for i in p.sources("parameter", "buffer")}
        # what a checkpoint may have; without a model further names of a tied parameter are not known
        self._known = {*self._entries, *unwrap(model).state_dict(), *(o.target for o in p.ops if o.role in ("parameter", "buffer"))} if model is not None else set()
        self._unused = {k: v for k, v in model.state_dict().items() if self._entries[k] is None} if model is not None else {}
        example = states.leaves(p, batch) if batch is not None else states.batch(p)
        devices = torch_devices(s.devices)
        for kind in sorted({d.type for d in devices}):
            check_kernels(p, kind)
        if workers is None:
            workers = all(d.type == "cpu" for d in devices)
        self._here: InProcess | None = None
        self._workers: Workers | None = None
        if workers and fuse:
            raise RunError(f"fuse={fuse!r}: CPU workers run op by op; workers=False runs the devices in this process")
        if workers:
            specs, _ = observe(p, first, example)
            self._workers = Workers(self._rates.program, s, first, example, specs=specs, keep=self._kept)
        else:
            self._here = InProcess(self._rates.program, s, first, devices=devices, fuse=fuse, keep=self._kept)
        self._set_steps(made)

    def step(self, batch: Any = None) -> Any:
        """One step, without a batch on the one that was captured. Returns the loss as a
        number; of inference the model's output."""
        given = states.leaves(self.program, batch) if batch is not None else states.batch(self.program)
        if self._workers is not None:
            for k, t in given.items():
                self._workers.batch[k].copy_(t)
            self._workers.run(1)
            self._results = [x.clone() for x in self._workers.results]
        else:
            assert self._here is not None
            outputs, kept = self._here.step(given)
            self._results = [x.clone() if k in self._lent else x for k, x in enumerate(outputs)] + kept
        outputs = self._results[: len(self.program.outputs)]
        if self.program.training:
            return outputs[0].item()
        return _unflatten(self.program, outputs)

    def set_lr(self, lr: float | Sequence[float]) -> None:
        """The learning rate of the steps that follow: one for all of the optimizer's
        parameter groups, or one for each, as a scheduler's get_last_lr() has them."""
        if self._rates.cycled:
            raise RunError("the optimizer's scheduler changes momentum beside the learning rate: loop.follow(optimizer) takes both")
        self._rates.set(lr)

    def follow(self, optimizer: Optimizers) -> None:
        """Learning rates, momentum, betas and weight decay of the steps that follow, as the
        groups of the optimizer have them now: what any scheduler changes."""
        self._rates.follow(optimizer)

    def gradients(self) -> Tensors:
        """The last step's gradients by the parameter's name: of a program without an
        optimizer, or a loop with gradients=True."""
        at = dict(zip([*self.program.outputs, *self._kept], self._results))
        lacking = [k for k, r in self.program.gradients.items() if r not in at]
        if lacking:
            raise RunError("no step was run, or its gradients were not kept: make the loop with gradients=True")
        return {k: at[r].clone() for k, r in self.program.gradients.items()}  # one may be another's, or the batch's

    def grad_norm(self) -> float:
        """The norm of all gradients of the last step, before they were clipped by it."""
        if self.program.norm is None:
            raise RunError("the captured step clips no gradients by their norm: capture(…, clip_norm=1.0), which may be inf to have the norm alone")
        if not self._results:
            raise RunError("no step was run")
        return float(self._results[-1].item())

    @property
    def unfused(self) -> int:
        """How many of the schedule's fused kernels run op by op."""
        return self.schedule.fused if self._workers is not None or not self._fuse else 0

    @property
    def steps(self) -> int:
        """How many steps were run, those before a loaded checkpoint included."""
        if self._workers is not None:
            return self._workers.t
        assert self._here is not None
        return self._here.t

    @property
    def _state(self) -> Tensors:
        if self._workers is not None:
            return self._workers.state
        assert self._here is not None
        return self._here.state

    def state_dict(self) -> Tensors:
        """Parameters and buffers as the model's own state_dict has them, on the CPU: tied
        ones under all their names, buffers that are not persistent left out, and what the
        step does not use as it was. Without a model, all under their first names."""
        return {k: self._state[name].detach().cpu().clone() if name is not None else self._unused[k] for k, name in self._entries.items()}

    def optimizer_state(self) -> dict[str, Any]:
        """The steps run, the learning rate of each parameter group, what `follow` took of
        it, and the optimizer's slots by "parameter.slot"."""
        slots = {o.name: self._state[o.name].detach().cpu().clone() for o in self.program.ops if o.role == "slot"}
        return {"steps": self.steps, "lr": self._rates.get(), "groups": self._rates.cells, "slots": slots}

    def load_state_dict(self, state: Tensors, optimizer: dict[str, Any] | None = None) -> None:
        """Takes a model's state_dict, tied names included, and optimizer_state's slots.
        Raises RunError where a parameter is missing, not the model's or of another shape."""
        if optimizer is not None and "slots" not in optimizer:
            raise RunError("the optimizer's state is not what optimizer_state() returns: load torch's own into the optimizer, optimizer.load_state_dict(…), and begin with run(…, optimizer=optimizer)")
        strange = [k for k in state if k not in self._known] if self._known else []
        if strange:
            raise RunError(f"the checkpoint has {strange[0]}, which the model does not have" + (f", and {len(strange) - 1} more" if len(strange) > 1 else ""))
        keys: dict[str, list[str]] = {}
        for k, name in self._entries.items():
            keys.setdefault(name or "", []).append(k)
        for o in self.program.ops:
            if o.role in ("parameter", "buffer"):
                names = [o.target, *keys.get(o.name, [])]
                if len(names) == 1 and o.target not in state:
                    continue  # a buffer that no state_dict has
                self._load(o.name, next((state[k] for k in names if k in state), None), o.target)
            elif o.role == "slot" and optimizer is not None:
                self._load(o.name, optimizer["slots"].get(o.name), o.name)
        if optimizer is not None:
            self._rates.set(optimizer.get("lr", self._rates.get()))
            self._rates.cells = optimizer.get("groups", self._rates.cells)
            self._set_steps(optimizer["steps"])

    def _set_steps(self, steps: int) -> None:
        if self._workers is not None:
            self._workers.t = steps
        elif self._here is not None:
            self._here.t = steps

    def _load(self, name: str, value: torch.Tensor | None, given: str) -> None:
        to = self._state[name]
        if value is None:
            raise RunError(f"the checkpoint has no {given}")
        if value.shape != to.shape:
            raise RunError(f"{given} has shape {list(value.shape)}, the program's {list(to.shape)}")
        to.copy_(value)

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run(p: Program, s: Schedule | str, model: torch.nn.Module | None = None, **options: Any) -> Loop:
    """A Loop by a schedule, or by the schedule or plan file of this name."""
    return Loop(p, schedules.read(schedules.ops(p), s) if isinstance(s, str) else s, model, **options)


def _unflatten(p: Program, outputs: Sequence[torch.Tensor]) -> Any:
    leaves, tree = pytree.tree_flatten(p.structure)
    return pytree.tree_unflatten([outputs[k] if k >= 0 else p.fixed[-1 - k] for k in leaves], tree)
