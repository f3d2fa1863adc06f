#!/usr/bin/env python3
"""Makes empty stand-ins for the CUDA libraries that a torch wheel links, so that
`import torch` works on a machine without a GPU and without gigabytes of CUDA.

    cuda_stand_ins.py .../site-packages/torch/lib

Needs gcc and readelf. Every function answers 100 (no device), so
torch.cuda.is_available() is False. Do not use it where there is a GPU.
"""

from __future__ import annotations

import collections
import glob
import os
import re
import subprocess
import sys
import tempfile

SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z|quadmath|gomp|gfortran)\.so|ld-linux)")
CUDA = re.compile(r"(cu|nccl|nv|__cuda|cudnn|cufft|cublas|nvtx|CUPTI|cupti)")
TEXTS = ("ErrorString", "ErrorName", "StatusString", "StatusName")


def read(flag: str, file: str) -> list[str]:
    return subprocess.run(["readelf", flag, "-W", file], capture_output=True, text=True, check=True).stdout.splitlines()


def body(name: str, kind: str) -> str:
    if name.endswith(TEXTS) or name.startswith("ncclGetLastError"):
        return f'const char *{name}(void) {{ return "no CUDA here"; }}\n'
    if name in ("cudaGetLastError", "cudaPeekAtLastError"):
        return f"int {name}(void) {{ return 0; }}\n"
    if name.startswith(("__cudaRegister", "__cudaUnregister", "__cudaInit")):
        return f"static void *h_{name}[4]; void *{name}(void) {{ return h_{name}; }}\n"
    if kind == "OBJECT":
        return f"char {name}[4096];\n"
    return f"int {name}(void) {{ return 100; }}\n"


def main(lib: str) -> None:
    files = [f for f in glob.glob(os.path.join(lib, "*.so*")) if os.path.isfile(f)]
    have = {os.path.basename(f) for f in files}
    needed: set[str] = set()
    versions: dict[str, set[str]] = collections.defaultdict(set)  # version -> libraries that have it
    undefined: dict[str, str] = {}
    defined: set[str] = set()
    for f in files:
        for line in read("-d", f):
            m = re.search(r"NEEDED.*\[(.*)\]", line)
            if m and m[1] not in have and not SYSTEM.match(m[1]):
                needed.add(m[1])
        library = ""
        for line in read("-V", f):
            m = re.search(r"File: (\S+)", line)
            if m:
                library = m[1]
            elif library and "Name:" in line and "Flags" in line:
                versions[re.search(r"Name: (\S+)", line)[1]].add(library)  # type: ignore[index]
            elif "Version definition" in line:
                library = ""
        for line in read("--dyn-syms", f):
            p = line.split()
            if len(p) >= 8 and p[0][:-1].isdigit():
                if p[6] == "UND":
                    undefined.setdefault(p[7], p[3])
                else:
                    defined.add(p[7].split("@")[0])
    if not needed:
        print("no CUDA library is missing")
        return
    by: dict[str, dict[str, set[tuple[str, str]]]] = {so: collections.defaultdict(set) for so in needed}
    first = min((so for so in needed if so.startswith("libcudart")), default=min(needed))
    for symbol, kind in undefined.items():
        name, _, version = symbol.partition("@")
        version = version.lstrip("@").split()[0] if version else ""
        if name in defined:
            continue
        if version:
            for so in versions.get(version, set()) & needed:
                by[so][version].add((name, kind))
        elif CUDA.match(name) and not name.startswith("cuda_"):
            by[first][""].add((name, kind))
    with tempfile.TemporaryDirectory() as folder:
        for so in sorted(needed):
            source, script = os.path.join(folder, "stub.c"), os.path.join(folder, "stub.map")
            with open(source, "w") as c:
                c.write("".join(body(n, k) for names in by[so].values() for n, k in sorted(names)))
            with open(script, "w") as c:
                c.write("".join(f"{v} {{ global: {' '.join(n + ';' for n, _ in sorted(names))} }};\n" for v, names in by[so].items() if v))
            command = ["gcc", "-shared", "-fPIC", "-w", "-fno-builtin", "-Wl,-soname," + so, "-o", os.path.join(lib, so), source]
            if os.path.getsize(script):
                command.insert(-1, "-Wl,--version-script," + script)
            subprocess.run(command, check=True)
    print(f"{len(needed)} stand-ins for CUDA libraries in {lib}")


if __name__ == "__main__":
    main(sys.argv[1])
