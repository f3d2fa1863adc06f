"""python -m placer_torch: the package's commands (docs/pytorch.md)."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
from typing import Any, Sequence

from placer_runtime import command, models

from .errors import FormatError, NoMemoryError, PlacerTorchError as PlacerError
from .where import where


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    return command.run(_parser(), argv)


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m placer_torch", description="Captures PyTorch steps for placer, profiles them, and runs and measures schedules.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    c = commands.add_parser("capture", help="trace a model's step; writes graph.json and program.pt")
    _model(c)
    _accumulate(c)
    c.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for graph.json and program.pt")
    c.add_argument("--device", choices=["cpu", "cuda"], help="the kind of devices that will run the step (default: the one that the model is on)")
    _number(c)
    c.set_defaults(run=_capture)

    c = commands.add_parser("profile", help="measure ops and copies; writes times.json and machine.json")
    _program(c)
    c.add_argument("--devices", default="auto", help="cuda (all GPUs), cuda:N (the first N), cpu:N (N cores), or auto: all GPUs if there are several, else all CPU cores (default auto)")
    c.add_argument("--hash", help="the graph's hash (default: the placer program computes it)")
    c.add_argument("--steps", type=int, default=10, help="most steps that are timed (default 10)")
    c.add_argument("--realtime", action="store_true", help="keep other processes off the cores while a step runs, if the host permits it")
    c.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for times.json and machine.json")
    c.set_defaults(run=_profile)

    c = commands.add_parser("run", help="run steps of a schedule or plan")
    _program(c)
    c.add_argument("--schedule", required=True, metavar="FILE", help="schedule or plan file")
    c.add_argument("--steps", type=int, default=5, help="steps to run (default 5)")
    c.set_defaults(run=_run)

    c = commands.add_parser("measure", help="measure the steps of schedules or plans")
    _program(c)
    c.add_argument("--serve", action="store_true", help="answer requests on stdin, one JSON document per line")
    c.add_argument("--clock", choices=["virtual", "wall"], default="", help="clock that decides: virtual (processor time; default) or wall (default with a GPU)")
    c.add_argument("--steps", type=int, default=5, help="steps of a round (default 5)")
    c.add_argument("--repeats", type=int, default=2, help="rounds, of which the shortest step counts (default 2)")
    c.add_argument("--trace", action="store_true", help="also report start and end of each op")
    c.add_argument("--realtime", action="store_true", help="keep other processes off the cores while a step runs, if the host permits it")
    c.add_argument("--no-check", action="store_true", help="do not compare results with one device's")
    c.add_argument("files", nargs="*", metavar="FILE", help="schedule or plan files")
    c.set_defaults(run=_measure)

    c = commands.add_parser("plan", help="capture, profile, search, run the best plan and compare it with one device")
    _model(c)
    _accumulate(c)
    c.add_argument("--devices", default="auto", help="cuda (all GPUs), cuda:N (the first N), cpu:N (N cores), or auto: all GPUs if there are several, else all CPU cores (default auto)")
    c.add_argument("--budget", default="20s", metavar="TIME", help="time of the search, with its unit (default 20s)")
    c.add_argument("--clock", choices=["virtual", "wall"], default="", help="clock that decides: wall (default), or virtual, processor time, for cores that others use too")
    c.add_argument("-o", "--output", metavar="DIR", help="new folder for all files (default: a temporary one)")
    _number(c)
    c.set_defaults(run=_plan)

    c = commands.add_parser("distribute", help="train a model by a strategy file, one process for each rank")
    _model(c)
    c.add_argument("--strategy", required=True, metavar="FILE", help="what placer strategies --for torch wrote")
    c.add_argument("--steps", type=int, default=3, help="steps to train (default 3)")
    c.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="cuda (one GPU for each process), cpu, or auto: cuda if there is one (default auto)")
    c.add_argument("--check", action="store_true", help="also train by plain torch in one process, and compare losses and weights")
    _number(c)
    c.set_defaults(run=_distribute)
    return top


def _model(c: argparse.ArgumentParser) -> None:
    c.add_argument("--model", required=True, metavar="PKG.MODULE:FUNCTION", help="function that returns (model, loss, batch, optimizer)")
    c.add_argument("--args", default="{}", metavar="JSON", help="the function's keyword arguments as a JSON object (default {})")
    c.add_argument("--name", help="the graph's name")
    c.add_argument("--clip-norm", type=float, metavar="X", help="clip gradients before the update, so that the norm of all together is at most X")
    c.add_argument("--norm-type", type=float, default=2.0, metavar="P", help="type of that norm, 2 or inf (default 2)")
    c.add_argument("--clip-value", type=float, metavar="X", help="clip each element of the gradients to [-X, X]")


def _accumulate(c: argparse.ArgumentParser) -> None:
    c.add_argument("--accumulate", action="store_true", help="the batch is a list of batches, whose gradients are accumulated")


def _number(c: argparse.ArgumentParser) -> None:
    which = c.add_mutually_exclusive_group()
    which.add_argument("--samples", type=int, metavar="N", help="samples in the batch (default: the leading dimension of its first tensor)")
    which.add_argument("--batch-arg", metavar="NAME", help="argument of the function that sets the number of samples (default: leading dimensions of the batch are changed)")


def _program(c: argparse.ArgumentParser) -> None:
    which = c.add_mutually_exclusive_group(required=True)
    which.add_argument("--program", metavar="FILE", help="program.pt, which capture wrote")
    which.add_argument("--graph", metavar="FILE", help="graph.json, which capture wrote beside program.pt")


def _args(a: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of --args."""
    try:
        args = json.loads(a.args)
    except ValueError as e:
        raise FormatError(f"--args: {e}") from None
    if not isinstance(args, dict):
        raise FormatError(f"--args {a.args}: want a JSON object, the function's keyword arguments")
    return args


def _given(a: argparse.Namespace) -> int:
    """The number of samples that the function is called with, by --batch-arg."""
    build = models.find(a.model)
    known = inspect.signature(build).parameters
    n = _args(a).get(a.batch_arg, known[a.batch_arg].default if a.batch_arg in known else None)
    if type(n) is not int or n < 1:
        raise FormatError(f"--batch-arg {a.batch_arg}: {a.model} has no such argument whose default is a number of samples, and --args gives none")
    return n


def _load_model(a: argparse.Namespace, **more: Any) -> tuple[Any, Any, Any, Any]:
    build = models.find(a.model)
    args = _args(a)
    try:
        made = build(**args | more)
    except PlacerError:
        raise
    except Exception as e:
        at = where(e)
        reason = str(e) if isinstance(e, (ImportError, TypeError, ValueError)) else f"{type(e).__name__}: {e}"
        raise FormatError(f"--model {a.model}: {f'{at}: ' if at else ''}{reason.splitlines()[0] if reason else type(e).__name__}") from None
    if not isinstance(made, tuple) or len(made) != 4:
        raise FormatError(f"--model {a.model}: did not return (model, loss, batch, optimizer)")
    return made


def _samples(a: argparse.Namespace, batch: Any) -> int:
    """How many samples the function's batch has."""
    from . import samples

    return _given(a) if a.batch_arg else samples.count(batch) if a.samples is None else int(a.samples)


def _with_samples(a: argparse.Namespace, made: tuple[Any, Any, Any, Any], n: int, m: int) -> tuple[Any, Any, Any, Any]:
    """What the function returned for n samples, for m."""
    from . import samples

    if a.batch_arg:
        return _load_model(a, **{a.batch_arg: m})
    model, loss, batch, optimizer = made
    return model, loss, samples.resized(batch, n, m), optimizer


def _training(a: argparse.Namespace) -> dict[str, Any]:
    """What capture and plan are told of gradients."""
    return {"clip_norm": a.clip_norm, "clip_value": a.clip_value, "norm_type": a.norm_type, "accumulate": a.accumulate}


def _paths(a: argparse.Namespace) -> tuple[str, str]:
    """Program and graph file."""
    folder = os.path.dirname(a.program or a.graph)
    return a.program or os.path.join(folder, "program.pt"), a.graph or os.path.join(folder, "graph.json")


def _capture(a: argparse.Namespace) -> int:
    from . import samples
    from .capture import capture
    from .program import Program

    made = _load_model(a)
    n = _samples(a, made[2])

    def step(m: int) -> Program:
        model, loss, batch, optimizer = made if m == n else _with_samples(a, made, n, m)
        return capture(model, loss, batch, optimizer, name=a.name or a.model.rpartition(":")[2], device=a.device, **_training(a))

    p = step(n)
    file = os.path.join(a.output, "graph.json")
    fixed = samples.write(p, n, step, file)
    if fixed:
        print(f"placer_torch: {file} holds for {n} samples alone: {fixed}", file=sys.stderr)
    p.save(os.path.join(a.output, "program.pt"))
    ops = [o for o in p.ops if o.role == "call"]
    params = sum(s.elements for o in p.ops if o.role == "parameter" for s in o.outputs if s)
    print(json.dumps({"graph": file, "program": os.path.join(a.output, "program.pt"), "ops": len(p.ops), "calls": len(ops), "parameters": params, "batch": n, "any_batch": not fixed}))
    return 0


def _profile(a: argparse.Namespace) -> int:
    from placer_runtime import binary

    from . import hosts
    from .measure import Meter
    from .program import check_kernels, load

    host = hosts.find(a.devices)
    program, graph = _paths(a)
    p = load(program)
    check_kernels(p, "cpu" if host.cpu else "cuda")
    got = host.profile(Meter(p), a.output, a.hash or binary.graph_hash(graph), steps=a.steps, realtime=a.realtime)
    if got is None:
        raise NoMemoryError(f"{graph}: the step does not fit on one device, so its ops were not timed; {a.output} has machine.json, with which placer computes their times")
    spread = sorted(s for s, x in zip(got.spread, got.seconds) if x > 0)
    doc = {"step_s": got.step_s, "scale": got.scale, "steps": got.steps, "stable": got.stable, "median_spread": spread[len(spread) // 2] if spread else 0.0}
    if got.issue_s:
        doc["issue_s"] = got.issue_s
    print(json.dumps(doc))
    return 0


def _run(a: argparse.Namespace) -> int:
    from .loop import run
    from .program import load

    p = load(_paths(a)[0])
    with run(p, a.schedule) as loop:
        _say_unfused(a.schedule, loop.unfused)
        losses = [loop.step() for _ in range(a.steps)]
    print(json.dumps({"steps": a.steps, "loss": losses if p.training else None}))
    return 0


def _say_unfused(where: Any, kernels: int) -> None:
    if kernels:
        print(f"placer_torch: {where}: its {kernels} fused kernels run op by op: CPU workers compile none", file=sys.stderr)


def _measure(a: argparse.Namespace) -> int:
    from .measure import Meter, Options, answer, serve
    from .program import load

    if not a.serve and not a.files:
        raise FormatError("measure: no schedule or plan file; give some, or --serve")
    o = Options(steps=a.steps, repeats=a.repeats, clock=a.clock, trace=a.trace, check=not a.no_check, realtime=a.realtime)
    meter = Meter(load(_paths(a)[0]))
    if a.serve:
        serve(meter, o, sys.stdin, sys.stdout)
        return 0
    failed = False
    for f in a.files:
        doc = answer(meter, {"id": f, "schedule": f}, o)
        failed |= "error" in doc
        _say_unfused(f, doc.get("unfused", 0))
        print(json.dumps(doc), flush=True)
    return 1 if failed else 0


def _plan(a: argparse.Namespace) -> int:
    from .auto import plan

    made = _load_model(a)
    model, loss, batch, optimizer = made
    n = _samples(a, batch)
    print(plan(model, loss, batch, optimizer, a.devices, budget=a.budget, clock=a.clock, folder=a.output, name=a.name, samples=n, resized=lambda m: _with_samples(a, made, n, m), **_training(a)))
    return 0


def _distribute(a: argparse.Namespace) -> int:
    from .clipping import Clip
    from .parallel import command, launch, mesh, strategy

    s = strategy.read(a.strategy)
    clip = Clip(a.clip_norm, a.clip_value, a.norm_type).checked(FormatError)
    if a.steps < 1:
        raise FormatError(f"--steps {a.steps}: want 1 or more")
    if launch.alone() and s.world > 1:
        mesh.room(s, a.device)
        argv = ["distribute", "--model", a.model, "--args", a.args, "--strategy", a.strategy, "--steps", str(a.steps), "--device", a.device]
        argv += ["--check"] if a.check else []
        argv += [x for k, v in (("--clip-norm", clip.norm), ("--norm-type", clip.type), ("--clip-value", clip.value)) if v is not None for x in (k, str(v))]
        argv += ["--samples", str(a.samples)] if a.samples else []
        argv += ["--batch-arg", a.batch_arg] if a.batch_arg else []
        return launch.launch(argv, s.world)

    def make() -> tuple[Any, Any, Any, Any]:
        return _load_model(a, **({a.batch_arg: s.batch} if a.batch_arg else {}))

    doc = command.run(make, lambda batch: s.batch if a.batch_arg else _samples(a, batch), s, steps=a.steps, device=a.device, clip=clip, checked=a.check)
    if doc is not None:
        print(json.dumps(doc))
    return 0
