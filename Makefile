# Needs only Rust and Python 3.10 or later; everything else goes into .venv.
.DEFAULT_GOAL := help
.PHONY: help demo test test-quick test-rust test-python test-oldest check-gpu campaign fuzz lint format docs cuda-headers bench peers peers-torch clean tools

PYTHON ?= python3
VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
BUILT := $(VENV)/.built
OLDEST := $(CURDIR)/.venv-oldest
PEERS := $(CURDIR)/benchmarks/.venv
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
RUST_EXAMPLES := $(basename $(notdir $(wildcard crates/kernelpath/examples/*.rs)))
PYTHON_CODE := python examples benchmarks docs crates/kernelpath/tests/standin
CASES ?= 2000
FIRST ?= 0
FUZZ_SECONDS ?= 60
FUZZ_TARGETS := model_file libsvm csv libsvm_model
# One interpreter for every cargo call, so that pyo3 is compiled once.
export PYO3_PYTHON := $(BIN)/python

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(BUILT) ## train and tune 550 certified SVMs, compare with scikit-learn, draw out/demo.png
	$(BIN)/python examples/demo.py

test: test-rust test-python test-oldest ## Rust and Python tests

# In the dev profile, which is incremental. The package is put together beside the installed one, with the module of
# that profile. Unit tests would build the library a second time: `cargo test --lib` runs them.
QUICK := $(VENV)/quick
QUICK_RUST := house exact losses grid multinomial classifier
QUICK_TESTS := exact.py multinomial.py verify.py grid.py indefinite.py multiclass.py
test-quick: $(VENV)/.created ## a verdict after a change: the core of the Rust and Python tests, in the dev profile
	@test -e $(BUILT) || $(MAKE) --no-print-directory $(BUILT)
	PYO3_BUILD_EXTENSION_MODULE=1 cargo build --quiet -p kernelpath-py
	cargo test --quiet -p kernelpath $(addprefix --test ,$(QUICK_RUST))
	@rm -rf $(QUICK) && mkdir -p $(QUICK)/kernelpath
	@ln -s $(filter-out %.so,$(wildcard $(CURDIR)/python/kernelpath/*)) $(QUICK)/kernelpath/
	@cp target/debug/lib_core.so $(QUICK)/kernelpath/_core.abi3.so
	PYTHONPATH=$(QUICK) $(BIN)/python -m pytest -q $(addprefix python/tests/test_,$(QUICK_TESTS))

# Devices are tested on OpenCL where there is a driver (Debian: pocl-opencl-icd runs on the processor), and on a stand-in for
# CUDA's driver, which needs Linux on x86-64 and g++.
STANDIN := $(CURDIR)/.cuda/standin
ON_STANDIN := $(if $(filter Linux-x86_64,$(shell uname -sm | tr ' ' -)),$(shell command -v g++ >/dev/null && echo yes))
# All crates in each call: with fewer, cargo would choose other features of dependencies and build everything again.
TEST_RUST := cargo test --release $(addprefix -p kernelpath,-data -export -cli) -p kernelpath
WITH_STANDIN := LD_LIBRARY_PATH=$(STANDIN) KERNELPATH_DEVICES=cuda KERNELPATH_REQUIRE_DEVICES=cuda
$(STANDIN)/.built: $(wildcard crates/kernelpath/tests/standin/*) | cuda-headers
	sh crates/kernelpath/tests/standin/build.sh $(STANDIN) $(CURDIR)/.cuda/13/include
	@touch $@

test-rust: $(BUILT) $(if $(ON_STANDIN),$(STANDIN)/.built) ## Rust unit, integration and documentation tests, and the example programs
	@test -n "$$(ls /etc/OpenCL/vendors 2>/dev/null)" || \
	  echo "No OpenCL driver: its tests are skipped. Install: sudo apt-get install -y pocl-opencl-icd ocl-icd-libopencl1"
	$(TEST_RUST)
	$(if $(ON_STANDIN),$(WITH_STANDIN) $(TEST_RUST) --lib device::)
	$(if $(ON_STANDIN),$(WITH_STANDIN) $(TEST_RUST) --test devices)
	@for example in $(RUST_EXAMPLES); do \
	  echo "example $$example"; $${CARGO_TARGET_DIR:-target}/release/examples/$$example || exit 1; done

test-python: $(BUILT) $(if $(ON_STANDIN),$(STANDIN)/.built) ## Python tests
	$(BIN)/python -m pytest -q
	$(if $(ON_STANDIN),$(WITH_STANDIN) $(BIN)/python -m pytest -q python/tests/test_devices.py python/tests/test_device_answers.py)

test-oldest: $(OLDEST)/.built ## scikit-learn's checks of estimators, and what goes with them, in the oldest scikit-learn
	$(OLDEST)/bin/python -m pytest -q $(addprefix python/tests/test_,estimator.py composition.py multiclass.py weights.py)

check-gpu: $(BUILT) ## tests of the devices and the paper's Table 2 on your GPU; writes out/check-gpu.* for an issue
	$(BIN)/python benchmarks/check_gpu.py $(CHECK)

campaign: $(BUILT) ## thousands of random fits, each certificate recomputed by a twin (CASES=2000; FIRST=0 is the first seed)
	$(BIN)/python python/tests/campaign.py --cases $(CASES) --start $(FIRST)

# Finds go into fuzz/artifacts and new inputs into fuzz/work. Inputs worth keeping are in fuzz/corpus, which the Rust
# tests walk without any of this.
fuzz: tools ## throw random files at the readers, with sanitizers, FUZZ_SECONDS=60 each (needs nightly Rust and cargo-fuzz)
	@cargo +nightly fuzz --version >/dev/null 2>&1 || { echo "Nightly Rust or cargo-fuzz is missing. Install:"; \
	  echo "  rustup toolchain install nightly --profile minimal && cargo install cargo-fuzz"; exit 1; }
	@for target in $(FUZZ_TARGETS); do \
	  mkdir -p fuzz/work/$$target && \
	  cargo +nightly fuzz run $$target fuzz/work/$$target fuzz/corpus/$$target -- \
	    -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 || exit 1; done

lint: $(BUILT) ## formatting, clippy, rustdoc, ruff, mypy, stubs against the built module
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || \
	  { echo "rustfmt or clippy is missing. Install: rustup component add rustfmt clippy"; exit 1; }
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --release --workspace --no-deps
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/mypy
	MYPYPATH=python $(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml kernelpath._core

format: $(BUILT) ## format Rust and Python
	cargo fmt --all
	$(BIN)/ruff check --fix $(PYTHON_CODE)
	$(BIN)/ruff format $(PYTHON_CODE)

docs: $(BUILT) ## draw the pictures of the documentation and run its code
	$(BIN)/python docs/pictures.py
	$(BIN)/python -m pytest -q python/tests/test_docs.py

# Linux on x86-64 only. The tests of CUDA skip without it, or fail if KERNELPATH_REQUIRE_DEVICES names cuda.
cuda-headers: $(VENV)/.created ## what the tests of CUDA without a GPU need: headers, NVRTC and ptxas, from PyPI (128 MB)
	$(BIN)/python crates/kernelpath/tests/standin/fetch.py $(CURDIR)/.cuda

bench: $(BUILT) ## print speed and memory against the peers (long; BENCH=--quick is shorter, BENCH=sim2000 one case)
	-@$(MAKE) --no-print-directory peers
	$(BIN)/python benchmarks/bench.py $(BENCH)

peers: $(PEERS)/.ready ## install liquidSVM for the benchmarks, in an environment of its own (needs a C++ compiler)

# (liquidSVM needs an old setuptools, which torch would replace.)
peers-torch: peers ## install TorchKM for the benchmarks too (torch takes 5 GB on Linux)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check "setuptools<80" -r benchmarks/requirements-torch.txt

clean: ## remove builds, the virtual environment and caches
	rm -rf target .venv .venv-oldest .cuda benchmarks/.venv out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f python/kernelpath/*.so

tools:
	@command -v cargo >/dev/null || { echo "cargo is missing. Install: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y"; exit 1; }
	@command -v cc >/dev/null || { echo "A C linker (cc) is missing. Install: sudo apt-get install -y build-essential   (macOS: xcode-select --install)"; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing. Install: sudo apt-get install -y python3 python3-venv   (macOS: brew install python)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "$(PYTHON) is older than 3.10. Install a newer one and name it: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module is missing. Install: sudo apt-get install -y python3-venv"; exit 1; }

# liquidSVM is built by an old setuptools and asks for a name that new Pythons lack.
$(PEERS)/.ready: benchmarks/requirements.txt | tools
	@command -v g++ >/dev/null || { echo "A C++ compiler (g++) is missing. Install: sudo apt-get install -y build-essential"; exit 1; }
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check "setuptools<80" wheel numpy
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -r benchmarks/requirements.txt
	sed -i.orig "s/sysconfig\.get_config_var('SO')/'.so'/" $(PEERS)/lib/python3*/site-packages/liquidSVM/__init__.py
	$(PEERS)/bin/python -c "import liquidSVM"
	@touch $@

$(VENV)/.created: | tools
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "maturin>=1.9,<2"
	@touch $@

# maturin installs the dependencies and the `dev` extra of pyproject.toml, then the package itself, editable.
$(BUILT): $(VENV)/.created $(RUST) pyproject.toml
	env -u CONDA_PREFIX VIRTUAL_ENV=$(VENV) PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/maturin develop --release --extras dev
	@touch $@

$(OLDEST)/.created: | tools
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check "scikit-learn==1.6.*" hypothesis pandas pytest
	@touch $@

$(OLDEST)/.built: $(OLDEST)/.created $(BUILT) $(wildcard python/kernelpath/*.py)
	rm -rf $(OLDEST)/wheels
	env -u CONDA_PREFIX VIRTUAL_ENV=$(VENV) $(BIN)/maturin build --quiet --release --out $(OLDEST)/wheels
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $(OLDEST)/wheels/*.whl
	@touch $@
