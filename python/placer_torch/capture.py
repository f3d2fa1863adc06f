"""Tracing a training step, or inference, to a Program over fake tensors: no memory, no arithmetic."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import operator
import re
from collections.abc import Mapping
from typing import Any, Callable, Iterable

import torch
import torch.fx.traceback as traceback
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch._subclasses.functional_tensor import dispatch_functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.stateless import _reparametrize_module

from . import batches, checks, kinds, modules, optim, settings
from .attributes import Attributes
from .carried import Carried, Step, unchanged
from .clipping import Clip
from .errors import CaptureError
from .explain import explain
from .known import Known
from .optim import Optimizers
from .program import HERE, Leaf, Op, Program, Ref, Spec
from .shared import like
from .state import new
from .wrappers import unwrap

Loss = Callable[[Any, Any], torch.Tensor]
Gradients = list[torch.Tensor | None]


def capture(model: torch.nn.Module, loss: Loss | None, batch: Any, optimizer: Optimizers | None = None, *, name: str | None = None, device: str | None = None, clip_norm: float | None = None, clip_value: float | None = None, norm_type: float = 2.0, accumulate: bool = False) -> Program:
    """The step of model on batch as one graph: forward, backward and update.

    loss(model, batch) returns a scalar; without it the graph is inference,
    model(batch) (a tuple is its arguments, a mapping its keyword arguments).
    The batch's tensors are inputs; its numbers, strings and None are part of the step.
    Without optimizer the step ends with the gradients, which are then outputs; a list of
    them are several that hold different parameters.
    device: the kind of devices that will run it, "cpu" or "cuda", where the model lies on
    another: some ops are of one kind alone. Without it, those that the model lies on.
    clip_norm, clip_value: gradients are clipped before the update, as by
    torch.nn.utils.clip_grad_norm_ with norm_type and clip_grad_value_ of all parameters.
    accumulate: batch is a list of batches, each of which goes forward and backward behind the
    one before; the loss and the gradients are the means of theirs.
    The model's parameters may be on the meta device; nothing is computed, and
    the model is not changed. Of a model that torch.compile or data parallelism wraps,
    it is the one within. Raises CaptureError, which names the op.
    """
    model = unwrap(model)
    if device not in (None, "cpu", "cuda"):
        raise CaptureError(f"device {device!r}: want cpu or cuda, the kind of the devices")
    with torch.inference_mode(False), torch.enable_grad():
        return _Capture(model, loss, batch, optimizer, name or type(model).__name__.lower(), device, Clip(clip_norm, clip_value, norm_type).checked(CaptureError), accumulate).program()


def called(model: torch.nn.Module, batch: Any) -> Any:
    """model(batch), where a tuple is its arguments and a mapping its keyword arguments."""
    if isinstance(batch, Mapping):
        return model(**batch)
    return model(*batch) if isinstance(batch, (tuple, list)) else model(batch)


class _Capture:
    def __init__(self, model: torch.nn.Module, loss: Loss | None, batch: Any, optimizer: Optimizers | None, name: str, kind: str | None, clip: Clip, accumulate: bool):
        if optimizer is not None and loss is None:
            raise CaptureError("an optimizer without a loss: give a loss, or no optimizer for inference")
        if clip and loss is None:
            raise CaptureError("gradients to clip without a loss: give a loss, or no clip_norm and clip_value for inference")
        if accumulate and (loss is None or type(batch) not in (list, tuple) or not batch):
            raise CaptureError("accumulate takes a loss, and a list of batches as the batch")
        self.model, self.loss, self.name, self.clip, self.accumulate = model, loss, name, clip, accumulate
        self.params = dict(model.named_parameters())
        self.buffers = dict(model.named_buffers())
        checks.state(self.params, self.buffers)
        self.updates = optim.updates(optimizer) if optimizer is not None else {}
        self.optimizer = optimizer
        strange = len(self.updates.keys() - {id(p) for p in self.params.values()})
        if strange:
            raise CaptureError(f"the optimizer holds {strange} parameters that the model does not, which no step would update: make them a part of the model, or leave them out of the optimizer")
        self.batch = batch
        self.paths = [path for path, _ in batches.leaves(batch)]
        self.leaves = [_checked(path, x) for path, x in batches.leaves(batch)]
        self.trained = [k for k, p in self.params.items() if p.requires_grad] if loss is not None else []
        self.structure: Any = 0
        self.fixed: list[Any] = []
        self.outputs = 0
        self.left: dict[str, torch.Tensor] = {}  # traced tensors that the step leaves in attributes, by path
        self.made: list[str] = []  # the paths of those that are no parameters or buffers,
        self.own: dict[int, torch.Tensor] = {}  # and the values of those that are, by id
        self.written: list[str] = []  # the batch's tensors that the code changes
        self.decided: frozenset[str] = frozenset()  # buffers that the code took numbers out of
        first = next((p for p in self.params.values()), None)
        device = first.device if first is not None else torch.device("cpu")
        # For GPUs that the model does not lie on the trace is one of the CPU, with ops of any device.
        self.device = device if device.type == kind or kind is None and device.type != "meta" else torch.device("cpu")
        self.portable = kind is not None and kind != self.device.type
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)

    def fake(self, t: torch.Tensor) -> torch.Tensor:
        s = _spec(t).apart
        with self.mode:
            return torch.empty_strided(s.shape, s.stride, dtype=s.dtype, device=self.device)

    def step(self, params: dict[str, torch.Tensor], buffers: dict[str, torch.Tensor], leaves: list[Any], paths: modules.Paths, kept: Attributes) -> list[Any]:
        """What is traced. Returns outputs, gradients of self.trained, their norm where they are
        clipped by it, values of buffers and parameters behind them, and those of self.made."""
        params = {k: v.detach().requires_grad_(self.params[k].requires_grad) for k, v in params.items()}
        buffers = {k: v.clone() for k, v in buffers.items()}
        for k, v in params.items():
            for hook in (self.params[k]._backward_hooks or {}).values() if v.requires_grad else ():
                v.register_hook(hook)
        batch, before = batches.rebuild(self.batch, iter(leaves)), kept.traced()
        for k, v in buffers.items():
            paths.known.give(k, v, self.buffers[k])
        with paths, _reparametrize_module(self.model, {**params, **buffers}, tie_weights=True):
            if self.loss is None:
                with torch.no_grad():
                    out = called(self.model, batch)
                flat, tree = pytree.tree_flatten(out)
                result: list[Any] = [x for x in flat if isinstance(x, torch.Tensor)]
                self.fixed = [_constant(x) for x in flat if not isinstance(x, torch.Tensor)]
                if not result:
                    raise CaptureError(f"the model returns {_describe(out)}; capture takes models that return tensors")
                self.outputs = len(result)
                tensors, others = iter(range(len(result))), iter(range(-1, -1 - len(self.fixed), -1))
                self.structure = _plain(pytree.tree_unflatten([next(tensors if isinstance(x, torch.Tensor) else others) for x in flat], tree))
            else:
                self.outputs = 1
                loss, grads = self.backward([params[k] for k in self.trained], batch, paths)
                paths.phase = "update"
                result = [loss, *self.clipped(grads, paths)]
            now = dict(self.model.named_buffers(remove_duplicate=False))
            held = dict(self.model.named_parameters(remove_duplicate=False))
            self.written = [f"batch{path}" for path, x in zip(self.paths, leaves) if isinstance(x, torch.Tensor) and checks.written(x)]
            self.left = kept.traced({id(x) for x in before.values()})
            self.own = {id(x): of[k] for given, of in ((params, self.params), (buffers, self.buffers)) for k, x in given.items()}
            self.made = [path for path, x in self.left.items() if id(x) not in self.own]
        gone = [k for k in params if k not in held]
        if gone:
            raise CaptureError(f"parameter {gone[0]} is not the model's behind the step: a captured step keeps its parameters")
        lost = [k for k in buffers if k not in now or now[k].shape != self.buffers[k].shape]
        if lost:
            what = f"shape {list(now[lost[0]].shape)} in place of {list(self.buffers[lost[0]].shape)}" if lost[0] in now else "no tensor"
            raise CaptureError(f"buffer {lost[0]} is given {what}: a captured step keeps the shapes of buffers")
        return result + [now[k] for k in buffers] + [held[k] for k in params] + [self.left[path] for path in self.made]

    def backward(self, params: list[torch.Tensor], batch: Any, paths: modules.Paths) -> tuple[torch.Tensor, Gradients]:
        """The loss and its gradients; where they are accumulated, the mean of the batches'."""
        assert self.loss is not None
        if not self.accumulate:
            return self.backward_of(params, batch, 1, paths)
        total, grads = self.backward_of(params, batch[0], len(batch), paths)
        for one in batch[1:]:
            loss, more = self.backward_of(params, one, len(batch), paths)
            grads = self.of_each(lambda g, m: m if g is None else g if m is None else g + m, paths, grads, more)
            total = total + loss
        return total, grads

    def backward_of(self, params: list[torch.Tensor], batch: Any, among: int, paths: modules.Paths) -> tuple[torch.Tensor, Gradients]:
        """Loss and gradients of one batch among so many."""
        assert self.loss is not None
        paths.phase, paths.stack = "forward", [""]
        loss = self.loss(self.model, batch)
        if not isinstance(loss, torch.Tensor) or loss.dim() != 0:
            raise CaptureError(f"loss returned {_describe(loss)}; it has to return a scalar tensor")
        checks.reentrant(loss)
        if among > 1:
            loss = loss / among
        paths.phase, paths.stack = "backward", [""]
        grads = torch.autograd.grad(loss, params, allow_unused=True) if params else ()
        return loss.detach(), [self.accumulated(p, g) for p, g in zip(params, grads)]

    @staticmethod
    def accumulated(p: torch.Tensor, g: torch.Tensor | None) -> torch.Tensor | None:
        """g and what a backward within the loss, or within the backward of an op (reversible
        layers), has left in p.grad, where .backward() would have it too."""
        within, p.grad = p.grad, None
        return g if within is None else within if g is None else within + g

    def of_each(self, make: Callable[..., torch.Tensor | None], paths: modules.Paths, *each: Gradients) -> Gradients:
        """By parameter what make returns of its gradients, in the module that holds it."""
        owner = _owners(self.model)
        made: Gradients = []
        for k, *gs in zip(self.trained, *each):
            paths.stack = [owner.get(k, "")]
            made.append(make(*gs))
        paths.stack = [""]
        return made

    def clipped(self, grads: Gradients, paths: modules.Paths) -> Gradients:
        """The gradients as they are clipped, and behind them the norm where they are by it."""

        def each(of: Callable[[torch.Tensor], torch.Tensor], all: Gradients) -> Gradients:
            return self.of_each(lambda g: None if g is None else of(g), paths, all)

        found = each(self.clip.by_value, grads)
        if self.clip.norm is None:
            return found
        norms = [n for n in each(self.clip.norm_of, found) if n is not None]
        if not norms:
            return [*found, None]
        total = self.clip.norm_of(torch.stack(norms))
        share = self.clip.share(total)
        return [*each(lambda g: (g * share).to(g.dtype), found), total]

    def trace(self) -> torch.fx.Graph:
        """The step, with the model's attributes as they are. Raises CaptureError where a
        second step would not be the first's because of what that leaves in them."""
        kept = Attributes(self.model, self.loss)
        try:
            return Carried(kept, self.fake, lambda: self.traced_step(kept)).refuse().graph
        finally:
            kept.put_back()

    def traced_step(self, kept: Attributes) -> Step:
        traced, known = self.trace_once(kept)
        (out,) = (n for n in traced.graph.nodes if n.op == "output")
        results = list(out.args[0])
        behind = len(results) - len(self.made)
        nodes = {path: n for path, n in zip(self.made, results[behind:]) if isinstance(n, torch.fx.Node)}
        out.args = (results[:behind],)
        given = [n for n in traced.graph.nodes if n.op == "placeholder"][len(self.params) :]
        buffers = results[behind - len(self.params) - len(self.buffers) : behind - len(self.params)]
        fixed = frozenset(n for n, now in zip(given, buffers) if unchanged(now, n))
        values = {id(x): v.to(x.device) for x, v in zip(self.left.values(), known.values(list(self.left.values()))) if v is not None}
        return Step(traced.graph, self.left, nodes, fixed, values, self.own)

    def trace_once(self, kept: Attributes) -> tuple[torch.fx.GraphModule, Known]:
        paths = modules.Paths(self.model)

        def run(params: dict[str, torch.Tensor], buffers: dict[str, torch.Tensor], given: list[torch.Tensor]) -> list[Any]:
            it = iter(given)
            leaves = [next(it) if isinstance(x, torch.Tensor) else x for x in self.leaves]
            return self.step(params, buffers, leaves, paths, kept)

        try:
            args = (
                {k: self.fake(v) for k, v in self.params.items()},
                {k: self.fake(v) for k, v in self.buffers.items()},
                [self.fake(x) for x in self.leaves if isinstance(x, torch.Tensor)],
            )
            # oneDNN's whole recurrent layer is one op that cannot be cut, and whose gradient does not trace
            with traceback.preserve_node_meta(), torch.random.fork_rng(devices=[]), checks.no_other_randomness(kept.generators()), checks.no_loss_scaling(), checks.NoAssignedData(), settings.without_onednn(), settings.without_nnpack(), settings.without_fast_path(), settings.exporting(), settings.without_compiling(), settings.without_logs(), settings.seeds(paths.seed), self.attention():
                torch.default_generator.manual_seed(modules.FIRST_DRAW)
                traced = make_fx(dispatch_functionalize(run), tracing_mode="fake")(*args)
        except CaptureError:
            raise
        except Exception as e:
            raise explain(e, paths) from e
        finally:
            paths.remove()
        self.decided |= paths.known.read
        return traced, paths.known

    def attention(self) -> contextlib.AbstractContextManager[None]:
        """scaled_dot_product_attention as products and a softmax, where the kernel that the
        CPU has for it is not to be captured."""
        return sdpa_kernel(SDPBackend.MATH) if self.portable else contextlib.nullcontext()

    def program(self) -> Program:
        return _Builder(self, self.trace()).build()


class _Builder:
    """FX graph -> Program."""

    def __init__(self, c: _Capture, graph: torch.fx.Graph):
        self.c, self.graph = c, graph
        self.ops: list[Op] = []
        self.value: dict[torch.fx.Node, Any] = {}  # Ref, or a list of them
        self.names: set[str] = set()
        self.constants: dict[str, torch.Tensor] = {}
        self.autograd: dict[int, int] = {}  # autograd node's number -> the forward op that made it
        self.owner = _owners(c.model)
        self.views: dict[str, Any] = {}  # value of a view by what it is a view of
        self.held: list[torch.Tensor] = []  # constants
        self.values: dict[Any, torch.Tensor] = {}  # of these, by their place in memory: several ops may have one
        self.draws: dict[int, int] = {}  # draw -> the first op that has it
        self.memory = {t.untyped_storage().data_ptr(): k for k, t in c.params.items() if not t.is_meta and not isinstance(t, FakeTensor) and t.numel()}

    def add(self, op: Op) -> int:
        op.name = _unique(op.name, self.names)
        self.ops.append(op)
        return len(self.ops) - 1

    def source(self, name: str, role: str, spec: Spec, module: str = "") -> Ref:
        return Ref(self.add(Op(name=name, role=role, target=name, outputs=(spec,), module=module)), 0)

    def build(self) -> Program:
        c = self.c
        self.graph.eliminate_dead_code()
        nodes = list(self.graph.nodes)
        given = [n for n in nodes if n.op == "placeholder"]
        state = iter(given)
        refs: dict[str, Ref] = {}
        for k, p in c.params.items():
            refs[k] = self.value[next(state)] = self.source(k, "parameter", _spec(p).apart, self.owner.get(k, ""))
        for k, b in c.buffers.items():
            refs[k] = self.value[next(state)] = self.source(k, "buffer", _spec(b).apart, self.owner.get(k, ""))
        batch: dict[str, torch.Tensor] = {}
        inputs: list[Leaf] = []
        for path, x in zip(c.paths, c.leaves):
            if not isinstance(x, torch.Tensor):
                inputs.append(Leaf(path, "", x))
                continue
            r = self.value[next(state)] = self.source(f"batch.{sum(y.op != '' for y in inputs)}", "batch", _spec(x).apart)
            inputs.append(Leaf(path, self.ops[r.op].name))
            if not isinstance(x, FakeTensor) and x.device.type != "meta":
                batch[self.ops[r.op].name] = new(_spec(x).apart).copy_(x.detach())
        for n in nodes:
            if n.op == "call_function":
                self.call(n)
            elif n.op == "get_attr":
                t = self.constant(n)
                r = self.value[n] = self.source(str(n.target).lstrip("_"), "const", _spec(t))
                self.constants[self.ops[r.op].name] = self.values.setdefault((t.untyped_storage().data_ptr(), t.storage_offset(), _spec(t)), like(t.detach(), torch.device("cpu")))
        (out,) = (n for n in nodes if n.op == "output")
        results = [self.value.get(x, x) if isinstance(x, torch.fx.Node) else x for x in out.args[0]]
        outputs, rest = results[: c.outputs], results[c.outputs :]
        if any(not isinstance(r, Ref) for r in outputs):
            raise CaptureError(f"the model returns {next(_describe(r) for r in outputs if not isinstance(r, Ref))}; capture takes models that return tensors")
        grads, rest = rest[: len(c.trained)], rest[len(c.trained) :]
        norm = rest.pop(0) if c.clip.norm is not None else None
        values, held = rest[: len(c.buffers)], rest[len(c.buffers) :]
        for k, v in zip(c.params, held):
            if v != refs[k]:
                raise CaptureError(f"the code changes parameter {k}, which in a captured step the optimizer alone does: make it a buffer, or change it between the steps of a loop, in state_dict()")
        gradients = {k: g for k, g in zip(c.trained, grads) if isinstance(g, Ref)}
        if c.optimizer is not None and not gradients:
            raise CaptureError("the loss depends on no parameter that requires a gradient, so that the optimizer would update none")
        phase = "update" if c.loss else "forward"
        assigned = {k: v for k, v in zip(c.buffers, values) if v != refs[k]}
        for k in sorted(c.decided & assigned.keys()):
            raise CaptureError(f"the code takes a number out of buffer {k} (item(), int(), bool(), if or while on it), which the step changes: a captured step would have the number of now; use torch.where")
        overwritten = {refs[k].op for k in assigned} | ({refs[k].op for k in gradients} if c.optimizer is not None else set())
        written = {k for k, r in refs.items() if r.op in overwritten}
        self.refuse_stale(written)
        shared = checks.shared({**c.params, **c.buffers, **{f"batch{path}": x for path, x in zip(c.paths, c.leaves) if isinstance(x, torch.Tensor)}})
        for one, other in shared:
            if {one, other} & {*written, *c.written}:
                raise CaptureError(f"{one} and {other} share memory, of which a captured step would write one alone: clone one of them, or tie them as one parameter")
        for k, g in gradients.items():
            if self.root(g) in overwritten:  # a backward that hands on a parameter
                gradients[k] = self.copy(g, self.owner.get(k, ""), "backward")
        # Before anything is overwritten: copies of what would be read behind that.
        for k, v in assigned.items():
            if self.root(v) in overwritten:
                assigned[k] = self.copy(v, self.owner.get(k, ""), phase)
        outputs = [self.copy(r, "", phase) if self.root(r) in overwritten else r for r in outputs]
        for k, v in assigned.items():
            self.add(Op(f"assign.{k}", "assign", "copy", (refs[k], v), module=self.owner.get(k, ""), phase=phase))
        if c.optimizer is not None:
            self.update(refs, gradients)
        else:
            outputs = outputs + list(gradients.values())
        return Program(c.name, self.ops, outputs, gradients, self.constants, batch, c.loss is not None, c.structure, c.fixed, inputs, norm=norm, **self.optimizer())

    def constant(self, n: torch.fx.Node) -> torch.Tensor:
        """What n holds, a tensor that the code has from elsewhere than the model or the batch:
        it stays as it is now."""
        t: torch.Tensor = getattr(n.graph.owning_module, str(n.target))
        path = next((u.meta["custom"][modules.KEY][0] for u in n.users if modules.KEY in u.meta.get("custom", {})), None)
        checks.plain(f"a constant of {_within(path)}", t)
        own = next((k for k, p in self.c.params.items() if p is t), None) or (None if isinstance(t, FakeTensor) or t.is_meta else self.memory.get(t.untyped_storage().data_ptr()))
        if own:
            raise CaptureError(f"the code reads parameter {own} by a reference from before the step, which would stay as it is now: take it from the model in each step")
        if t.requires_grad and self.c.loss is not None:
            raise CaptureError(f"{_within(path)} uses a tensor of shape {list(t.shape)} that requires a gradient and is no parameter of the model, so it would stay as it is now: make it, or the module that holds it, a part of the model, or requires_grad_(False)")
        if isinstance(t, FakeTensor) or t.is_meta:
            raise CaptureError(f"{_within(path)} uses a tensor of shape {list(t.shape)} that has no values and is neither a parameter nor a buffer: register it as a buffer, register_buffer")
        self.held.append(t)
        return t

    def refuse_stale(self, written: set[str]) -> None:
        """Raises CaptureError where a constant is a buffer that the step writes."""
        memory = {c.untyped_storage().data_ptr(): k for k, c in self.c.buffers.items() if k in written and not c.is_meta and not isinstance(c, FakeTensor) and c.numel()}
        for t in self.held:
            k = memory.get(t.untyped_storage().data_ptr())
            if k:
                raise CaptureError(f"the code reads buffer {k} by a reference from before the step, which would stay as it is now: take it from the model in each step")

    def root(self, r: Ref) -> int:
        """The op that made the memory r lies in."""
        i = r.op
        while self.ops[i].view:
            i = next(self.ops[i].inputs()).op
        return i

    def copy(self, r: Ref, module: str, phase: str) -> Ref:
        """A copy of r by an op at the end of those so far, which reads r before an update or assignment writes it."""
        s = self.ops[r.op].outputs[r.out]
        assert s is not None
        made = self.spec(torch.empty_strided(s.shape, s.stride, dtype=s.dtype, device="meta").clone())
        return Ref(self.add(Op("clone", "call", "aten.clone.default", (r,), outputs=(made,), module=module, phase=phase)), 0)

    def optimizer(self) -> dict[str, Any]:
        o = self.c.optimizer
        return {"rates": [float(g["lr"]) for g in optim.groups(o)], "in_use": optim.in_use(o)} if o is not None else {}

    def update(self, refs: dict[str, Ref], gradients: dict[str, Ref]) -> None:
        """One op per parameter behind the traced ops; its slots are sources at the front of it."""
        c = self.c
        for k, g in gradients.items():
            u = c.updates.get(id(c.params[k]))
            if u is None:
                continue  # not the optimizer's
            slots = [self.source(f"{k}.{s}", "slot", spec, self.owner.get(k, "")) for s, spec in u.slots.items()]
            self.add(Op(f"update.{k}", "update", u.rule, (refs[k], g, slots, dict(u.hyper)), module=self.owner.get(k, ""), phase="update"))

    def call(self, n: torch.fx.Node) -> None:
        if n.target is operator.getitem:
            of, k = self.value[_node(n.args[0])], n.args[1]
            self.value[n] = of[k]
            return
        target: Any = n.target
        text = str(target)
        path, phase, number, draw = n.meta.get("custom", {}).get(modules.KEY, (None, "forward", -1, None))
        passes = text in ("aten.alias.default", "aten.detach.default", "aten.lift_fresh.default") or (path is None and text == "aten.clone.default")
        if passes:  # the same memory; a clone from outside of the model is that of a buffer, which nothing writes in this form
            self.value[n] = self.value[_node(n.args[0])]
            return
        if not isinstance(target, torch._ops.OpOverload):
            raise CaptureError(f"cannot trace op {text} in module {path or ''}: it is no tensor op (a higher-order op such as torch.cond or a checkpoint); write it without")
        if target._schema.is_mutable:
            raise CaptureError(f"op {text} in {_within(path)} changes a tensor that is neither a parameter nor a buffer of the model: register it, register_buffer, or make a new tensor in each step")
        val = n.meta.get("val")
        if any(isinstance(v, torch.Tensor) and v.layout is not torch.strided for v in (val if isinstance(val, (tuple, list)) else [val])):
            raise CaptureError(f"op {text} in {_within(path)} makes a sparse tensor, which a captured step does not have: of an embedding give sparse=False")
        several = isinstance(val, (tuple, list))
        outs = [self.spec(v) for v in (val if isinstance(val, (tuple, list)) else [val])]
        op = Op(
            name=n.name,
            role="call",
            target=text,
            args=tuple(self.argument(a) for a in n.args),
            kwargs={k: self.argument(a) for k, a in n.kwargs.items()},
            outputs=tuple(outs),
            several=several,
            view=kinds.is_view(target),
            module=path or "",
            phase=phase,
        )
        same = repr((text, op.args, op.kwargs)) if op.view else ""
        if same in self.views:  # the same view again, as of a weight at every time step: one op
            self.value[n] = self.views[same]
            return
        i = self.add(op)
        if draw is not None and kinds.is_random(target):
            first = self.draws.setdefault(draw, i)
            op.draws = first if first != i else None
        if number < 0:
            pass  # it ran before any autograd node was made, or, backward, within none
        elif phase == "forward":
            self.autograd.setdefault(number, i)
        else:
            op.forward = self.autograd.get(number)
        self.value[n] = [Ref(i, k) for k in range(len(outs))] if several else Ref(i, 0)
        if op.view:
            self.views[same] = self.value[n]

    def argument(self, a: Any) -> Any:
        if isinstance(a, torch.fx.Node):
            return self.value[a]
        if isinstance(a, (tuple, list)):
            return [self.argument(x) for x in a]
        if isinstance(a, dict):
            return {k: self.argument(x) for k, x in a.items()}
        if isinstance(a, torch.device):
            return HERE
        return a

    @staticmethod
    def spec(v: Any) -> Spec | None:
        if not isinstance(v, torch.Tensor):
            return None
        return Spec(tuple(int(d) for d in v.shape), tuple(int(d) for d in v.stride()), v.dtype)


def _node(a: Any) -> torch.fx.Node:
    assert isinstance(a, torch.fx.Node)
    return a


def _owners(model: torch.nn.Module) -> dict[str, str]:
    """Parameter or buffer -> the module that holds it."""
    names = [k for k, _ in model.named_parameters()] + [k for k, _ in model.named_buffers()]
    return {k: k.rpartition(".")[0] for k in names}


def _spec(t: torch.Tensor) -> Spec:
    return Spec(tuple(t.shape), tuple(t.stride()), t.dtype)


def _within(path: str | None) -> str:
    return f"module {path}" if path else "the model"


def _unique(name: str, used: set[str]) -> str:
    name = re.sub(r"[\x00-\x1f:\u2028\u2029]", "_", name)
    at, k = name, 2
    while at in used:
        at, k = f"{name}#{k}", k + 1
    used.add(at)
    return at


def _plain(v: Any) -> Any:
    """Nested outputs as tuples, lists and dicts alone, so that a file can hold them."""
    if isinstance(v, dict):
        return {str(k): _plain(x) for k, x in v.items()}
    if dataclasses.is_dataclass(v):
        return {f.name: _plain(getattr(v, f.name)) for f in dataclasses.fields(v)}
    if isinstance(v, (tuple, list, collections.deque)):
        items: Iterable[Any] = (_plain(x) for x in v)
        return tuple(items) if isinstance(v, tuple) else list(items)
    if type(v) is not int:
        raise CaptureError(f"the model returns {_describe(v)}; capture takes models that return tensors in tuples, lists, dicts and dataclasses: wrap the model in a module that returns the tensors that you want")
    return v


def _checked(path: str, x: Any) -> Any:
    """x, which a step can have as an input or as a part of it."""
    if isinstance(x, torch.Tensor):
        checks.plain(f"batch{path}", x)
        return x
    if type(x) in (type(None), bool, int, float, str):
        return x
    raise CaptureError(
        f"batch{path} is {_describe(x)}: a batch has tensors, numbers, strings and None, in tuples, lists, dicts and other mappings; "
        "make it one of these, or register its class (a dataclass by torch.export.register_dataclass)"
    )


def _constant(x: Any) -> Any:
    if type(x) in (type(None), bool, int, float, str):
        return x
    raise CaptureError(f"the model returns {_describe(x)}; capture takes models that return tensors, numbers, strings and None in tuples, lists, dicts and dataclasses: wrap the model in a module that returns what you want of it")


def _describe(v: Any) -> str:
    if isinstance(v, torch.Tensor):
        return f"a tensor of shape {list(v.shape)}"
    return f"a value of type {type(v).__name__}"
