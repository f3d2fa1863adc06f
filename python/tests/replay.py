"""The rules of docs/pytorch.md ("What the runtime spends time on") in their plainest form:
predicts a schedule's step, and orders the ops of a placement as placer's simulator does."""

from __future__ import annotations

import heapq
import math
import random
from typing import Callable, Sequence

from placer_torch import graph
from placer_torch.copies import Copies
from placer_torch.program import Program, Ref


class Replay:
    def __init__(self, p: Program, seconds: Sequence[float], c: Copies):
        self.p, self.seconds, self.c = p, seconds, c
        control = graph.update_control(p)
        self.before = [sorted({r.op for r in o.inputs()} | set(control.get(i, []))) for i, o in enumerate(p.ops)]
        self.after: list[list[int]] = [[] for _ in p.ops]
        for i, js in enumerate(self.before):
            for j in js:
                self.after[j].append(i)
        self.rank = list(seconds)
        for i in reversed(range(len(p.ops))):
            self.rank[i] = seconds[i] + max((self.rank[j] for j in self.after[i]), default=0.0)
        self.reads = [list(dict.fromkeys(o.inputs())) for o in p.ops]

    def bytes(self, r: Ref) -> int:
        """What is copied: an expanded dimension counts as one."""
        s, n = self.p.spec(r), 1
        for size, stride in zip(s.shape, s.stride):
            n *= 1 if stride == 0 and size > 1 else size
        return n * s.dtype.itemsize

    def send(self, r: Ref) -> float:
        return self.c.send_s + self.bytes(r) / self.c.send_bandwidth

    def receive(self, r: Ref) -> float:
        return self.c.receive_s + self.bytes(r) / self.c.receive_bandwidth

    def crossing(self, device: Sequence[int]) -> dict[int, list[Ref]]:
        found: dict[int, set[Ref]] = {}
        for i, rs in enumerate(self.reads):
            for r in rs:
                if device[r.op] != device[i]:
                    found.setdefault(r.op, set()).add(r)
        return {i: sorted(rs) for i, rs in found.items()}

    def order(self, device: Sequence[int], devices: int = 2) -> tuple[list[int], float]:
        """The ops by simulated start where the ready op with the longest path runs first, and the step."""
        n, sent = len(self.p.ops), self.crossing(device)
        left = [len(b) for b in self.before]
        at, start, free = [0.0] * n, [0.0] * n, [0.0] * devices
        future: list[list[tuple[float, int]]] = [[] for _ in range(devices)]
        ready: list[list[tuple[float, int]]] = [[] for _ in range(devices)]
        have: set[tuple[Ref, int]] = set()
        for i in range(n):
            if not left[i]:
                heapq.heappush(future[device[i]], (0.0, i))
        for _ in range(n):
            when, d = min((max(free[d], 0.0 if ready[d] else future[d][0][0]), d) for d in range(devices) if ready[d] or future[d])
            while future[d] and future[d][0][0] <= when:
                i = heapq.heappop(future[d])[1]
                heapq.heappush(ready[d], (-self.rank[i], i))
            i = heapq.heappop(ready[d])[1]
            start[i] = when
            for r in self.reads[i]:
                if device[r.op] != d and (r, d) not in have:
                    have.add((r, d))
                    when += self.receive(r)
            end = when = when + self.seconds[i]
            for r in sent.get(i, ()):
                when += self.send(r)
            free[d] = when
            for j in self.after[i]:
                left[j] -= 1
                at[j] = max(at[j], end if device[j] == d else when + self.c.delivery_s)
                if not left[j]:
                    heapq.heappush(future[device[j]], (at[j], j))
        return sorted(range(n), key=lambda i: (start[i], i)), max(free)

    def predict(self, device: Sequence[int], order: Sequence[int], devices: int = 2) -> float:
        """The step of a static order."""
        sent = self.crossing(device)
        free, there, have = [0.0] * devices, {}, set()
        for i in order:
            d = device[i]
            t = free[d]
            for r in self.reads[i]:
                if device[r.op] != d and (r, d) not in have:
                    have.add((r, d))
                    t = max(t, there[r] + self.c.delivery_s) + self.receive(r)
            t += self.seconds[i]
            for r in sent.get(i, ()):
                t += self.send(r)
                there[r] = t
            free[d] = t
        return max(free)


def placements(p: Program, sim: Replay, count: int = 20) -> dict[str, tuple[list[int], list[int]]]:
    """count placements on two devices, with their orders, from good to bad: of cuts
    of the forward pass by time, blocks of ops in turn, random groups, a short search, and
    some of these with groups moved, those whose predicted steps lie the farthest apart
    (placements that take the same time say nothing of a ranking)."""
    seconds = sim.seconds
    key = [g or -i - 1 for i, g in enumerate(graph.groups(p))]

    def by(choose: Callable[[int], int]) -> list[int]:
        chosen: dict[int, int] = {}
        return [chosen.setdefault(k, choose(i)) for i, k in enumerate(key)]

    def follow(forward: dict[int, int]) -> list[int]:
        """Backward ops stand with their forward ops, sources with their first reader."""
        chosen: dict[int, int] = {}
        calls = [(i, o) for i, o in enumerate(p.ops) if o.role == "call"]
        for i, o in calls:
            chosen.setdefault(key[i], forward.get(i if o.phase == "forward" else o.forward if o.forward is not None else -1, 0))
        for i, o in calls:
            for r in o.inputs():
                chosen.setdefault(key[r.op], chosen[key[i]])
        return [chosen.setdefault(k, 0) for k in key]

    forward = [i for i, o in enumerate(p.ops) if o.phase == "forward" and o.role == "call"]
    total = sum(seconds[i] for i in forward)
    found = {"single": [0] * len(p.ops)}
    for share in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
        rng = random.Random(int(share * 100))
        found[f"random {share}"] = by(lambda i: int(rng.random() < share))
    for k in range(1, 16):
        done, side = 0.0, {}
        for i in forward:
            done += seconds[i]
            side[i] = int(done > k / 16 * total)
        found[f"cut {k}/16"] = follow(side)
    for size in (150, 80, 50, 30, 20, 10, 5, 2, 1):
        found[f"blocks {size}"] = follow({i: k // size % 2 for k, i in enumerate(forward)})
    found["searched"] = climb(sim, found["cut 6/16"], key)
    for base in ("cut 6/16", "blocks 20", "searched"):
        for share in (0.05, 0.15):
            rng = random.Random(7)
            moved = {k: int(rng.random() < share) for k in sorted(set(key))}
            found[f"{base} moved {share}"] = [d ^ moved[k] for d, k in zip(found[base], key)]
    ordered = {name: sim.order(device)[0] for name, device in found.items()}
    step = {name: sim.predict(device, ordered[name]) for name, device in found.items()}
    by_step = sorted(step, key=lambda name: step[name])
    chosen = [by_step[0], by_step[-1]]
    while len(chosen) < count:  # the farthest from those chosen
        chosen.append(max((n for n in by_step if n not in chosen), key=lambda n: min(abs(step[n] - step[c]) for c in chosen)))
    if "single" not in chosen:
        chosen.append("single")
    return {n: (found[n], ordered[n]) for n in by_step if n in chosen}


def climb(sim: Replay, device: list[int], key: list[int], moves: int = 80) -> list[int]:
    """device with moves of the heaviest groups kept where they shorten the predicted step."""
    weight: dict[int, float] = {}
    for i, k in enumerate(key):
        weight[k] = weight.get(k, 0.0) + sim.seconds[i]
    heavy = sorted(weight, key=lambda k: (-weight[k], k))[:120]
    rng = random.Random(3)
    best = sim.order(device)[1]
    for _ in range(moves):
        k = rng.choice(heavy)
        moved = [1 - d if x == k else d for d, x in zip(device, key)]
        step = sim.order(moved)[1]
        if step < best:
            best, device = step, moved
    return device


def kendall(x: Sequence[float], y: Sequence[float]) -> float:
    """Kendall's tau-b (Biometrika 33, 1945): pairs that are tied in one list count in the other alone."""
    pairs = [(x[i] - x[j], y[i] - y[j]) for i in range(len(x)) for j in range(i)]
    signs = sum((p * q > 0) - (p * q < 0) for p, q in pairs)
    return signs / math.sqrt(sum(p != 0 for p, _ in pairs) * sum(q != 0 for _, q in pairs))
