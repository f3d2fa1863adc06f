"""Prints the table of a file of run.py: what each fuzzer has had in all."""

import collections
import sys

had = collections.defaultdict(lambda: [0, 0.0, 0, 0])
with open(sys.argv[1], encoding="utf-8") as f:
    for line in f:
        package, name, inputs, seconds, peak, bad = line.split("\t")
        x = had[package, name]
        had[package, name] = [x[0] + int(inputs), x[1] + float(seconds), max(x[2], int(peak)), x[3] + int(bad)]
print("| fuzzer | inputs | processor minutes | most memory of a process, MiB | pieces that failed |")
print("|---|---:|---:|---:|---:|")
for (package, name), (inputs, seconds, peak, bad) in sorted(had.items()):
    print(f"| {package} {name} | {inputs:,} | {seconds / 60:.1f} | {peak} | {bad} |")
