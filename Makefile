# The one entry point: people, README and CI use these targets.
# The first target prints them.

GO     ?= go
COUNT  ?= 10
FUZZ   ?= 200000x
BUDGET ?= 5m
SEED   ?= 1
RUNS   ?= runs
DATA   ?= data
NVRTC  ?= libnvrtc.so.12
CUDA_INCLUDE ?= /usr/local/cuda/include
CUDA_LDFLAGS ?=
ACCURACY_OUT ?=
GPU_OUT ?= experiments/hardware/here

.PHONY: help build test test-long lint verify golden bench fuzz repro-table2 repro-ablation repro-transfer repro-papers repro-workers repro-go-hdp repro-learned-rivals repro-partitioning repro-doppler clean

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## compile bin/placer
	$(GO) build -o bin/placer ./cmd/placer

# Runs go test -v, shows what matters of its output and which tests were skipped.
define gotest
	@mkdir -p bin; { $(GO) test -v $(1); echo $$? >bin/test.rc; } 2>&1 | tee bin/test.log | awk -f .ci/test.awk; exit $$(cat bin/test.rc)
endef

test: ## vet and test everything, and say which tests were skipped and why; no GPU, no network, two minutes on two cores, eight where nothing is compiled yet
	$(GO) vet ./...
	$(call gotest,./...)

test-long: ## race detector where goroutines start, in shuffled order, long oracles and experiments in small, each fuzzer $(FUZZ) inputs
	$(call gotest,-tags long -timeout 40m $$(grep -rlE '^//go:build.*long' --include='*_test.go' . | xargs -n1 dirname | sort -u))
	@if [ "$$($(GO) env CGO_ENABLED)" = 1 ] && command -v "$$($(GO) env CC)" >/dev/null; then \
		$(GO) test -race -shuffle on -short -timeout 30m ./baselines/conformance $$(grep -rlE '"placer/internal/parallel"|^\s+go [a-z]+[.(]' --include='*.go' --exclude='*bench_test.go' graph hw plan baselines internal nn ppo | xargs -n1 dirname | sort -u | sed 's|^|./|' | grep -v '/cli$$') && \
		$(GO) test -race -run 'Workers|Killed|Interrupted|Stopped|RowsEnd|ResultAgrees' ./placer/strategies ./sim ./sim/robust ./internal/cli; \
	else echo "test-long: no C compiler, so no race detector"; fi
	$(MAKE) fuzz

.PHONY: test-torch test-torch-libraries test-torch-releases test-torch-accuracy
test-torch: ## the PyTorch package with real torch, which is installed beside the tree where there is none (1.3 GB)
	$(GO) build -o bin/placer ./cmd/placer
	PLACER=$(CURDIR)/bin/placer python/ci.sh -n 2 --ignore tests/test_accuracy.py
	PLACER_TORCH_PYTHON=$$(python/install_torch.sh) $(GO) test -count=1 -run TorchReal ./internal/cli

test-torch-libraries: ## models of transformers, peft, diffusers, timm and torchvision, trained by captured steps beside plain torch, and config.json of decoders beside what transformers builds; the libraries are installed beside the tree where they are not (416 MB)
	$(GO) build -o bin/placer ./cmd/placer
	libraries=$$(python/install_libraries.sh) && cd python && PLACER=$(CURDIR)/bin/placer PYTHONPATH=.:tests:$$libraries $$(./install_torch.sh) -m pytest -q tests_libraries

TORCH_RELEASES ?= 2.6.0 2.8.0 2.12.0 2.13.0
test-torch-releases: ## the PyTorch package's tests with older releases of torch, which are installed beside the tree (1.3 to 1.9 GB each); some 40 minutes of two cores
	$(GO) build -o bin/placer ./cmd/placer
	cd python && for release in $(TORCH_RELEASES); do \
		venv=$${XDG_CACHE_HOME:-$$HOME/.cache}/placer/torch-$$release && \
		python=$$(PLACER_TORCH_VERSION=$$release ./install_torch.sh $$venv) && \
		$$python -m pip install --quiet --disable-pip-version-check 'pytest>=7' 'pytest-xdist>=3.5' && \
		PLACER=$(CURDIR)/bin/placer PYTHONPATH=.:tests PYTHONSAFEPATH=1 OMP_NUM_THREADS=1 $$python -m pytest -q -n 2 --ignore tests/test_accuracy.py tests || exit 1; \
	done

test-torch-accuracy: ## steps that the simulator predicts against measured ones, four models on two cores, 80 placements; wants a quiet machine
	$(GO) build -o bin/placer ./cmd/placer
	PLACER=$(CURDIR)/bin/placer PLACER_ACCURACY_OUT=$(ACCURACY_OUT) python/ci.sh -s tests/test_accuracy.py

.PHONY: repro-pytorch
repro-pytorch: ## PyTorch steps by the searched plan and by the layer-per-device expert, six seeds, and the accuracy of predictions, into experiments/pytorch; two cores
	$(GO) build -o bin/placer ./cmd/placer
	PLACER=$(CURDIR)/bin/placer PYTHONPATH=$(CURDIR)/python OMP_NUM_THREADS=1 $$(python/install_torch.sh) experiments/pytorch/gnmt.py experiments/pytorch/config.json experiments/pytorch
	PYTHONPATH=$(CURDIR)/python OMP_NUM_THREADS=1 $$(python/install_torch.sh) experiments/pytorch/contention.py >experiments/pytorch/contention.md.new
	mv experiments/pytorch/contention.md.new experiments/pytorch/contention.md
	rm -f experiments/pytorch/accuracy.jsonl.new
	$(MAKE) test-torch-accuracy ACCURACY_OUT=$(CURDIR)/experiments/pytorch/accuracy.jsonl.new
	mv experiments/pytorch/accuracy.jsonl.new experiments/pytorch/accuracy.jsonl

.PHONY: test-tensorflow test-tensorflow-libraries repro-tensorflow repro-virtual
test-tensorflow: ## the TensorFlow package with real TensorFlow, which is installed beside the tree where there is none (1 GB)
	$(GO) build -o bin/placer ./cmd/placer
	PLACER=$(CURDIR)/bin/placer python/ci_tensorflow.sh
	PYTHONPATH=$(CURDIR)/python PLACER_TENSORFLOW_PYTHON=$$(python/install_tensorflow.sh) $(GO) test -count=1 -run TensorFlowReal ./internal/cli

test-tensorflow-libraries: ## models of keras.applications and keras-hub, Keras's layers and optimizers, trained by captured steps beside plain TensorFlow; keras-hub is installed beside the tree where it is not (33 MB)
	$(GO) build -o bin/placer ./cmd/placer
	libraries=$$(python/install_tensorflow_libraries.sh) && python=$$(python/install_tensorflow.sh) && $$python -m pip install --quiet --disable-pip-version-check 'pytest>=7' && cd python && PLACER=$(CURDIR)/bin/placer PYTHONPATH=.:$$libraries $$python -m pytest -q tests_tensorflow_libraries

MODELS ?= lstm inception
repro-tensorflow: ## TensorFlow steps of an LSTM and a convolutional net (MODELS=), 18 placements each, predicted and measured, into experiments/tensorflow; two quiet cores, minutes
	$(GO) build -o bin/placer ./cmd/placer
	PLACER=$(CURDIR)/bin/placer PYTHONPATH=$(CURDIR)/python $$(python/install_tensorflow.sh) experiments/tensorflow/accuracy.py experiments/tensorflow $(MODELS)

repro-virtual: ## predictions of 30 placements by the simulator and by Grappler's VirtualCluster, into experiments/tensorflow; any host, a minute
	$(GO) build -o bin/placer ./cmd/placer
	PLACER=$(CURDIR)/bin/placer PYTHONPATH=$(CURDIR)/python $$(python/install_tensorflow.sh) experiments/tensorflow/virtual.py experiments/tensorflow

.PHONY: test-onnxruntime test-onnx-libraries repro-onnxruntime
test-onnxruntime: ## stages of ONNX models as a pipeline of sessions, with ONNX Runtime, which is installed beside the tree where there is none (37 MB)
	$(GO) build -o bin/placer ./cmd/placer
	python=$$(python/install_onnxruntime.sh) && $$python -m pip install --quiet --disable-pip-version-check 'pytest>=7' && cd python && PLACER=$(CURDIR)/bin/placer PYTHONPATH=. $$python -m pytest -q tests_onnxruntime

test-onnx-libraries: ## models of torchvision, timm and transformers, exported by both exporters of torch and changed by ONNX Runtime's tools, held to torch and to ONNX Runtime; installed beside the tree where there is none
	$(GO) build -o bin/placer ./cmd/placer
	libraries=$$(python/install_onnx_libraries.sh) && cd python && PLACER=$(CURDIR)/bin/placer OMP_NUM_THREADS=1 PYTHONPATH=.:$$libraries $$(./install_torch.sh) -m pytest -q -W ignore tests_onnx_libraries

repro-onnxruntime: ## a GPT-2-like ONNX model cut in two, a session on a core each, beside one session on one core, into experiments/onnxruntime; two quiet cores, two minutes
	$(GO) build -o bin/placer ./cmd/placer
	PYTHONPATH=$(CURDIR)/python experiments/onnxruntime/run.sh $(CURDIR)/bin/placer $$(python/install_onnxruntime.sh) experiments/onnxruntime

.PHONY: test-doors
test-doors: ## what export --to writes, loaded by accelerate, torch, TensorFlow and JAX, and steps of JAX as they are read, all installed beside the tree where they are not (1.8 GB); JAX takes 80 s of one core
	$(GO) build -o bin/placer ./cmd/placer
	python/doors/run.sh bin/placer

fuzz: ## run each fuzzer for FUZZ inputs; a duration would let go.dev/issue/75804 fail a run without an input at fault
	@for f in $$(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do \
		for name in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' $$f/*_test.go | cut -d' ' -f2); do \
			echo "$$f $$name"; $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZ) -fuzzminimizetime 100x $$f || exit 1; \
		done; \
	done

.PHONY: campaign
CASES ?= 10000
campaign: ## CASES random problems through the whole search, each plan held to an independent checker, in parts: what is done is kept in bin/campaign; hours of one core for 10,000
	$(GO) test -c -o bin/campaign.test ./internal/campaign
	experiments/campaign/run.sh bin/campaign.test $(CASES) $(SEED) bin/campaign

.PHONY: campaign-strategies
campaign-strategies: ## CASES random models on random machines, each row of placer strategies held to what must be true of it; about a second of one core each
	$(GO) test -count=1 -timeout 0 ./internal/campaign/strategies -run 'TestCampaign$$' -v -args -campaign $(CASES) -campaign.from $(SEED)

.PHONY: faults chaos soak fuzz-record
FUZZ_SECONDS ?= 3600
FUZZ_RUNS ?= experiments/fuzz/runs.tsv
fuzz-record: ## each fuzzer until FUZZ_RUNS has FUZZ_SECONDS of one core for it, beside inputs and memory (ONLY="onnx hw" for some); goes on where it was stopped
	python3 experiments/fuzz/run.py $(FUZZ_RUNS) bin/fuzz $(FUZZ_SECONDS) $(ONLY)
	python3 experiments/fuzz/table.py $(FUZZ_RUNS) >$(dir $(FUZZ_RUNS))table.md.new
	mv $(dir $(FUZZ_RUNS))table.md.new $(dir $(FUZZ_RUNS))table.md

KILLS ?= 10
CHAOS ?= 30m
faults: ## each of five commands killed, and stopped by SIGTERM, KILLS times at random moments; full disks, read-only folders, two processes in one folder
	$(GO) test -tags long -count 1 -v -timeout 2h -run 'StoppedAtRandom|FullDiskOfARun|ReadOnlyFolder|FileLimit|UnwritableStdout|TwoInOneFolder' ./internal/cli -kills $(KILLS) -faults.seed $(SEED)

chaos: ## two searches and eight workers for CHAOS: workers, hub and searches killed, workers paused, slow links
	$(GO) test -tags long -count 1 -v -timeout 2h -run 'TestChaos$$' ./internal/cli -chaos $(CHAOS) -faults.seed $(SEED)

soak: ## a search of BUDGET with 4 GiB, memory and file handles sampled, into bin/soak
	$(GO) build -o bin/placer ./cmd/placer
	BUDGET=$(BUDGET) experiments/soak/run.sh bin/soak

.PHONY: test-gpu test-cu ptx gpu-checks
test-gpu: ## both GPU bindings and a measured step; skips with a reason where there is no GPU; CUDA_INCLUDE=DIR for placer_cu
	$(GO) test -count 1 -v -run RealGPU ./hw/gpu/cuda ./nn/device ./hw/bench ./measure
	@if [ -e "$(CUDA_INCLUDE)/cuda.h" ]; then \
		CGO_CFLAGS="-I$(CURDIR)/hw/gpu/cu/include -I$(CUDA_INCLUDE)" CGO_LDFLAGS="$(CUDA_LDFLAGS)" $(GO) test -count 1 -tags placer_cu ./hw/gpu/cu; \
	else echo "test-gpu: no $(CUDA_INCLUDE)/cuda.h, so gorgonia.org/cu is not tested"; fi

test-cu: ## the binding by gorgonia.org/cu on the C stand-in of a driver; no GPU, needs a C compiler and CUDA's headers (CUDA_INCLUDE)
	mkdir -p bin/cu
	$$($(GO) env CC) -shared -fPIC -O1 -w -o bin/cu/libcuda.so.1 hw/gpu/cuda/testdata/fakecuda.c -lpthread
	ln -sf libcuda.so.1 bin/cu/libcuda.so
	CGO_ENABLED=1 CGO_CFLAGS="-I$(CURDIR)/hw/gpu/cu/include -I$(CUDA_INCLUDE)" \
		CGO_LDFLAGS="-L$(CURDIR)/bin/cu -Wl,--unresolved-symbols=ignore-all -Wl,--export-dynamic" \
		LD_LIBRARY_PATH=$(CURDIR)/bin/cu PLACER_CUBLAS=$(CURDIR)/bin/cu/libcuda.so.1 \
		$(GO) test -count 1 -v -tags placer_cu ./hw/gpu/cu >bin/cu/log; rc=$$?; cat bin/cu/log; [ $$rc = 0 ] && ! grep -q -e '--- SKIP' bin/cu/log

gpu-checks: ## build into bin/gpu all that a GPU host without Go needs, and run it where there is a GPU, into GPU_OUT
	mkdir -p bin/gpu
	$(GO) build -ldflags '-s -w' -o bin/gpu/placer ./cmd/placer
	for p in hw/gpu/cuda nn/device measure; do $(GO) test -c -ldflags '-s -w' -o bin/gpu/$$(basename $$p).test ./$$p || exit 1; done
	grep -oh '"cu[A-Z][A-Za-z0-9_]*"}' hw/gpu/cuda/*.go | tr -d '"}' | sort -u >bin/gpu/symbols.txt
	cp experiments/hardware/checks.sh experiments/hardware/pytorch.py bin/gpu/
	tar czf bin/gpu.tgz -C bin gpu
	@if ldconfig -p | grep -q 'libcuda\.so\.1'; then bin/gpu/checks.sh bin/gpu $(GPU_OUT); \
	else echo "gpu-checks: no GPU here; carry bin/gpu to a host with one and run: bin/gpu/checks.sh bin/gpu OUT"; fi

.PHONY: gpu-torch gpu-torch-table gpu-torch-ops
gpu-torch: ## capture PyTorch models into bin/gpu/torch, to be measured on a GPU host by torch_models.py; needs torch, no GPU
	mkdir -p bin/gpu/torch
	PYTHONPATH=python:python/tests $$(python/install_torch.sh) experiments/hardware/capture_torch_models.py bin/gpu/torch
	@echo "on a host with a GPU: PYTHONPATH=python python3 experiments/hardware/torch_models.py bin/gpu/torch torch.json torch-times.json"
	@echo "and, of two parts of it and of two GPUs: PYTHONPATH=python python3 experiments/hardware/torch_runs.py bin/gpu/torch torch-runs.json"

GPU_RECORD ?= experiments/hardware/h200
gpu-torch-ops: ## the ops of the models of gpu-torch with their times that GPU_RECORD has, into roofline/testdata
	$(GO) run ./experiments/hardware/torchops bin/gpu/torch $(GPU_RECORD)/torch-times.json | gzip -9n >roofline/testdata/torch_ops.csv.gz.new
	mv roofline/testdata/torch_ops.csv.gz.new roofline/testdata/torch_ops.csv.gz

gpu-torch-table: ## steps of the models of gpu-torch as predicted, beside those that GPU_RECORD has measured
	$(GO) build -o bin/placer ./cmd/placer
	python3 experiments/hardware/torch_table.py bin/placer bin/gpu/torch $(GPU_RECORD)/here.json $(GPU_RECORD)/torch.json $(GPU_RECORD)/torch-times.json >$(GPU_RECORD)/torch.md.new
	mv $(GPU_RECORD)/torch.md.new $(GPU_RECORD)/torch.md
	cat $(GPU_RECORD)/torch.md

ptx: ## compile the GPU kernels with NVRTC (NVRTC=libnvrtc.so.12); needs no GPU
	$(GO) run ./hw/gpu/kernel/gen -nvrtc $(NVRTC)
	$(GO) run ./hw/gpu/kernel/gen -nvrtc $(NVRTC) -dir nn/device

GOLANGCI_VERSION = v2.15.0
GOLANGCI = bin/golangci-lint-$(GOLANGCI_VERSION)
$(GOLANGCI):
	GOBIN=$(CURDIR)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv bin/golangci-lint $@

.PHONY: format-vet golangci-lint
golangci-lint: $(GOLANGCI)

format-vet: ## gofmt and go vet, of the light program and the long tests too: what of lint needs Go alone
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt: $$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags long ./...
	$(GO) vet -tags light ./internal/cli ./cmd/... ./nn/...

lint: format-vet $(GOLANGCI) ## gofmt, go vet and golangci-lint (.golangci.yml); the first call compiles it into bin
	$(GOLANGCI) run ./...

verify: lint ## lint, tidy module files, generated code; fails if the tree changed
	$(GO) mod tidy -diff
	$(GO) generate ./...
	git diff --exit-code

golden: ## rewrite golden files; read the diff before committing
	$(GO) test ./internal/cli -run Transcript -update

bench: ## Go benchmarks, COUNT times each, into bench.txt
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) ./sim ./roofline ./graph/... ./graphsage ./transformerxl ./nn/... | tee bench.txt

repro-table2: ## search the 14 rows of GO's table 2 again (BUDGET=5m, SEED=1 each; FLAGS=, OUT=experiments/table2/default for the search as it is by default) into OUT, experiments/table2 without it
	BUDGET=$(BUDGET) SEED=$(SEED) ./experiments/table2/run.sh

.PHONY: repro-table2-seeds
repro-table2-seeds: ## search the 14 rows in six seeds, placement alone and all tasks, medians and ranges, into OUT=experiments/table2/seeds; goes on where it was stopped; 5.6 hours of two quiet cores at SECONDS_OF=120
	for tasks in place place,schedule,fuse; do \
	  SECONDS_OF="$(or $(SECONDS_OF),120)" SEEDS="$(SEEDS)" ROWS="$(ROWS)" TASKS=$$tasks OUT=$(or $(OUT),experiments/table2/seeds)/$$tasks experiments/search-budget/run.sh || exit 1; done

.PHONY: repro-search-budget
repro-search-budget: ## searches of the 14 rows within 1 s, 10 s and 2 minutes, six seeds, into experiments/search-budget; OLD=BINARY beside it in turns; goes on where it was stopped
	SECONDS_OF="$(SECONDS_OF)" SEEDS="$(SEEDS)" ROWS="$(ROWS)" SINGLES="$(SINGLES)" OLD="$(OLD)" experiments/search-budget/run.sh

.PHONY: corpus
CORPUS ?= $(RUNS)/corpus
CORPUS_PROBLEMS ?= 3000
CORPUS_SECONDS ?= 20
corpus: ## CORPUS_PROBLEMS problems to pretrain on, each with the best plan of CORPUS_SECONDS of search, into CORPUS; goes on where it was stopped; 9 hours of two cores for 3,000 of 20 s
	$(GO) build -o bin/placer ./cmd/placer
	bin/placer pretrain corpus --out $(CORPUS) --problems $(CORPUS_PROBLEMS) --seconds $(CORPUS_SECONDS)

.PHONY: repro-scale
repro-scale: ## search graphs from 10,000 to a million ops (SIZES="10k 1M", SECONDS_OF=300, GPUS=8) into experiments/scale; goes on where it was stopped; 6 minutes and up to 16 GiB each
	$(GO) build -o bin/placer ./cmd/placer
	SIZES="$(SIZES)" SECONDS_OF="$(SECONDS_OF)" GPUS="$(GPUS)" FLAGS="$(FLAGS)" experiments/scale/run.sh

.PHONY: repro-guided
repro-guided: ## annealing by chance and under a network of moves that did not see the family, within equal processor time (SECONDS_OF="1,5", SEEDS=6, ROWS="gnmt8,trfxl8" for some, JOBS=2 for two pairs at once on two cores, TASKS=place,schedule,fuse, DRAWN=10, SEARCH=portfolio), into experiments/guided; goes on where it was stopped; 3 minutes a seed on one free core
	GO="$(GO)" RUNS="$(RUNS)" TASKS="$(TASKS)" SECONDS_OF="$(SECONDS_OF)" SEEDS="$(SEEDS)" ROWS="$(ROWS)" DRAWN="$(DRAWN)" SEARCH="$(SEARCH)" JOBS="$(JOBS)" experiments/guided/run.sh

repro-transfer: ## pretrain six policies, each without a family, and judge the 14 rows (STEPS=5000 or HOURS each, TUNE_SEEDS=3; 4 minutes a policy on one free core, then four for the rows as they are and about 20 a seed of fine-tuning) into experiments/transfer
	STEPS=$(STEPS) HOURS=$(HOURS) TUNE_SEEDS=$(TUNE_SEEDS) ./experiments/transfer/run.sh

.PHONY: repro-transfer-without-encoder repro-transfer-unguided
.PHONY: repro-untrained
repro-untrained: ## fine-tuning that begins with an untrained network beside the recorded one, SEEDS of each row (ROWS="rnnlm2,gnmt2" for some), into experiments/transfer; goes on where it was stopped; 20 CPU minutes a seed
	$(GO) run ./experiments/transfer untrained -seeds $(or $(SEEDS),1) -rows "$(ROWS)"

.PHONY: repro-transfer-equal repro-transfer-ablation repro-transfer-curve repro-transfer-ppo repro-transfer-ppo-tasks repro-transfer-tasks
repro-transfer-equal: ## zero-shot placement beside annealing from nothing in as much processor time, on graphs of held-out families up to a million ops (SEEDS=6; 5 CPU minutes a seed), into experiments/transfer/equal; goes on where it was stopped
	GOMAXPROCS=1 $(GO) run ./experiments/transfer equal -seeds $(or $(SEEDS),6) -o experiments/transfer/equal experiments/transfer/policies/without-*.safetensors

repro-transfer-ablation: ## pretrain policies with parts of the network left out and judge them on families held out (SEEDS="1 2 3", VARIANTS; a minute of one core a policy, then five seconds), into experiments/transfer/ablation; goes on where it was stopped
	SEEDS="$(SEEDS)" VARIANTS="$(VARIANTS)" STEPS=$(STEPS) ./experiments/transfer/ablation/run.sh

repro-transfer-curve: ## pretrain policies of three widths on 30 to 3,000 drawn problems and judge them on families held out (GUIDES=none|all, SEEDS="1 2 3", PROBLEMS, WIDTHS, STEPS; a quarter of a minute of one core a policy), into experiments/transfer/curve; goes on where it was stopped
	GUIDES=$(GUIDES) SEEDS="$(SEEDS)" PROBLEMS="$(PROBLEMS)" WIDTHS="$(WIDTHS)" STEPS=$(STEPS) ./experiments/transfer/curve/run.sh

.PHONY: repro-transfer-labels
repro-transfer-labels: ## policies that imitate plans of 20 CPU seconds of search a problem beside those of 300 evaluations, of the first 194 problems of a corpus, judged on families held out (SEEDS="1 2 3"; 65 minutes of one core for the plans, ten for the policies), into experiments/transfer/curve; goes on where it was stopped
	$(GO) build -o bin/placer ./cmd/placer
	bin/placer pretrain corpus --out $(CORPUS)-20s --problems 194 --seconds 20
	bin/placer pretrain corpus --out $(CORPUS)-300 --problems 194 --evaluations 300
	for labels in 20s 300; do for imitation in 40 400; do \
	  CORPUS=$(CORPUS)-$$labels LABELS=$$labels IMITATION=$$imitation SEEDS="$(SEEDS)" PROBLEMS="30 100 137" WIDTHS=64 experiments/transfer/curve/run.sh || exit 1; done; done

repro-transfer-ppo: ## fine-tuning by PPO through the network on the 14 rows, families held out (SEEDS=1; a quarter of a CPU minute a small row, several of gnmt4, gnmt8 and trfxl8; ROWS="rnnlm2,gnmt2" for some), into experiments/transfer/ppo.csv; goes on where it was stopped
	$(GO) run ./experiments/transfer ppo -seeds $(or $(SEEDS),1) -rows "$(ROWS)" experiments/transfer/policies/without-*.safetensors

repro-transfer-ppo-tasks: ## the same under all three tasks, beside the search from nothing in as much processor time (SEEDS=1, ROWS as above; twice the time), into experiments/transfer/ppo-all-tasks.csv; goes on where it was stopped
	$(GO) run ./experiments/transfer ppo-tasks -seeds $(or $(SEEDS),1) -rows "$(ROWS)" experiments/transfer/policies/without-*.safetensors

repro-transfer-tasks: ## all three tasks zero-shot on the cases of GO's figure 6, families held out (20 s of one core), into experiments/transfer/tasks.csv
	$(GO) run ./experiments/transfer tasks experiments/transfer/policies/without-*.safetensors

repro-transfer-unguided: ## pretrain six policies that read no rule of thumb, each without a family, and judge the 14 rows zero-shot beside an untrained network of the same inputs (SEEDS="1 2 3"; two to four minutes of one core a policy, then about four for the rows), into experiments/transfer/unguided; goes on where it was stopped
	SEEDS="$(SEEDS)" ./experiments/transfer/unguided/run.sh

repro-transfer-without-encoder: ## the same as repro-transfer without GraphSAGE and attention before the decoder (two minutes a policy), into experiments/transfer/without-encoder
	OUT=experiments/transfer/without-encoder ENCODER=0 STEPS=$(STEPS) HOURS=$(HOURS) TUNE_SEEDS=$(TUNE_SEEDS) ./experiments/transfer/run.sh

repro-ablation: NO_FREE_LOGITS = no curriculum;no free logits;no free logits, no recurrence;no free logits, no modulation;no free logits, no attention;no free logits, no identity;no free logits, T = 2
repro-ablation: ## train the policy with one part left out at a time again, six seeds each
	$(GO) build -o bin/ablation ./experiments/ablation
	bin/ablation -workloads trfxl2:2 -evaluations 2000 -o experiments/ablation/trfxl2.jsonl
	bin/ablation -workloads rnnlm2:2 -evaluations 2000 -o experiments/ablation/rnnlm2.jsonl
	bin/ablation -workloads gnmt2:2 -evaluations 2000 -skip "$(NO_FREE_LOGITS)" -o experiments/ablation/gnmt2.jsonl

repro-baselines: ## place four graphs with the papers' rivals by rule again, into experiments/baselines
	$(GO) build -o bin/placer ./cmd/placer
	bin/placer compare --workload rnnlm2,gnmt2,inception,trfxl2 --gpus 2 --evaluations 100 --seeds 1 --out $(RUNS)/repro-baselines \
		--methods human,metis,scotch,mincut,heft,etf,heft-units,etf-units,m-topo,m-etf,m-sct
	cp $(RUNS)/repro-baselines/matrix.json $(RUNS)/repro-baselines/compare.json $(RUNS)/repro-baselines/compare.md experiments/baselines/

repro-workers: ## measure samples a second with no, one and two workers, and the overhead of a job
	$(GO) test -run '^$$' -bench Workers -benchtime 30x ./internal/cli
	$(GO) test -run '^$$' -bench Job -benchtime 500x ./internal/dispatch

repro-go-hdp: ## GO, HDP, RL-2017 and GDP at 2,000 evaluations on three graphs, six seeds
	$(GO) build -o bin/placer ./cmd/placer
	bin/placer compare --workload rnnlm2,gnmt2,inception --methods human,random-best,hdp,rl-2017,GDP-one,GO-one,anneal --against hdp --evaluations 2000 --out $(RUNS)/go-hdp >/dev/null
	cp $(RUNS)/go-hdp/compare.json experiments/go-hdp/ && cp $(RUNS)/go-hdp/compare.md experiments/go-hdp/table.md

.PHONY: report-figures
report-figures: ## measure the report of 82,000 ops in a headless Chromium: size, when it is ready, frames while panning
	$(GO) run ./cmd/placer report experiments/pictures/gnmt8 -o bin/gnmt8.html
	PLACER_REPORT=$(CURDIR)/bin/gnmt8.html $(GO) test -tags long -count 1 -v -run 'TestLargeReport|TestGivenReport' ./internal/report/web

.PHONY: pictures
pictures: ## make the pictures of README and docs from recorded runs, into docs/pictures; those of the report need Chromium
	$(GO) run ./experiments/pictures

repro-papers: ## recompute the percentages of GO's table 2 from the step times beside them
	$(GO) run ./experiments/papers

repro-learned-rivals: ## train RL-2017, HDP and GDP-one again on three workloads, six seeds each; goes on where it was stopped
	set -e; o="-o experiments/learned-rivals/new.jsonl"; $(GO) build -o bin/learned-rivals ./experiments/learned-rivals; \
	bin/learned-rivals $$o -methods rl-2017,hdp -evaluations 1000; \
	bin/learned-rivals $$o -workloads inception:2 -methods rl-2017 -evaluations 2000; \
	bin/learned-rivals $$o -workloads inception:4 -methods rl-2017 -evaluations 1000; \
	bin/learned-rivals $$o -workloads rnnlm2:2,gnmt2:2 -methods hdp -evaluations 4000; \
	bin/learned-rivals $$o -workloads rnnlm2:2,inception:2 -methods GDP-one -evaluations 4000
	mv experiments/learned-rivals/new.jsonl experiments/learned-rivals/results.jsonl

repro-partitioning: ## split the published partitioning instances under DATA again, into experiments/dnn-partitioning
	$(GO) build -o bin/placer ./cmd/placer
	bin/placer bench dnn-partitioning --data $(DATA)/dnn-partitioning --json >experiments/dnn-partitioning/result.json.new
	mv experiments/dnn-partitioning/result.json.new experiments/dnn-partitioning/result.json

.PHONY: repro-quick
repro-quick: ## a sample of all that experiments records, again, held to it: three minutes of two cores, a quarter of an hour under load; CHECKS="table2 regal" for some
	$(GO) build -o bin/placer ./cmd/placer
	python3 experiments/quick/check.py bin/placer bin/quick $(CHECKS)

.PHONY: repro-verdict
repro-verdict: ## the verdict on six models and three machines again, 30 s each, into experiments/verdict; RESNET=FILE.onnx for ResNet-50
	RESNET="$(RESNET)" experiments/verdict/run.sh

.PHONY: repro-strategies
repro-strategies: ## strategies for six models on 17 machines into experiments/strategies, in parts: what is there is kept; ROWS='llama vitl', RESNET=FILE.onnx
	RESNET="$(RESNET)" ROWS="$(ROWS)" experiments/strategies/run.sh
	$(MAKE) table-strategies

.PHONY: table-strategies
table-strategies: ## print the recorded strategies as experiments/strategies/TABLE.md, with what the placement comes to beside 1F1B
	$(GO) run ./experiments/strategies/table >experiments/strategies/TABLE.md.new
	mv experiments/strategies/TABLE.md.new experiments/strategies/TABLE.md

.PHONY: repro-serving
repro-serving: ## predict throughputs of servers that NVIDIA published, into experiments/serving (some minutes; without predicted.tsv all are predicted anew)
	$(GO) run ./experiments/serving

.PHONY: repro-published published-graphs
repro-published: ## predict 50 steps that others measured and published, into experiments/published
	$(GO) run ./experiments/published

published-graphs: ## capture the PyTorch steps among them again; torch, timm and transformers are installed beside the tree where they are not (416 MB); ROWS='resnet50-f32-256' names some
	ROWS="$(ROWS)" experiments/published/capture.sh

.PHONY: repro-robust repro-replan
repro-robust: ## plans for the step and for its p95, on 1,000 machines that deviate, 14 rows, into experiments/robust; goes on where it was stopped; EVALUATIONS=, SEED=, ROWS=
	EVALUATIONS="$(EVALUATIONS)" SEED=$(SEED) ROWS="$(ROWS)" experiments/robust/run.sh

repro-replan: ## plans changed after each of 8 devices is lost beside searches from nothing, into experiments/replan; goes on where it was stopped; FLAGS='-evaluations 4000 -rows "moe@a100"'
	$(GO) run ./experiments/replan $(FLAGS)

repro-doppler: ## place DOPPLER's graphs under DATA again, into experiments/doppler
	$(GO) build -o bin/placer ./cmd/placer
	bin/placer bench doppler --data $(DATA)/doppler --json >experiments/doppler/result.json.new
	mv experiments/doppler/result.json.new experiments/doppler/result.json

.PHONY: train-regal repro-regal
train-regal: ## train REGAL's policies for synthetic graphs, minutes each; goes on where it was stopped
	./experiments/regal/train.sh

repro-regal: ## table 1 of REGAL again, on synthetic graphs and on the ONNX files in PLACER_DATA, into experiments/regal
	SEED=$(SEED) ./experiments/regal/run.sh

.PHONY: release
release: ## build for Linux, macOS and Windows into bin/release, twice, with checksums and a bill of materials (TARGETS="linux/amd64 ...")
	.ci/release

.PHONY: wheels
wheels: ## wheels of the program and the Python packages for Linux, macOS and Windows, into bin/wheels (TARGETS="linux/amd64 ..."); this host's is installed and run
	.ci/wheels

.PHONY: light vulncheck
LIGHT_BYTES = 20000000
light: build ## the program without hub, workers, GPU parts and gorgonia, into bin/placer-light: its size, its networks' tests, and plan and policies equal to bin/placer's
	CGO_ENABLED=0 $(GO) build -tags light -trimpath -ldflags '-s -w' -o bin/placer-light ./cmd/placer
	$(GO) test -tags light ./nn/... ./graphsage ./transformerxl ./ppo
	@n=$$(stat -c %s bin/placer-light); echo "bin/placer-light: $$n bytes, at most $(LIGHT_BYTES) wanted"; test $$n -le $(LIGHT_BYTES)
	@dir=$$(mktemp -d); for p in placer placer-light; do \
		bin/$$p search -q --workload rnnlm:layers=2,unroll=4 --gpus 4 --tasks place --evaluations 1500 --methods GO-one,fine-tuned-ppo --out $$dir/$$p/search >/dev/null || exit 1; \
		bin/$$p pretrain -q --workloads rnnlm --encoder 8 --imitation 2 --steps 2 --task-steps 2 --pool 2 --judged 1 --teacher 50 --out $$dir/$$p/pretrain >/dev/null || exit 1; \
	done; \
	for f in search/plan.json search/policy.safetensors pretrain/policy.safetensors; do cmp $$dir/placer/$$f $$dir/placer-light/$$f || exit 1; done; rm -r $$dir

vulncheck: ## known vulnerabilities in what the program calls; skips with a line where the database cannot be reached
	.ci/vulncheck

clean: ## remove what the build has made
	rm -rf bin bench.txt

.PHONY: repro-go-table3 repro-go-figure6

repro-go-table3 repro-go-figure6: SEEDS ?= 6
repro-go-table3: EVALUATIONS ?= 2000
repro-go-figure6: EVALUATIONS ?= 4000

repro-go-table3: ## learned fusion against annealing again (EVALUATIONS=2000, SEEDS=6) into experiments/go-table3/run
	$(GO) build -o bin/placer ./cmd/placer
	bin/placer bench go-table3 --evaluations $(EVALUATIONS) --seeds $(SEEDS) --out experiments/go-table3/run

repro-go-figure6: ## tasks alone, in pairs and jointly again (EVALUATIONS=4000, SEEDS=6) into experiments/go-figure6/run
	$(GO) build -o bin/placer ./cmd/placer
	bin/placer bench go-figure6 --evaluations $(EVALUATIONS) --seeds $(SEEDS) --out experiments/go-figure6/run
