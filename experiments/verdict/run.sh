#!/usr/bin/env bash
# Asks for the verdict on six models, on 1, 2, 4 and 8 of A100 and of H100, and on a
# desktop of 24 GB, 12 GB and a CPU; records the texts and the documents beside itself
# (or in OUT). BUDGET (default 30s) applies to each machine; TOGETHER=1 asks for the three
# machines of a model at once. RESNET names a ResNet-50 as
# an ONNX file, which this repository does not hold; without it that row is left out.
# A verdict that fails ends it; what was recorded of it stays.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -n "${PLACER:-}" ] || go build -o bin/placer ./cmd/placer
placer=${PLACER:-bin/placer}
out=${OUT:-experiments/verdict}
mkdir -p "$out"
ask() {
  local name=$1
  shift
  for m in a100 h100; do
    one "$name-$m" "$@" --gpu "$m" --counts 1,2,4,8 &
    started+=($!)
    [ -n "${TOGETHER:-}" ] || collect
  done
  one "$name-box" "$@" --machine experiments/verdict/box.json &
  started+=($!)
  collect
}
started=()
collect() { # waits for all that were started, and fails with one of them
  local pid rc=0
  for pid in "${started[@]}"; do wait "$pid" || rc=$?; done
  started=()
  [ "$rc" = 0 ] || exit "$rc"
}
one() {
  local name=$1
  shift
  begin=$(date +%s.%N)
  rc=0
  "$placer" verdict -q "$@" --budget "${BUDGET:-30s}" --json >"$out/$name.json.new" || rc=$?
  if [ "$rc" != 0 ] && [ "$rc" != 3 ]; then exit "$rc"; fi
  mv "$out/$name.json.new" "$out/$name.json"
  echo "$name: $(echo "$(date +%s.%N) - $begin" | bc) s, exit $rc" >&2
}
ask llama --workload llama
ask llama70b --workload llama:layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672
ask moe --workload moe
ask vitl --workload vit:layers=24,hidden=1024,heads=16,ffn=4096
if [ -n "${RESNET:-}" ]; then ask resnet50 --graph "$RESNET" --train momentum --batch 1; fi
ask gnmt8 --workload gnmt8
