#!/bin/bash
# Every check that needs a GPU, most important first:
#
#   experiments/hardware/checks.sh BIN OUT [SECONDS [PART]]
#
# BIN holds what 'make gpu-checks' has built (placer and test programs; no Go is
# needed here), OUT takes the results. PART is one of three, each for ten minutes at
# most, or all (the default):
#
#   base    bindings, kernels, the hardware table, the machine file, the policy network
#   steps   measured beside predicted steps, devices sharing multiprocessors and not
#   search  traces, searches by measurement
#
# steps and search take the machine file of base from OUT, or from MACHINE. Each
# check has its time and its own log; a failure does not stop the others. The exit code is
# 0 where all have passed: one for which there was no time has not.
# summary-PART.txt says what passed. Where PACK names a folder, all of OUT is packed
# into PACK/PART.tgz behind every check, so that an end in between loses one check,
# and what is read first lies beside it: five files at most.
set -u
bin=$1 out=$2 end=$(($(date +%s) + ${3:-1700})) part=${4:-all}
mkdir -p "$out/log"
machine=${MACHINE:-$out/here.json}
summary=$out/summary-$part.txt

newest() { # of the libraries named line by line, the newest that the driver is new enough for
	local cuda
	cuda=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA[^:]*Version: *\([0-9]*\).*/\1/p' | head -1)
	awk -F. -v most="${cuda:-13}" '$NF <= most { print $NF, $0 }' | sort -k1,1nr -k2 | head -1 | cut -d' ' -f2-
}

: >"$summary"

# The python3 that has PyTorch, or any.
python=
for x in "${PLACER_PYTHON:-}" python3 /opt/*/.venv/bin/python3 /opt/*/bin/python3 /usr/local/bin/python3; do
	x=$(command -v "$x" 2>/dev/null) || continue
	[ -n "$python" ] || python=$x
	torch=$("$x" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null) || continue
	python=$x
	break
done

# cuBLAS: PyTorch's, for figures beside its own, or else that of the host. What it
# loads lies beside it.
cublas=${PLACER_CUBLAS:-}
[ -n "$cublas" ] || [ -z "${torch:-}" ] || cublas=$(find "$torch/lib" "$torch/../nvidia" -name 'libcublas.so.1[123]' 2>/dev/null | newest)
[ -n "$cublas" ] || cublas=$(ldconfig -p 2>/dev/null | grep -o '/.*libcublas\.so\.1[123]$' | newest)
[ -n "$cublas" ] || cublas=$(find /usr/local /usr/lib /opt -name 'libcublas.so.1[123]' 2>/dev/null | newest)
if [ -n "$cublas" ]; then
	export PLACER_CUBLAS=$cublas LD_LIBRARY_PATH=$(dirname "$cublas"):${LD_LIBRARY_PATH:-}
fi

pack() { # what there is so far
	[ -n "${PACK:-}" ] || return 0
	mkdir -p "$PACK"
	tar czf "$PACK/.$part.tgz" --exclude ./runs -C "$out" . && mv "$PACK/.$part.tgz" "$PACK/$part.tgz"
	cp "$summary" "$PACK/"
	for x in here.json pytorch.md hardware.md; do
		[ "$part" = steps ] || [ "$part" = search ] || [ ! -s "$out/$x" ] || cp "$out/$x" "$PACK/"
	done
	for x in steps-own.md steps-shared.md; do [ ! -s "$out/$x" ] || cp "$out/$x" "$PACK/"; done
}

check() { # name seconds command...
	local name=$1 limit=$2 left rc start
	shift 2
	left=$((end - $(date +%s)))
	if [ "$left" -lt 5 ]; then echo "NO TIME $name" | tee -a "$summary"; return; fi
	[ "$limit" -lt "$left" ] || limit=$left
	start=$(date +%s)
	timeout "$limit" bash -c '"$@"' _ "$@" >"$out/log/$name.txt" 2>"$out/log/$name.err"
	rc=$?
	echo "$([ $rc = 0 ] && echo PASS || echo "FAIL($rc)") $name $(($(date +%s) - start))s" | tee -a "$summary"
	[ $rc = 0 ] || tail -n 3 "$out/log/$name.err"
	pack
}

symbols() { # of the driver that the bindings ask for
	local lib missing=0
	command -v nm >/dev/null || { echo "no nm here; the binding has looked its own up"; return 0; }
	lib=$(ldconfig -p | grep -o '/.*libcuda\.so\.1$' | head -1)
	[ -n "$lib" ] || lib=$(find /usr -name libcuda.so.1 2>/dev/null | head -1)
	[ -n "$lib" ] || { echo "no libcuda.so.1 where it is looked for"; return 1; }
	for s in $(cat "$bin/symbols.txt"); do
		nm -D "$lib" | grep -q " T $s\(@\|$\)" || { echo "missing $s"; missing=1; }
	done
	return $missing
}

p() { "$bin/placer" -q "$@"; }

two() { [ -e "$out/two.json" ] || p machines split --machine "$machine" --parts 2 --link '25 GB/s' --latency '20 us' -o "$out/two.json"; }

steps() { # name, seconds, more flags: the comparison as JSON and Markdown
	local name=$1 budget=$2 left=$((end - $(date +%s) - 20))
	shift 2
	[ "$budget" -lt "$left" ] || budget=$left
	[ "$budget" -gt 0 ] || { echo "no time"; return 1; }
	"$bin/placer" bench steps --machine "$machine" --cublas "$cublas" --budget "${budget}s" -o "$out/$name.json" "$@" >"$out/$name.md"
}

fused() { # a plan that search has found, fused as by default, op by op and kernel by kernel
	two && p search --workload rnnlm2 --machine "$out/two.json" --methods human,polish --evaluations 300 --out "$out/runs/fused" -o "$out/fused.plan.json" &&
		p measure --workload rnnlm2 --machine "$out/two.json" --plan "$out/fused.plan.json" --logical --mode both --cublas "$cublas" --trace "$out/fused.trace.json" --json >"$out/measured-fused.json"
}

single() { # one device: classes of ops
	p search --workload "$1" --machine "$machine" --gpus 1 --tasks place --methods single --evaluations 1 --out "$out/runs/$1" -o "$out/$1.plan.json" &&
		p measure --workload "$1" --machine "$machine" --gpus 1 --plan "$out/$1.plan.json" --mode both --cublas "$cublas" --json >"$out/measured-$1.json"
}

searching() { # evaluator: a search that measures; from its file it measures nothing
	two || return
	cat >"$out/search-$1.config.json" <<END
{"format": "placer run 1", "measurements": "$out/search-$1.jsonl", "measuring": {"logical": true}, "libraries": {"cublas": "$cublas"}}
END
	for k in 1 2; do
		p search --workload rnnlm:layers=2,unroll=10 --machine "$out/two.json" --methods human,single,GO-one --evaluations 128 --workers 1 --evaluator "$1" \
			--config "$out/search-$1.config.json" --out "$out/runs/search-$1-$k" --json >"$out/search-$1-$k.json" || return
	done
	grep -q '"placements": 0,' "$out/search-$1-2.json"
}

policy_kernels() { # a test that is skipped has shown nothing: there is no cuBLAS, say
	"$bin/device.test" -test.v -test.run RealGPU >"$out/log/device.test.txt" 2>&1
	local rc=$?
	cat "$out/log/device.test.txt"
	[ $rc = 0 ] && grep -q '^--- PASS' "$out/log/device.test.txt" && ! grep -q '^--- SKIP' "$out/log/device.test.txt"
}

like_pytorch() {
	[ -n "$python" ] || { echo "no python3 here"; return 0; }
	"$python" "$bin/pytorch.py" "$out/hardware.json" "$out/pytorch.json"
}

export bin out cublas machine python end
export -f symbols p two policy_kernels steps fused single searching like_pytorch

if [ "$part" = base ] || [ "$part" = all ]; then
	{ nvidia-smi; nvidia-smi -q -d CLOCK,POWER,PERFORMANCE; echo "cuBLAS: $cublas"; echo "python: $python"; uname -a; nproc; } >"$out/host.txt" 2>&1
	check detect 20 "$bin/placer" machines detect -o "$out/detected.json"
	check binding 60 "$bin/cuda.test" -test.v -test.run RealGPU
	check bench 220 "$bin/placer" bench hw --calibrate ${BENCH_FLAGS:-} --cublas "$cublas" --name here -o "$out/hardware.json" --machine-file "$out/here.json"
	cp "$out/log/bench.txt" "$out/hardware.md" 2>/dev/null
	check like-pytorch 120 like_pytorch
	cp "$out/log/like-pytorch.txt" "$out/pytorch.md" 2>/dev/null
	check measure-smoke 40 "$bin/measure.test" -test.v -test.run RealGPU
	check policy-kernels 100 policy_kernels
	# The aim is in terms of two cores.
	check policy-bench 120 env GOMAXPROCS=2 "$bin/placer" -q bench policy --policy-device cuda --nodes 24000 --cublas "$cublas" --json -o "$out/policy.json"
	check symbols 20 symbols
fi
if [ "$part" = steps ] || [ "$part" = all ]; then
	check steps-own 350 steps steps-own 320 --partition --rank rnnlm2,trfxl2,gnmt2
	check steps-shared 230 steps steps-shared 210 --devices 2,4
fi
if [ "$part" = search ] || [ "$part" = all ]; then
	check fused 90 fused
	for w in rnnlm2 trfxl2 wavenet2 gnmt2 inception; do check "single-$w" 60 single $w; done
	check search-both 90 searching both
	check search-hardware 90 searching hardware
fi
rm -rf "$out/runs"
pack
case $part in
base) cat "$out/pytorch.md" ;;
steps) for x in "$out"/steps-*.md; do echo "$x"; sed -n '1,10p' "$x"; grep -v '^|\|^$' "$x" | tail -n +2; done ;;
esac 2>/dev/null
cat "$summary"
! grep -q 'FAIL\|NO TIME' "$summary"
