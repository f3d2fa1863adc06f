"""Runs every fuzzer in turn and records what it came to.

    run.py OUT INPUTS [NAME...]

Adds a line to OUT/runs.tsv for each: package, fuzzer, inputs, processor seconds, the most
memory of one process in MiB, and whether it failed. A fuzzer runs for INPUTS inputs (a
duration would let go.dev/issue/75804 fail a run without an input at fault). The corpus that
grows stays in OUT/corpus; inputs that fail come to testdata/fuzz of their package, as go test
leaves them. NAME picks packages or fuzzers by a part of their name.
"""

import os
import re
import subprocess
import sys


def fuzzers():
    text = subprocess.run(["git", "grep", "--untracked", "-oE", "^func Fuzz[A-Za-z0-9_]*", "--", "*_test.go"], capture_output=True, text=True, check=True).stdout
    for line in sorted(text.splitlines()):
        path, name = line.split(":func ")
        yield os.path.dirname(path), name


def main():
    out, inputs, picked = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    os.makedirs(out, exist_ok=True)
    failed = False
    for package, name in fuzzers():
        if picked and not any(p in f"{package} {name}" for p in picked):
            continue
        binary = os.path.join(out, package.replace("/", "-") + ".test")
        subprocess.run(["go", "test", "-c", "-fuzz", f"^{name}$", "-o", binary, "./" + package], check=True)
        os.makedirs(os.path.join(out, "corpus", package), exist_ok=True)
        pid = os.fork()
        log = os.path.join(out, f"{package.replace('/', '-')}-{name}.log")
        if pid == 0:
            with open(log, "w", encoding="utf-8") as f:
                os.dup2(f.fileno(), 1)
                os.dup2(f.fileno(), 2)
            os.chdir(package)
            os.execv(binary, [binary, "-test.run", "^$", "-test.fuzz", f"^{name}$", "-test.fuzztime", f"{inputs}x", "-test.fuzzminimizetime", "100x", "-test.fuzzcachedir", os.path.join(out, "corpus", package), "-test.parallel", "1"])
        _, status, used = os.wait4(pid, 0)
        with open(log, encoding="utf-8") as f:
            counts = re.findall(r"execs: (\d+)", f.read())
        done = int(counts[-1]) if counts else 0
        bad = status != 0
        failed = failed or bad
        peak = max(used.ru_maxrss, 0) / 1024
        line = f"{package}\t{name}\t{done}\t{used.ru_utime + used.ru_stime:.0f}\t{peak:.0f}\t{int(bad)}"
        print(line, flush=True)
        with open(os.path.join(out, "runs.tsv"), "a", encoding="utf-8") as f:
            f.write(line + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
