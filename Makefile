# Intarsia. `make` lists the targets; each sets up .venv by itself when it is missing or outdated.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2
# A worker of these suites waits for processes that its tests start, a third of the time or more.
SLOW_WORKERS ?= 3
PROCESSES_WORKERS ?= 3
ISA ?= znver3
EFFORT ?= full
FUZZ_RUNS ?= 2000
FUZZ_SEED ?= 0
FUZZ_JOBS ?= 1
TORCH := .torch
AARCH64 := .aarch64
CORPUS := .corpus
SERVING := .serving

# Tests start hundreds of Python processes; without bytecode on disk each would compile the sources anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all coverage check format bench backend isa aarch64 torch serving fuzz corpus corpus-page processes slow docs wheels lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[cpu,dev]'
	@touch $@

demo: $(READY) ## Tune a real network with every toolchain on this machine, save the winner, run it again
	@mkdir -p demo-output
	$(BIN)/intarsia doctor
	$(BIN)/intarsia zoo export squeezenet --output demo-output/squeezenet.onnx
	$(BIN)/intarsia tune demo-output/squeezenet.onnx --budget 20s --output demo-output/squeezenet.intarsia
	$(BIN)/intarsia run demo-output/squeezenet.intarsia
	@echo; echo "The saved file in a new process, against each toolchain alone:"
	cd demo-output && ../$(BIN)/intarsia compare squeezenet.intarsia squeezenet.onnx@onnxruntime squeezenet.onnx@openvino

test: $(READY) ## Run the tests that take under three minutes on two cores
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'not slow and not processes and not backend and not aarch64'

coverage: $(READY) ## Measure line and branch coverage of what make test runs; the pages are in build/coverage
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'not slow and not processes and not backend and not aarch64' \
		--cov --cov-report=html:build/coverage --cov-report=json:build/coverage.json
	@$(BIN)/python -c 'import json; total = json.load(open("build/coverage.json"))["totals"]; \
		print("lines {percent_statements_covered:.1f} %, branches {percent_branches_covered:.1f} %".format(**total))'

test-all: test processes slow isa backend torch ## Run everything but the corpus

check: $(READY) ## Check format, lint, types, import layers and vocabulary
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m checks.language

format: $(READY) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

backend: $(READY) ## Run ONNX's backend node tests over every toolchain and print the table
	$(BIN)/pytest -n $(WORKERS) -m backend tests/backend

isa: $(READY) ## Run the tests of native as if on another CPU: ISA=haswell, znver3, skylake-avx512, ...
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'not slow and not processes and not backend and not aarch64' --isa $(ISA) tests/unit/native tests/unit/toolchain/native tests/unit/toolchain/test_*.py

$(AARCH64)/.ready: tests/aarch64/prepare.py $(READY)
	rm -rf $(AARCH64)
	$(BIN)/python -m tests.aarch64.prepare $(AARCH64)
	@touch $@

aarch64: $(AARCH64)/.ready ## Run native kernels for a Neoverse N1 in QEMU, which is downloaded with Debian's arm64 Python
	$(BIN)/pytest -n $(WORKERS) --dist worksteal tests/aarch64

$(TORCH)/.ready: tests/torch_packages.txt $(READY)
	$(BIN)/python -m pip install --quiet --upgrade --no-deps --target $(TORCH) --requirement $<
	@touch $@

torch: $(TORCH)/.ready ## Run the tests of PyTorch as a toolchain and a front door; it is large, and stands beside .venv
	PYTHONPATH=$(CURDIR)/$(TORCH) $(BIN)/pytest -n $(WORKERS) --dist worksteal tests/unit/toolchain/torch tests/unit/frontend/torch \
		tests/unit/torch_compile tests/end_to_end/torch tests/unit/runtime/test_dlpack.py \
		tests/unit/driver/test_import_model.py tests/unit/toolchain/test_*.py \
		'tests/docs/test_pages_run.py::test_the_code_prints_what_the_page_shows[docs/guide/compile_a_pytorch_model.md]'

$(SERVING)/.ready: pyproject.toml
	$(PYTHON) -m venv $(SERVING)
	$(SERVING)/bin/python -m pip install --quiet --editable '.[onnxruntime,native,serving]' pytest hypothesis
	@touch $@

serving: $(SERVING)/.ready ## Test artifacts behind KServe's server, in an environment of its own
	$(SERVING)/bin/python -m pytest tests/unit/serving

$(CORPUS)/.ready: $(READY) corpus/constraints.txt
	$(PYTHON) -m venv $(CORPUS)
	$(CORPUS)/bin/python -m pip install --quiet --no-compile --requirement corpus/constraints.txt
	@touch $@

corpus: $(CORPUS)/.ready ## Check about a hundred models of many exporters with every toolchain
	$(BIN)/python -m corpus.check_corpus

corpus-page: $(CORPUS)/.ready ## Write docs/models.md anew
	$(BIN)/python -m corpus.check_corpus --write

fuzz: $(READY) ## Fuzz every reader of files, texts and requests: FUZZ_RUNS=2000 mutations of each kind, FUZZ_SEED=0, FUZZ_JOBS=1
	$(BIN)/python -m checks.fuzz --runs $(FUZZ_RUNS) --seed $(FUZZ_SEED) --jobs $(FUZZ_JOBS)

processes: $(READY) ## Run the tests that start many processes
	$(BIN)/pytest -n $(PROCESSES_WORKERS) --dist worksteal -m 'processes and not slow'

slow: $(READY) ## Run the tests that need minutes, and hypothesis with all its examples
	$(BIN)/pytest -n $(SLOW_WORKERS) --dist worksteal --effort $(EFFORT) -m 'slow or hypothesis'

bench: $(READY) ## Run the benchmarks; they print ratios measured interleaved
	@for name in overhead scaling passes importing racing dispatch database native_products native_kernels native_convolutions native_build models; do $(BIN)/python -m benchmarks.$$name || exit 1; done

$(VENV)/.docs-ready: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs-ready ## Build the documentation as a site in build/site; every warning is an error
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs build/site
	@echo "open build/site/index.html"

$(VENV)/.wheels-ready: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[wheels]'
	@touch $@

wheels: $(VENV)/.wheels-ready ## Build the wheels of intarsia and intarsia-runtime in dist, and check and install them
	rm -rf dist
	$(BIN)/python -m build --wheel --outdir dist .
	$(BIN)/python -m build --wheel --outdir dist wheels/runtime
	$(BIN)/python -m twine check --strict dist/*.whl
	$(BIN)/pytest tests/end_to_end/test_runtime_wheel.py

lock: ## Write constraints.txt anew from the newest versions
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-lock/bin/python -m pip install --quiet '.[cpu,dev,docs,wheels]'
	$(VENV)-lock/bin/python -m pip freeze --all --exclude intarsia > constraints.txt
	rm -rf $(VENV)-lock

clean: ## Remove what the targets made
	rm -rf $(VENV) $(VENV)-lock $(TORCH) $(SERVING) $(CORPUS) $(AARCH64) demo-output build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
