#!/usr/bin/env python3
"""Writes lstm.json: a bidirectional LSTM with attention and its gradients, by PyTorch.

    python3 lstm.py > lstm.json

The gates of PyTorch are in the order i, f, g, o; ours is i, f, o, g.
"""
import json

import torch

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)

SEQUENCES, STEPS, INPUT, CELLS = 2, 5, 3, 4


def ours(w):
    """Gate blocks of w, [4H, ...], in our order, transposed to [..., 4H]."""
    i, f, g, o = w.chunk(4, 0)
    return torch.cat([i, f, o, g], 0).t()


def rows(t):
    return t.reshape(-1).tolist()


x = torch.randn(SEQUENCES, STEPS, INPUT)
net = torch.nn.LSTM(INPUT, CELLS, batch_first=True, bidirectional=True)
with torch.no_grad():
    for p in net.parameters():
        p.copy_(torch.randn_like(p) * 0.5)
    for p in (net.bias_hh_l0, net.bias_hh_l0_reverse):  # one bias is enough
        p.zero_()
h, _ = net(x)
queries = torch.randn(SEQUENCES, STEPS, 2 * CELLS, requires_grad=True)
seen = torch.softmax(queries @ h.transpose(1, 2), -1) @ h
weights = torch.randn_like(seen)
(seen * weights).sum().backward()

out = {"sequences": SEQUENCES, "steps": STEPS, "input": INPUT, "cells": CELLS,
       "x": rows(x), "queries": rows(queries.detach()), "weights": rows(weights), "seen": rows(seen.detach()),
       "queries_grad": rows(queries.grad)}
for name, end in (("ahead", ""), ("back", "_reverse")):
    wx, wh, b = (getattr(net, n + end) for n in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0"))
    for n, p in (("wx", wx), ("wh", wh)):
        out[f"{name}_{n}"], out[f"{name}_{n}_grad"] = rows(ours(p.detach())), rows(ours(p.grad))
    out[f"{name}_b"], out[f"{name}_b_grad"] = (rows(ours(t.unsqueeze(1))) for t in (b.detach(), b.grad))
print(json.dumps({k: [float(f"{e:.9g}") for e in v] if isinstance(v, list) else v for k, v in out.items()}, indent=None, separators=(",", ":")).replace(',"', ',\n"'))
