"""Compare the figures of 'placer bench hw' with PyTorch's on the same GPU.

    python3 pytorch.py hardware.json [pytorch.json]

Products of 4096 and 8192 in each dimension by type, a copy of 512 MiB as placer's
largest is, transfers of 256 MiB from and to pinned memory: each the median of seven
repeats. Exits with 1 where one differs by more than 10%. What differs is measured
once more, which then counts: a GPU at its power limit is slower when it is warm.
Without PyTorch the figures are compared with what PyTorch reached on such a GPU elsewhere.
"""
import json
import subprocess
import sys

# PyTorch 2.11 with CUDA 13.0.
REFERENCE = {
    "H200": {"bf16 8192": 790e12, "copy": 4.3e12},
    "H100": {"bf16 8192": 798e12, "copy": 3.0e12},
}


def clock():
    """The clock and the power of the first GPU, which is at work."""
    query = ["nvidia-smi", "-i", "0", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


class PyTorch:
    def __init__(self):
        import torch

        self.torch, self.clocks = torch, {}
        self.version, self.name = torch.__version__, torch.cuda.get_device_name(0)

    def median(self, f, n, sample=None):
        torch = self.torch
        f()
        torch.cuda.synchronize()
        times = []
        for _ in range(7):
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            for _ in range(n):
                f()
            b.record()
            b.synchronize()
            times.append(a.elapsed_time(b) / 1000 / n)
        result = sorted(times)[3]
        if sample:  # while a second's work is under way
            for _ in range(min(2000, int(1 / result))):
                f()
            self.clocks[sample] = clock()
            torch.cuda.synchronize()
        return result

    def product(self, name, n):
        torch = self.torch
        dtype = {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}[name]
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        a, b = (torch.rand(n, n, device="cuda", dtype=torch.float32).add_(1).mul_(0.5).to(dtype) for _ in range(2))
        for x in (a, b):  # as placer fills its memory: between 1/2 and 1 in size, of either sign
            x *= torch.randint(0, 2, (n, n), device="cuda").mul(2).sub(1).to(dtype)
        c = torch.empty_like(a)
        return 2 * n**3 / self.median(lambda: torch.matmul(a, b, out=c), 16, f"{name} {n}" if n == 8192 else None)

    def copy(self, bytes):
        x, y = (self.torch.ones(bytes // 4, device="cuda", dtype=self.torch.float32) for _ in range(2))
        return 2 * bytes / self.median(lambda: y.copy_(x), 20, "copy")

    def transfer(self, bytes, down):
        host = self.torch.ones(bytes // 4, dtype=self.torch.float32).pin_memory()
        device = self.torch.ones(bytes // 4, device="cuda", dtype=self.torch.float32)
        to, source = (host, device) if down else (device, host)
        return bytes / self.median(lambda: to.copy_(source, non_blocking=True), 4)

    def figure(self, key):
        if key == "copy":
            return self.copy(512 << 20)
        if key in ("to GPU", "from GPU"):
            return self.transfer(256 << 20, key == "from GPU")
        name, n = key.split()
        return self.product(name, int(n))


def ours(hardware):
    """The figures of placer, in the order in which they are compared."""
    def quantity(text):
        number, unit = text.split()
        return float(number) * {"s": 1, "B": 1, "B/s": 1, "GB/s": 1e9, "TB/s": 1e12}[unit]

    out = {}
    for p in hardware["products"]:
        if p["batch"] == 1 and p["m"] == p["n"] == p["k"] and p["m"] >= 4096 and p["type"] != "f8":
            out[f"{p['type']} {p['m']}"] = p["flops_per_s"]
    out["copy"] = quantity(hardware["copy"])
    for key, points in (("to GPU", "to_device"), ("from GPU", "from_device")):
        for p in hardware[points]:
            if quantity(p["bytes"]) == 256 << 20:
                out[key] = (256 << 20) / quantity(p["median"])
    return out


def main():
    hardware = json.load(open(sys.argv[1]))["devices"][0]
    mine = ours(hardware)
    clocks = {}
    far = lambda key: abs(mine[key] / theirs[key] - 1) > 0.1
    try:
        torch = PyTorch()
        version, name = torch.version, torch.name
        theirs = {}
        for key in mine:
            theirs[key] = torch.figure(key)
            if far(key):
                again = torch.figure(key)
                print(f"{key}: PyTorch {theirs[key]:.4g}, once more {again:.4g}", file=sys.stderr)
                theirs[key] = again
        clocks = torch.clocks
    except ImportError:
        known = [k for k in REFERENCE if k in hardware["name"]]
        version, name, theirs = "2.11, elsewhere", "none known", {}
        if known:
            name, theirs = known[0], REFERENCE[known[0]]
    print(f"| figure | placer | PyTorch {version}, {name} | placer / PyTorch |\n|---|---:|---:|---:|")
    off = []
    for key in mine:
        if key not in theirs:
            continue
        print(f"| {key} | {mine[key] / 1e12:.3f} T/s | {theirs[key] / 1e12:.3f} T/s | {mine[key] / theirs[key]:.3f} |")
        if far(key):
            off.append(key)
    print()
    for key, text in clocks.items():
        print(f"clock and power during PyTorch's {key}: {text}")
    for s in hardware.get("states") or []:
        print(f"clock and power during placer's {s['during']}: {s.get('sm_clock_mhz')} MHz, {s.get('power_w')} W")
    if len(sys.argv) > 2:
        json.dump({"pytorch": version, "gpu": name, "figures": theirs, "ours": mine, "clocks": clocks}, open(sys.argv[2], "w"), indent=2)
    if off:
        sys.exit("off by more than 10%: " + ", ".join(off))


main()
