#!/bin/sh
# A GPT-2-like model cut in two by --objective throughput, two sessions on a core each.
#
#   run.sh PLACER PYTHON OUT
#
# Writes OUT/result.json: seconds a request of one session on one core and of the two
# stages, the gain round by round, placer's prediction, and whether outputs are equal.
set -eu
placer=$1 python=$2 out=$3
export PLACER=$placer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -c "import sys; from placer_onnxruntime import examples; examples.gpt2(sys.argv[1])" "$work/gpt2.onnx"
"$python" -m placer_onnxruntime profile "$work/gpt2.onnx" -o "$work" >&2
inputs="--graph $work/gpt2.onnx --machine $work/machine.json --times $work/times.json --cpu --objective throughput"
"$placer" search ${inputs} --evaluations 2000 --out "$work/run" -o "$work/plan.json" -q >/dev/null 2>&1
"$placer" export ${inputs} --plan "$work/plan.json" --to onnx -o "$work/stages.json"
predicted=$("$placer" simulate ${inputs} --plan "$work/stages.json" --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)["max_load"]["seconds"])')
"$python" -m placer_onnxruntime run "$work/stages.json" --model "$work/gpt2.onnx" --requests 60 --rounds 7 --predicted "$predicted" >"$work/result.json"
mv "$work/result.json" "$out/result.json"
cat "$out/result.json"
