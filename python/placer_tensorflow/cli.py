"""python -m placer_tensorflow: the package's commands (docs/tensorflow.md)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Sequence

from placer_runtime import command, models
from placer_runtime.errors import FormatError, NoDeviceError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    return command.run(_parser(), argv)


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m placer_tensorflow", description="Captures TensorFlow steps for placer, profiles them, and runs and measures schedules.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    c = commands.add_parser("capture", help="write a training step as graph.pb and step.npz")
    c.add_argument("--model", required=True, metavar="PKG.MODULE:FUNCTION", help="function that returns (loss, train) in the default graph, (model, loss, batch, optimizer) of Keras, or (step, batch)")
    c.add_argument("--args", default="{}", metavar="JSON", help="the function's keyword arguments as a JSON object (default {})")
    c.add_argument("--name", help="the step's name")
    c.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for graph.pb and step.npz")
    c.set_defaults(run=_capture)

    c = commands.add_parser("profile", help="measure nodes and sends; writes times.json and machine.json")
    c.add_argument("--graph", required=True, metavar="FILE", help="graph.pb, which capture wrote beside step.npz")
    c.add_argument("--devices", type=int, help="CPU devices of the machine file (default: all cores)")
    c.add_argument("--hash", help="the graph's hash (default: the placer program computes it)")
    c.add_argument("--steps", type=int, default=10, help="steps that are timed (default 10)")
    c.add_argument("--realtime", action="store_true", help="keep other processes off the cores while a step runs, if the host permits it")
    c.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for times.json and machine.json")
    c.set_defaults(run=_profile)

    c = commands.add_parser("measure", help="measure the steps of schedules or plans")
    c.add_argument("--graph", required=True, metavar="FILE", help="graph.pb, which capture wrote beside step.npz")
    c.add_argument("--serve", action="store_true", help="answer requests on stdin, one JSON document per line")
    c.add_argument("--steps", type=int, default=5, help="steps of a round (default 5)")
    c.add_argument("--repeats", type=int, default=2, help="rounds, of which the shortest step counts (default 2)")
    c.add_argument("--trace", action="store_true", help="also report start and end of each op")
    c.add_argument("--realtime", action="store_true", help="keep other processes off the cores while a step runs, if the host permits it")
    c.add_argument("--no-check", action="store_true", help="do not compare results with one device's")
    c.add_argument("files", nargs="*", metavar="FILE", help="schedule or plan files")
    c.set_defaults(run=_measure)
    return top


def _capture(a: argparse.Namespace) -> int:
    from . import step
    from .capture import capture

    build = models.find(a.model)
    try:
        arguments = json.loads(a.args)
    except ValueError as e:
        raise FormatError(f"--args {a.args}: {e}") from None
    s = capture(lambda: build(**arguments), a.name or build.__name__)
    step.write(s, a.output)
    print(json.dumps({"name": s.name, "ops": len(s.graph.node), "variables": len(s.values), "parameters": s.parameters}))
    return 0


def _profile(a: argparse.Namespace) -> int:
    from placer_runtime import binary, serve

    from . import crossing, profile, step

    count = a.devices or min(len(serve.cores()), binary.MOST_DEVICES)
    if count > binary.MOST_DEVICES:
        raise NoDeviceError(f"--devices {count}: placer's machines have at most {binary.MOST_DEVICES}")
    if count > len(serve.cores()):
        raise NoDeviceError(f"--devices {count}: this host has {len(serve.cores())} cores")
    s = step.read(a.graph)
    graph_hash = a.hash or binary.graph_hash(a.graph)
    p = profile.on_core(s, steps=a.steps, realtime=a.realtime)
    c = crossing.measure(realtime=a.realtime)
    if min(c.send_s, c.delivery_s) <= crossing.FLOOR:
        print("placer_tensorflow: note: what a send takes was lost in the noise of others on these cores, and predictions will have it as nothing: profile again on free cores, or with --realtime", file=sys.stderr)
    profile.write(os.path.join(a.output, "times.json"), profile.times_doc(graph_hash, p, c, count))
    profile.write(os.path.join(a.output, "machine.json"), profile.machine_doc(c, count))
    print(json.dumps({"step_s": p.step_s, "executor_s": p.executor_s, "send_s": c.send_s, "delivery_s": c.delivery_s}))
    return 0


def _measure(a: argparse.Namespace) -> int:
    from placer_runtime import serve as protocol

    from . import schedule, step
    from .measure import Meter, Options, serve

    if not a.serve and not a.files:
        raise FormatError("measure: no schedule or plan file; give some, or --serve")
    o = Options(steps=a.steps, repeats=a.repeats, trace=a.trace, check=not a.no_check, realtime=a.realtime)
    meter = Meter(step.read(a.graph))
    if a.serve:
        serve(meter, o, sys.stdin, sys.stdout)
        return 0

    def measured(r: dict[str, Any]) -> dict[str, Any]:
        return meter.measure(schedule.requested(schedule.ops(meter.step), r), o)

    docs = [protocol.answer({"id": f, "schedule": f}, measured) for f in a.files]
    for doc in docs:
        print(json.dumps(doc))
    return 1 if any("error" in doc for doc in docs) else 0
