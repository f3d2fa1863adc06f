"""Writes events.tfevents with TensorBoard's own classes (pip install tensorboard==2.21.0,
Apache-2.0; only its output is kept here): python events.py"""
import math
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

DBL_MAX = 1.7976931348623157e308
up = []
v = 1e-12
while v < 1e20:
    up.append(v)
    v *= 1.1
limits = [-x for x in reversed(up)] + [0.0] + up + [DBL_MAX]


def histogram(xs):
    h = summary_pb2.HistogramProto(min=min(xs), max=max(xs), num=len(xs))
    count = [0.0] * len(limits)
    for x in xs:
        h.sum += x
        h.sum_squares += x * x
        count[next(i for i, l in enumerate(limits) if x <= l)] += 1
    for i, n in enumerate(count):
        if n > 0 or (i + 1 < len(count) and count[i + 1] > 0):
            h.bucket_limit.append(limits[i])
            h.bucket.append(n)
    return h


with open("events.tfevents", "wb") as f:
    w = RecordWriter(f)
    clock = 1.5e9

    def put(**what):
        global clock
        w.write(event_pb2.Event(wall_time=clock, **what).SerializeToString(deterministic=True))
        clock += 0.25

    put(file_version="brain.Event:2")
    S = summary_pb2.Summary
    for step in (0, 1, 300):
        put(step=step, summary=S(value=[
            S.Value(tag="train/reward", simple_value=-1 / (step + 1)),
            S.Value(tag="train/advantage", histo=histogram([math.sin(i + step) * 10 ** (i % 7 - 3) for i in range(50)] + [0.0])),
        ]))
