#!/usr/bin/env bash
# Compares strategies for six models on 1, 2, 4 and 8 of A100 and of H100 and on a desktop
# of 24 GB and 12 GB, and torchtitan's Llama on four RTX 3090; records the documents beside
# itself (or in OUT). What is there is kept: a run that was stopped goes on, AGAIN=1 starts
# over. ROWS='llama vitl' runs some models alone, ON='h100-8 box' some machines. BUDGET
# (default 60s) is that of the placement of each. RESNET names a ResNet-50 as an ONNX file;
# its first dimension is opened if it is a number. Without it that row is left out. Ops are not fused (--eager).
set -euo pipefail
trap 'exit 130' INT TERM # a row that was interrupted lacks ways: it is not kept
cd "$(dirname "$0")/../.."
[ -n "${PLACER:-}" ] || go build -o bin/placer ./cmd/placer
placer=${PLACER:-bin/placer}
out=${OUT:-experiments/strategies}
mkdir -p "$out"
one() {
  local name=$1
  shift
  if [ -n "${ON:-}" ] && [[ " $ON " != *" ${name#*-} "* ]]; then return; fi
  if [ -z "${AGAIN:-}" ] && [ -s "$out/$name.json" ]; then return; fi
  rc=0
  "$placer" strategies -q --eager "$@" --budget "${BUDGET:-60s}" --json >"$out/$name.json.new" || rc=$?
  if [ "$rc" != 0 ] && [ "$rc" != 3 ]; then exit "$rc"; fi
  mv "$out/$name.json.new" "$out/$name.json"
  echo "$name: exit $rc" >&2
}
ask() {
  local name=$1
  shift
  if [ -n "${ROWS:-}" ] && [[ " $ROWS " != *" $name "* ]]; then return; fi
  for m in a100 h100; do
    for n in 1 2 4 8; do one "$name-$m-$n" "$@" --gpu "$m" --gpus "$n"; done
  done
  one "$name-box" "$@" --machine experiments/verdict/box.json
}
# Recorded with attention as products and a softmax.
ask llama --workload llama:attention=products --batch 32
ask llama70b --workload llama:layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,attention=products --batch 16
ask moe --workload moe:attention=products --batch 16
ask vitl --workload vit:layers=24,hidden=1024,heads=16,ffn=4096,attention=products --batch 256
ask gnmt8 --workload gnmt8 --batch 256
if [ -n "${RESNET:-}" ]; then
  go run ./experiments/strategies/openbatch "$RESNET" bin/resnet50.onnx
  ask resnet50 --graph bin/resnet50.onnx --train momentum --dim batch=256
fi
if [ -z "${ROWS:-}" ] || [[ " $ROWS " == *" torchtitan "* ]]; then
  "$placer" machines init --gpu 'rtx3090*4' --name 3090s -q -o "$out/3090s.json.new"
  mv "$out/3090s.json.new" "$out/3090s.machine.json"
  # The pull request's own settings (torchtitan/experiments/autopartition: llama3_tain_spec.py,
  # debug_model.toml): 16 heads without groups, a vocabulary of 2,048, 32 sequences of 2,048 one by
  # one, AdamW in f32; ffn is two thirds of 4*dim, rounded up to a multiple of 256.
  for d in 2048 4096; do
    one "torchtitan-$d" --workload "llama:layers=12,hidden=$d,heads=16,kv_heads=16,ffn=$(((8 * d / 3 + 255) / 256 * 256)),vocab=2048,seq=2048,dtype=f32,attention=products" \
      --machine "$out/3090s.machine.json" --batch 32 --micro-batches 32 --stages 3,4,3,2
  done
fi
