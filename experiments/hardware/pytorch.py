"""Compare the figures of 'placer bench hw' with PyTorch's on the same GPU.

    python3 pytorch.py hardware.json [pytorch.json]

Products of 4096 and 8192 in each dimension by type, and a copy of 1 GiB, each the
median of seven repeats. Exits with 1 where one differs by more than 10%. Without
PyTorch the figures are compared with what PyTorch reached on an H200 elsewhere.
"""
import json
import sys

REFERENCE = {"bf16 8192": 790e12, "copy": 4.3e12}  # an H200, PyTorch 2; nothing else is known of it


def measure():
    import torch

    def median(f, n):
        f()
        times = []
        for _ in range(7):
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            for _ in range(n):
                f()
            b.record()
            b.synchronize()
            times.append(a.elapsed_time(b) / 1000 / n)
        return sorted(times)[3]

    out = {}
    for name, dtype, tf32 in (("f32", torch.float32, False), ("tf32", torch.float32, True), ("f16", torch.float16, False), ("bf16", torch.bfloat16, False)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        for n in (4096, 8192):
            a, b = (torch.rand(n, n, device="cuda", dtype=torch.float32).add_(1).mul_(0.5).to(dtype) for _ in range(2))
            a *= torch.randint(0, 2, (n, n), device="cuda").mul(2).sub(1).to(dtype)
            out[f"{name} {n}"] = 2 * n**3 / median(lambda: torch.matmul(a, b), 20)
    x, y = (torch.empty(1 << 28, device="cuda", dtype=torch.float32) for _ in range(2))
    out["copy"] = 2 * (1 << 30) / median(lambda: y.copy_(x), 20)
    return out, torch.__version__, torch.cuda.get_device_name(0)


def main():
    hardware = json.load(open(sys.argv[1]))["devices"][0]
    number, unit = hardware["copy"].split()
    ours = {"copy": float(number) * {"B/s": 1, "GB/s": 1e9, "TB/s": 1e12}[unit]}
    for p in hardware["products"]:
        if p["batch"] == 1 and p["m"] == p["n"] == p["k"]:
            ours[f"{p['type']} {p['m']}"] = p["flops_per_s"]
    try:
        theirs, version, name = measure()
    except ImportError:
        theirs, version, name = REFERENCE, "an earlier PyTorch, elsewhere", "H200"
    print(f"| figure | placer | PyTorch {version}, {name} | placer / PyTorch |\n|---|---:|---:|---:|")
    off = []
    for key, want in theirs.items():
        if key not in ours:
            continue
        ratio = ours[key] / want
        print(f"| {key} | {ours[key] / 1e12:.2f} T/s | {want / 1e12:.2f} T/s | {ratio:.3f} |")
        if abs(ratio - 1) > 0.1:
            off.append(key)
    if len(sys.argv) > 2:
        json.dump({"pytorch": version, "gpu": name, "figures": theirs, "ours": ours}, open(sys.argv[2], "w"), indent=2)
    if off:
        sys.exit("off by more than 10%: " + ", ".join(off))


main()
