#!/usr/bin/env bash
# Repeats table 1 of REGAL: GRAPHS (default 100) synthetic graphs, and, where
# PLACER_DATA holds ONNX files, run time and peak memory of six of them with COPIES
# (default 3) augmented copies each. SEED (default 1) applies to all. Where OR-Tools
# is found (PLACER_ORTOOLS) CP-SAT takes part, with CPSAT (default 3) of its time a
# graph. What is done on each graph is kept in RUNS (default runs): it goes on where
# it was stopped.
set -euo pipefail
cd "$(dirname "$0")/../.."
go build -o bin/placer ./cmd/placer
here=experiments/regal
gas=()
if [ -f "$here/gas.safetensors" ]; then gas=(--gas "$here/gas.safetensors"); fi
record() { # name, flags
  local name=$1 out=${RUNS:-runs}/regal-table-$1
  shift
  echo "regal: $name, in $out" >&2
  bin/placer bench regal -q --seed "${SEED:-1}" --cpsat-work "${CPSAT:-3}" --out "$out" "${gas[@]}" "$@"
  cp "$out/result.json" "$here/$name.json"
  cp "$out/graphs.csv" "$here/$name-graphs.csv"
}
record synthetic --graphs "${GRAPHS:-100}"
data=${PLACER_DATA:-../shared/data}/onnx
if [ ! -d "$data" ]; then
  echo "regal: no ONNX files in PLACER_DATA, so no rows for real graphs" >&2
  exit 0
fi
files=()
for f in onnx-light/light_{inception_v1,resnet50,squeezenet} onnxruntime-testdata/{gpt2_one_layer,gpt2_megatron,bert_toy_optimized}; do
  files+=(--graph "$data/$f.onnx")
done
record time --task time --copies "${COPIES:-3}" "${files[@]}"
record memory --task memory --copies "${COPIES:-3}" "${files[@]}"
