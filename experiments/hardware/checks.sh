#!/bin/bash
# Every check that needs a GPU, in one go, most important first:
#
#   experiments/hardware/checks.sh BIN OUT [SECONDS]
#
# BIN holds what 'make gpu-checks' has built (placer and test programs; no Go is
# needed here), OUT takes the results, also as one archive. Each check has its
# time and its own log; a failure does not stop the others. summary.txt says what
# passed.
set -u
bin=$1 out=$2 end=$(($(date +%s) + ${3:-540}))
mkdir -p "$out/log"
cublas=${PLACER_CUBLAS:-$(ldconfig -p 2>/dev/null | grep -o '/.*libcublas\.so\.1[123]$' | sort -r | head -1)}
[ -n "$cublas" ] || cublas=$(find /usr /opt -name 'libcublas.so.1[123]' 2>/dev/null | sort -r | head -1)
export PLACER_CUBLAS=$cublas
: >"$out/summary.txt"

check() { # name seconds command...
	local name=$1 limit=$2 left rc start
	shift 2
	left=$((end - $(date +%s)))
	if [ "$left" -lt 5 ]; then echo "NO TIME $name" >>"$out/summary.txt"; return; fi
	[ "$limit" -lt "$left" ] || limit=$left
	start=$(date +%s)
	timeout "$limit" bash -c '"$@"' _ "$@" >"$out/log/$name.txt" 2>"$out/log/$name.err"
	rc=$?
	echo "$([ $rc = 0 ] && echo PASS || echo "FAIL($rc)") $name $(($(date +%s) - start))s" | tee -a "$out/summary.txt"
}

symbols() { # of the driver that the bindings ask for
	local lib missing=0
	lib=$(ldconfig -p | grep -o '/.*libcuda\.so\.1$' | head -1)
	[ -n "$lib" ] || lib=$(find /usr -name libcuda.so.1 2>/dev/null | head -1)
	for s in $(cat "$bin/symbols.txt"); do
		nm -D "$lib" | grep -q " T $s\(@\|$\)" || { echo "missing $s"; missing=1; }
	done
	return $missing
}

p() { "$bin/placer" -q "$@"; }

plan() { # workload, machine, seed, method, file
	p search --workload "$1" --machine "$2" --methods "$4" --evaluations 1 --seed "$3" --out "$out/runs/$1-$4-$3-$(basename "$2" .json)" -o "$5"
}

logical() { # workload, parts
	plan "$1" "$out/parts$2.json" 1 human "$out/$1-$2.plan.json" &&
		p measure --workload "$1" --machine "$out/parts$2.json" --plan "$out/$1-$2.plan.json" --logical --mode both --cublas "$cublas" --json >"$out/measured-$1-$2.json"
}

divided() { # the same on multiprocessors of their own
	p measure --workload "$1" --machine "$out/parts$2-own.json" --plan "$out/$1-$2.plan.json" --logical --partition --mode both --cublas "$cublas" --json >"$out/own-$1-$2.json"
}

random() { # seed: how well plans are ranked
	plan rnnlm2 "$out/parts2-own.json" "$1" random "$out/random-$1.plan.json" &&
		p measure --workload rnnlm2 --machine "$out/parts2-own.json" --plan "$out/random-$1.plan.json" --logical --partition --mode graph --repeats 5 --cublas "$cublas" --json >"$out/random-$1.json"
}

searching() { # evaluator: a search that measures; from its file it measures nothing
	for k in 1 2; do
		p search --workload rnnlm:layers=2,unroll=10 --machine "$out/parts2.json" --logical --methods human,single,GO-one --evaluations 128 --workers 1 --evaluator "$1" \
			--measurements "$out/search-$1.jsonl" --cublas "$cublas" --out "$out/runs/search-$1-$k" --json >"$out/search-$1-$k.json" || return
	done
	grep -q '"placements": 0,' "$out/search-$1-2.json"
}

export bin out cublas
export -f symbols p plan logical divided random searching

{ nvidia-smi; echo "cuBLAS: $cublas"; uname -a; } >"$out/host.txt" 2>&1
check binding 60 "$bin/cuda.test" -test.v -test.run RealGPU
check policy-kernels 120 "$bin/policy.test" -test.v -test.run RealGPU
check policy-bench 120 p bench policy --policy-device cuda --nodes 24000 --cublas "$cublas" --json -o "$out/policy.json"
check symbols 30 symbols
check detect 30 "$bin/placer" machines detect -o "$out/detected.json"
check bench 240 "$bin/placer" bench hw --calibrate ${BENCH_FLAGS:-} --cublas "$cublas" --name h200 -o "$out/hardware.json" --machine-file "$out/here.json"
check measure-smoke 60 "$bin/measure.test" -test.v -test.run RealGPU
for k in 2 4; do
	check "split-$k" 10 p machines split --machine "$out/here.json" --parts $k --link '25 GB/s' --latency '20 us' -o "$out/parts$k.json"
	# Hopper separates multiprocessors by eights.
	check "split-own-$k" 10 p machines split --machine "$out/here.json" --parts $k --sms $((132 / k / 8 * 8)) --link '25 GB/s' --latency '20 us' -o "$out/parts$k-own.json"
done
check one 30 p search --workload rnnlm2 --machine "$out/here.json" --gpus 1 --methods single --evaluations 1 --out "$out/runs/one" -o "$out/one.plan.json"
check measure-one 60 p measure --workload rnnlm2 --machine "$out/here.json" --gpus 1 --plan "$out/one.plan.json" --mode both --cublas "$cublas" --trace "$out/one.trace.json"
check search-both 60 searching both
check search-hardware 60 searching hardware
for w in rnnlm2 trfxl2 inception gnmt2 wavenet2; do
	for k in 2 4; do
		check "logical-$w-$k" 60 logical $w $k
		check "divided-$w-$k" 60 divided $w $k
	done
done
for s in $(seq 30); do check "random-$s" 20 random "$s"; done
rm -rf "$out/runs"
(cd "$out" && tar czf results.tar.gz --exclude results.tar.gz *)
cat "$out/summary.txt"
! grep -q FAIL "$out/summary.txt"
