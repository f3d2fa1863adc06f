"""Runs a sample of what experiments records again and holds it to what is recorded.

    check.py PLACER OUT [NAME...]

Prints a line for each figure: its check, the command, what is recorded (an interval where the
seeds or the clock make one), what came out. Exit code 1 where one is outside, or a check finds
nothing to hold to the record. A figure of a
fixed seed and a budget in evaluations must be the recorded one to TOLERANCE, which leaves room
for what later versions decide otherwise; one of a budget in time may be longer by LATE, since
machines differ. NAME picks checks. OUT keeps the commands' folders.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time

TOLERANCE = 0.01  # of a policy or a search
EXACT = 1e-6  # of a rule
LATE = 0.03  # of a budget in time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def load(*path):
    with open(os.path.join(HERE, *path), encoding="utf-8") as f:
        return json.load(f)


def lines(*path):
    with open(os.path.join(HERE, *path), encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def table(*path):
    with open(os.path.join(HERE, *path), encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


class Quick:
    def __init__(self, placer, out):
        self.placer, self.out, self.outside, self.tried = placer, out, 0, 0

    def run(self, *args, command=None):
        done = subprocess.run([*(command or [self.placer]), *args], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            raise SystemExit(f"repro-quick: {' '.join(args)}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def folder(self, name):
        path = os.path.join(self.out, name)
        shutil.rmtree(path, ignore_errors=True)
        return path

    def within(self, what, value, low, high, tolerance):
        self.tried += 1
        good = low * (1 - tolerance) <= value <= high * (1 + tolerance)
        self.outside += not good
        recorded = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
        print(f"{'ok     ' if good else 'OUTSIDE'} {what}: {value:.6g}, recorded {recorded}", flush=True)

    def no_longer(self, what, value, most, tolerance):
        self.within(what, value, min(value, most), most, tolerance)

    def compare(self, name, *args):
        path = self.folder(name)
        self.run("compare", "-q", "--out", path, *args)
        with open(os.path.join(path, "compare.json"), encoding="utf-8") as f:
            return json.load(f)

    # The checks, in the order of experiments/README.md.

    def table2(self):
        """The human expert's step of all 14 rows."""
        for line in open(os.path.join(HERE, "table2", "rows.tsv"), encoding="utf-8"):
            workload, gpus = line.split()[:2]
            got = self.compare("human", "--workload", workload, "--gpus", gpus, "--methods", "human", "--seeds", "1", "--evaluations", "1")
            human = next(r for r in load("table2", workload + ".json")["rows"] if r["method"] == "human")
            self.within(f"table2 {workload} human", got["rows"][0]["median_step_time_s"], human["step_time_s"], human["step_time_s"], EXACT)

    def search_budget(self):
        """Searches of a second and of ten, no longer than the longest recorded seed."""
        recorded = {}
        with open(os.path.join(HERE, "search-budget", "runs.tsv"), encoding="utf-8") as f:
            for line in f:
                seconds, workload, _, binary, step = line.split("\t")[:5]
                if binary == "new":
                    recorded.setdefault((workload, seconds), []).append(float(step))
        for workload, gpus in (("rnnlm2", 2), ("trfxl2", 2), ("wavenet2", 2), ("amoebanet", 4)):
            for seconds in ("1", "10"):
                if (workload, seconds) not in recorded:
                    continue
                text = self.run("search", "-q", "--tasks", "place", "--workload", workload, "--gpus", str(gpus), "--budget", seconds + "s", "--out", self.folder("search"), "--json")
                self.no_longer(f"search-budget {workload} {seconds} s, ms", 1e3 * json.loads(text)["best"]["step_time_s"], max(recorded[workload, seconds]), LATE)

    def baselines(self):
        """The papers' rivals by rule."""
        recorded = {(t["case"], t["method"]): t["step_time_s"] for t in load("baselines", "compare.json")["trials"]}
        names = ["human", "heft", "etf", "heft-units", "etf-units", "m-topo", "m-etf", "m-sct"]
        if shutil.which("gpmetis"):
            names.append("mincut")
        else:
            print("left out: mincut, which needs gpmetis; install metis", flush=True)
        got = self.compare("baselines", "--workload", "rnnlm2,trfxl2", "--gpus", "2", "--evaluations", "100", "--seeds", "1", "--methods", ",".join(names))
        for t in got["trials"]:
            want = recorded[t["case"], t["method"]]
            self.within(f"baselines {t['case']} {t['method']}", t["step_time_s"], want, want, EXACT)

    def go_hdp(self):
        """GO, HDP, GDP, annealing and random-best at 2,000 evaluations, one seed of two graphs."""
        rows = {(r["case"], r["method"]): r for r in load("go-hdp", "compare.json")["rows"]}
        got = self.compare("go-hdp", "--workload", "rnnlm2,inception", "--methods", "human,random-best,hdp,GDP-one,GO-one,anneal", "--against", "hdp", "--evaluations", "2000", "--seeds", "1")
        for t in got["trials"]:
            r = rows[t["case"], t["method"]]
            self.within(f"go-hdp {t['case']} {t['method']}", t["step_time_s"], r["low_step_time_s"], r["high_step_time_s"], TOLERANCE)

    def transfer(self):
        """Policies that never saw the family, zero-shot and fine-tuned."""
        out = self.folder("transfer")
        os.makedirs(out)
        policies = sorted(os.path.join("experiments/transfer/policies", p) for p in os.listdir(os.path.join(HERE, "transfer", "policies")) if p.startswith("without-"))
        self.run("run", "./experiments/transfer", "rows", "-rows", "rnnlm2,trfxl2,wavenet2", "-tune-seeds", "1", "-o", out, *policies, command=["go"])
        recorded = {r["workload"]: r for r in table("transfer", "results.csv")}
        seeds = {r["workload"]: float(r["step_s"]) for r in table("transfer", "tuned.csv") if r["seed"] == "1"}
        with open(os.path.join(out, "results.csv"), encoding="utf-8", newline="") as f:
            for r in csv.DictReader(f):
                w = r["workload"]
                for column in ("greedy_s", "best_of_16_s", "direct_16_s", "untrained_s"):
                    want = float(recorded[w][column])
                    self.within(f"transfer {w} {column}", float(r[column]), want, want, TOLERANCE)
                self.within(f"transfer {w} fine-tuned, seed 1", float(r["fine_tuned_s"]), seeds[w], seeds[w], TOLERANCE)

    def regal(self):
        """REGAL's synthetic graphs, the first five, every method."""
        out = self.folder("regal")
        self.run("bench", "regal", "-q", "--graphs", "5", "--no-cpsat", "--out", out)
        recorded = {(r["graph"], r["method"]): float(r["cost"]) for r in table("regal", "synthetic-graphs.csv")}
        with open(os.path.join(out, "graphs.csv"), encoding="utf-8", newline="") as f:
            for r in csv.DictReader(f):
                want = recorded.get((r["graph"], r["method"]))
                if want is not None:
                    self.within(f"regal {r['graph']} {r['method']}", float(r["cost"]), want, want, TOLERANCE)

    def go_table3(self):
        """Learned fusion and annealing with 20 times its evaluations, one seed of one row."""
        self.go("go-table3", "trfxl2", "v100", 2000)

    def go_figure6(self):
        """Tasks alone, in pairs and jointly, one seed of one case."""
        self.go("go-figure6", "trfxl2", "p100", 4000)

    def go(self, name, workload, gpu, evaluations):
        recorded = {}
        for t in lines(name, "run", "trials.jsonl"):
            recorded.setdefault((t["case"], t["method"]), []).append(t["step_time_s"])
        out = self.folder(name)
        self.run("bench", name, "-q", "--workload", workload, "--gpu", gpu, "--evaluations", str(evaluations), "--seeds", "1", "--out", out)
        with open(os.path.join(out, "trials.jsonl"), encoding="utf-8") as f:
            for t in map(json.loads, f):
                want = recorded.get((t["case"], t["method"]))
                if want:
                    self.within(f"{name} {t['case']} {t['method']}", t["step_time_s"], min(want), max(want), TOLERANCE)

    def strategies(self):
        """Ways to divide a step of Llama, but for those that search."""
        for n in ("2", "4"):
            recorded = {r["name"]: r for r in load("strategies", f"llama-a100-{n}.json")["rows"]}
            got = json.loads(self.run("strategies", "-q", "--eager", "--workload", "llama:attention=products", "--batch", "32", "--gpu", "a100", "--gpus", n, "--budget", "10s", "--json"))
            for r in got["rows"]:
                want = recorded.get(r["name"])
                if want and "placement" not in r["name"] and want["feasible"]:
                    self.within(f"strategies llama on {n} {r['name']}", r["step_time_s"], want["step_time_s"], want["step_time_s"], TOLERANCE)

    def verdict(self):
        """How many A100 pay for one model, half a minute."""
        recorded = {r["key"]: r for r in load("verdict", "vitl-a100.json")["rows"]}
        got = json.loads(self.run("verdict", "-q", "--workload", "vit:layers=24,hidden=1024,heads=16,ffn=4096", "--gpu", "a100", "--counts", "1,2,4,8", "--budget", "30s", "--json"))
        for r in got["rows"]:
            self.no_longer(f"verdict vitl on {r['devices']} a100", r["step_time_s"], recorded[r["key"]]["step_time_s"], LATE)

    def papers(self):
        """The cells of GO's table 2 that its own step times contradict."""
        text = self.run("run", "./experiments/papers", command=["go"])
        with open(os.path.join(HERE, "papers", "README.md"), encoding="utf-8") as f:
            for line in f:
                if re.match(r"\|.*\| 0\.", line):
                    self.within(f"papers {line[2:40]}", float(line.strip().rstrip("|") in text), 1, 1, EXACT)


CHECKS = ["table2", "papers", "baselines", "go_hdp", "transfer", "regal", "go_table3", "strategies", "search_budget", "verdict", "go_figure6"]


def main():
    q = Quick(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
    os.makedirs(q.out, exist_ok=True)
    began = time.monotonic()
    for name in sys.argv[3:] or CHECKS:
        name = name.replace("-", "_")
        at, n = time.monotonic(), q.tried
        print(f"{name}: {getattr(q, name).__doc__}", flush=True)
        getattr(q, name)()
        if q.tried == n:  # names of methods have changed, say
            q.outside += 1
            print(f"OUTSIDE {name}: nothing that came out is recorded", flush=True)
        print(f"{name}: {q.tried - n} figures in {time.monotonic() - at:.0f} s", flush=True)
    print(f"repro-quick: {q.tried} figures in {time.monotonic() - began:.0f} s, {q.outside} outside")
    sys.exit(q.outside > 0)


if __name__ == "__main__":
    main()
