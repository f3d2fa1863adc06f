"""Runs every fuzzer until it has had its processor time, and records what it came to.

    run.py RUNS WORK SECONDS [NAME...]

A fuzzer runs in pieces, each a line of the file RUNS: package, fuzzer, inputs, processor seconds,
the most memory of one process in MiB, and whether it failed. One whose lines come to SECONDS is
left out, so the script may be stopped at any time and goes on, and the one that has had least is
next. Several may run at once, with different NAMEs, which pick packages or fuzzers by a part of
their name. A piece is a number of inputs: a duration would let go.dev/issue/75804 fail a run
without an input at fault. The folder WORK has the binaries and the corpus that grows; inputs that
fail come to testdata/fuzz of their package, as go test leaves them. SIGINT or SIGTERM ends a piece
early, which is recorded as far as it came.
"""

import collections
import os
import re
import signal
import subprocess
import sys

stopped = []  # the fuzzer that was told to end
FIRST = 20_000  # inputs of a piece while the speed of a fuzzer is not known
PIECE = 600  # processor seconds of a piece after that


def fuzzers(picked):
    text = subprocess.run(["git", "grep", "--untracked", "-oE", "^func Fuzz[A-Za-z0-9_]*", "--", "*_test.go"], capture_output=True, text=True, check=True).stdout
    for line in sorted(text.splitlines()):
        path, name = line.split(":func ")
        package = os.path.dirname(path)
        if not picked or any(p in f"{package} {name}" for p in picked):
            yield package, name


def recorded(runs):
    """Returns the inputs and the processor seconds of each fuzzer so far."""
    had = collections.defaultdict(lambda: (0, 0.0))
    if os.path.exists(runs):
        with open(runs, encoding="utf-8") as f:
            for line in f:
                package, name, inputs, seconds = line.split("\t")[:4]
                had[package, name] = had[package, name][0] + int(inputs), had[package, name][1] + float(seconds)
    return had


def build(out, package, name):
    """Makes the binary of a fuzzer, which is of the code as it is now, and returns its path."""
    binary = os.path.join(out, f"{package.replace('/', '-')}-{name}.test")
    subprocess.run(["go", "test", "-c", "-fuzz", f"^{name}$", "-o", binary, "./" + package], check=True)
    return binary


def stop(pid):
    """Has the fuzzer of a piece end it, and this script when it is recorded."""
    stopped.append(pid)
    os.kill(pid, signal.SIGINT)


def piece(out, binary, package, name, inputs):
    """Runs a fuzzer for so many inputs and returns its line."""
    os.makedirs(os.path.join(out, "corpus", package), exist_ok=True)
    log = os.path.join(out, f"{package.replace('/', '-')}-{name}.log")
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)  # signals come from stop alone
        with open(log, "w", encoding="utf-8") as f:
            os.dup2(f.fileno(), 1)
            os.dup2(f.fileno(), 2)
        os.chdir(package)
        os.execv(binary, [binary, "-test.run", "^$", "-test.fuzz", f"^{name}$", "-test.fuzztime", f"{inputs}x", "-test.fuzzminimizetime", "100x", "-test.fuzzcachedir", os.path.join(out, "corpus", package), "-test.parallel", "1"])
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, lambda *_: stop(pid))
    _, status, used = os.wait4(pid, 0)
    with open(log, encoding="utf-8") as f:
        counts = re.findall(r"execs: (\d+)", f.read())
    return int(counts[-1]) if counts else 0, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, status != 0


def main():
    runs, out, wanted, picked = sys.argv[1], os.path.abspath(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
    os.makedirs(out, exist_ok=True)
    failed, binaries = set(), {}
    while not stopped:
        had = recorded(runs)
        due = [x for x in fuzzers(picked) if had[x][1] < wanted and x not in failed]
        if not due:
            break
        package, name = min(due, key=lambda x: had[x][1])
        inputs, seconds = had[package, name]
        n = FIRST
        if inputs and seconds:
            n = max(1000, int(min(PIECE, wanted - seconds) * inputs / seconds))
        if (package, name) not in binaries:
            binaries[package, name] = build(out, package, name)
        inputs, seconds, peak, bad = piece(out, binaries[package, name], package, name, n)
        if bad:
            failed.add((package, name))
        line = f"{package}\t{name}\t{inputs}\t{seconds:.1f}\t{peak:.0f}\t{int(bad)}"
        print(line, flush=True)
        with open(runs, "a", encoding="utf-8") as f:
            f.write(line + "\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
