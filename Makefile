# Every target sets up its own virtual environment and build.
# Needs Python 3.10+, a C++17 compiler, make and git.
PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
SOURCES := $(shell find cpp include -name '*.cc' -o -name '*.h')
CXX_FILES = $(shell git ls-files 'header/*.h' 'cpp/*.cc' 'cpp/*.h' 'bench/*.cc' 'example/*.cc' 'example/*.h' 'tests/*.cc' 'tests/*.h')

# The tests that depend on the versions of other packages; at most four minutes.
LOWEST_TESTS := $(addprefix tests/,proof workbench/test_batch.py cli/test_command.py arrays lowering runtime model mxnet families/nnvm/test_weights.py \
  $(addprefix dialects/onnx/test_,running.py types.py edits.py new_attributes.py save_options.py))

CHAPTERS := lib_pass/test_pass.py lib_fold/test_fold.py lib_custom_op/test_gemm.py \
  lib_custom_op/test_transpose.py lib_subgraph/test_subgraph.py lib_pattern/test_pattern.py

FUZZERS := fuzz-onnx fuzz-symbol fuzz-npz fuzz-h5 fuzz-header
FUZZ_SECONDS ?= 600
SWEEP_GRAPHS ?= 20000

# Cases of each sweep. tests/support/sweep_table.py turns the output into a table.
SWEEP_CASES ?= 200000

# With worksteal, an idle test process takes tests from the other one.
TESTS := tests --ignore tests/interop --sample 30 --dist worksteal

# If set, every process that a test starts compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo header native test systems test-all test-lowest test-rest lint format bench docs docs-links interop models debian-packages release-check sanitize fuzz $(FUZZERS) mutants sweep-empty sweep-numbers sweep-graphs sweep-untyped sweep-types sweep-fusions sweep-opsets sweep-growth sweep-shapes sweep-rules prove sdist wheel first-steps wheels clean

# Runs the chapters of the tutorial and prints their output. Needs neither linters nor test tools.
demo: .venv/built
	@echo "compiling the examples"
	@printf '%s\n' $(sort $(dir $(CHAPTERS))) | xargs -P $(JOBS) -I{} make -s --no-print-directory -C example/{}
	@set -e; for script in $(CHAPTERS); do \
	  echo "--- example/$$(dirname $$script)/README.md: $$(basename $$script)"; \
	  $(BIN)/python example/$$script; \
	done
	@echo "--- passlib opt: a model of MXNet, with a check and a page of the changes"
	@mkdir -p build/demo
	@$(BIN)/passlib opt tests/data/mxnet/models/squeezenet1.1 -o build/demo/squeezenet --check 1 \
	  --shape data:1,3,224,224 --report build/demo/report.html

# Third-party models. Some tests skip without them.
models: build/models/fetched

build/models/fetched: .venv/installed tests/real_models.txt
	$(BIN)/python tests/support/fetch_models.py build/models
	touch $@

# Other compilers and a browser. Some tests skip without them. Runs as root or with sudo.
debian-packages:
	bash tests/support/debian_packages.sh

# libpasslib and passlib-opt, by CMake alone, with their tests.
native: .venv/installed
	cmake -B build/native -DPASSLIB_WERROR=ON -DCMAKE_INSTALL_PREFIX=$(CURDIR)/build/native/prefix .
	cmake --build build/native -j $(JOBS)
	cmake --install build/native > build/native/install.log
	PASSLIB_NATIVE=$(CURDIR)/build/native/prefix $(BIN)/pytest -n $(JOBS) --sample 30 tests/native

# A sample of the cases of large tables; test-all runs every case.
test: .venv/installed
	$(BIN)/pytest -n $(JOBS) $(TESTS)

# Header, passes and cpp/platform with the other compilers, C libraries and processors that are here.
systems: .venv/installed
	$(BIN)/pytest -n $(JOBS) tests/packaging/test_other_systems.py tests/library/test_museum.py

# The cases that `make test` leaves out; PART=1/4 runs the second quarter of them.
PART ?= 0/1
test-rest: .venv/installed
	$(BIN)/pytest -n $(JOBS) $(TESTS) --rest --part $(PART)

test-all: test test-rest

# At the lowest versions of all dependencies (tests/lowest.txt), against the wheel.
test-lowest: .venv-lowest/installed
	.venv-lowest/bin/pytest -n $(JOBS) $(LOWEST_TESTS)

# Rewrites on every element type and operator set, against ONNX Runtime.
sweep-types: .venv/installed
	$(BIN)/python tests/support/element_types.py

# Conversions of each operator between its versions, against ONNX Runtime.
SWEEP_COUNT ?= 20
sweep-opsets: .venv/installed
	$(BIN)/python -W ignore tests/support/opset_changes.py --every-pair --count $(SWEEP_COUNT)

# Joins include/*.h from the parts in header/.
header:
	$(PYTHON) header/join.py

lint: .venv/installed
	$(BIN)/python header/join.py --check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES) $(wildcard include/*.h include/*.hpp)

format: .venv/installed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CXX_FILES) include/passlib.h include/passlib.hpp
	$(BIN)/python header/join.py

# Against the real MXNet 1.9.1, in a separate environment.
interop: .venv/installed
	$(MAKE) .venv-mxnet/installed || echo "MXNet 1.9.1 cannot be installed here"
	PASSLIB_MXNET_ENV=.venv-mxnet $(BIN)/pytest tests/interop

bench: .venv/installed .venv-mxnet/installed
	$(BIN)/pip install -q --group bench
	$(BIN)/python bench/run.py --mxnet .venv-mxnet/bin/python
	$(BIN)/python bench/compile.py --mxnet .venv-mxnet/bin/python
	$(BIN)/python bench/partition.py --mxnet .venv-mxnet/bin/python
	$(BIN)/python bench/handover.py
	$(BIN)/python bench/json_dialects.py
	$(BIN)/python bench/onnx_dialect.py
	$(BIN)/python bench/onnx_memory.py
	$(BIN)/python bench/running.py
	$(BIN)/python bench/command.py
	$(BIN)/python bench/growth.py
	$(BIN)/python bench/patterns.py
	$(BIN)/python bench/simplify.py
	$(BIN)/python bench/mxnet_zoo.py --mxnet .venv-mxnet/bin/python
	PYTHONPATH=tests/support $(BIN)/python bench/fused.py
	PYTHONPATH=tests/support $(BIN)/python bench/blocks.py

# Steps per operator of the standard passes on graphs of 1,000 to 64,000 operators: must be constant.
sweep-growth: .venv/installed
	$(BIN)/python tests/support/growing_graphs.py

# Fusions of ONNX Runtime between all pairs of neighbours: as many after simplification as before.
sweep-fusions: .venv/installed
	$(BIN)/python tests/support/runtime_fusions.py

# Mutates the code of a room in MUTANTS places and prints the mutants that its tests do not notice.
ROOM ?= passes
MUTANTS ?= 100
mutants: .venv/installed
	$(BIN)/pip install -q --group mutants
	PYTHONPATH=tests/support $(BIN)/python tests/support/mutants.py $(ROOM) $(MUTANTS)

# The site, in build/docs/html. A broken internal link is an error.
docs: .venv/installed
	$(BIN)/pip install -q --group docs
	$(BIN)/python -m sphinx -q -W --keep-going -c docs -b html . build/docs/html

# Checks the links to other sites.
docs-links: docs
	$(BIN)/python -m sphinx -q -c docs -b linkcheck . build/docs/links

# A wheel for this Python in dist/, and the smoke suite on it in an empty environment elsewhere.
wheel: .venv/installed
	$(BIN)/pip install -q --group wheel
	bash tests/packaging/wheel.sh

# README and docs/start.md, block by block, with the wheel in an empty environment.
first-steps: wheel
	PYTHONPATH=tests/support $(BIN)/python tests/packaging/first_steps.py dist/*.whl

# The source distribution, in dist/, and a wheel of it without network.
sdist: .venv/installed
	$(BIN)/pip install -q --group wheel
	bash tests/packaging/sdist.sh

# Checks the requirements of a release and prints what is missing. TAG is the tag of the release.
release-check: .venv/installed
	$(BIN)/python tests/packaging/release_check.py $(TAG)

# Wheels for all versions of Python, in containers.
wheels:
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install -q --group wheels
	$(BIN)/python -m cibuildwheel --output-dir dist

# The tests of `make test` under AddressSanitizer and UndefinedBehaviorSanitizer; tests of threads
# under ThreadSanitizer.
sanitize: .venv/installed
	bash tests/sanitize.sh thread tests/library/test_threads.py
	bash tests/sanitize.sh address,undefined -n $(JOBS) $(TESTS)

# Damaged files, FUZZ_SECONDS per kind; `make -k fuzz` continues after a failure.
fuzz: $(FUZZERS)

fuzz-onnx: .venv/installed
	$(BIN)/python tests/support/onnx_mutations.py $(FUZZ_SECONDS)

$(filter-out fuzz-onnx,$(FUZZERS)): fuzz-%: .venv/installed
	$(BIN)/python tests/support/file_mutations.py $* $(FUZZ_SECONDS)

# Folds operators with empty constants.
sweep-empty: .venv/installed
	$(BIN)/python tests/support/empty_constants.py

# Every version of every operator with inputs of unknown type.
sweep-untyped: .venv/installed
	$(BIN)/python tests/support/untyped_inputs.py

# Small files of each format with one huge number.
sweep-numbers: .venv/installed
	$(BIN)/python tests/support/huge_numbers.py

# Random graphs with control flow: both modes of simplification, and single passes.
sweep-graphs: .venv/installed
	$(BIN)/python tests/support/control_graphs.py 0 $(SWEEP_GRAPHS)

# Each of passlib's rules on SWEEP_MODELS random models that match it, or nearly.
SWEEP_MODELS ?= 200
sweep-rules: .venv/installed
	$(BIN)/python tests/support/rule_sweep.py $(SWEEP_MODELS)

# Proves passlib's rules anew, each for at most PROOF_LIMIT seconds, and keeps the results.
PROOF_LIMIT ?= 90
prove: .venv/installed
	$(BIN)/python tests/support/prove_rules.py $(PROOF_LIMIT) $(PROOF_RULES)
	$(BIN)/python tests/support/rule_page.py

# Inferred types and folded values against ONNX Runtime: SWEEP_CASES of each.
sweep-shapes: .venv/installed
	$(BIN)/python tests/support/shape_sweep.py $(SWEEP_CASES)
	$(BIN)/python tests/support/value_sweep.py $(SWEEP_CASES)

.venv/installed: .venv/built
	$(BIN)/pip install -q --group test --group lint "graph-passlib[all]"
	$(BIN)/pip install -q --group tools || echo "other tools cannot be installed: tests of their bugs skip"
	touch $@

# The steps of the compilation, a line each, from ninja's.
PROGRESS := sed -nuE "s,^ *(\[[0-9]+/[0-9]+\]) (Building|Linking) CXX.* ([^ ]+)\$$,\1 \3,p"

# The package for the examples; .venv/installed adds the development tools.
.venv/built: pyproject.toml CMakeLists.txt cmake/passlibConfig.cmake.in $(SOURCES)
	@echo "Setting up .venv and compiling: a few minutes, once"
	@mkdir -p build
	@test -x $(BIN)/python || { echo "creating .venv"; $(PYTHON) -m venv .venv; }
	@echo "installing what the build needs"
	@$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	@$(BIN)/pip install -q "scikit-build-core>=0.10" "pybind11>=2.13" "cmake>=3.18" ninja
	@echo "compiling and installing passlib"
	@bash -o pipefail -c '$(BIN)/pip install -v --no-build-isolation -Cbuild-dir=build/dev \
	  -Ccmake.define.PASSLIB_WERROR=ON -e ".[run]" 2>&1 | tee build/setup.log | $(PROGRESS)' \
	  || { cat build/setup.log; exit 1; }
	@touch $@

# Builds the wheel from the existing build directory.
.venv-lowest/installed: .venv/installed tests/lowest.txt $(shell find python -name '*.py')
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install -q --upgrade "pip>=25.1"
	rm -rf build/wheel
	$(BIN)/pip wheel -q --no-build-isolation --no-deps -Cbuild-dir=build/dev -w build/wheel .
	.venv-lowest/bin/pip install -q --group test
	.venv-lowest/bin/pip install -q --force-reinstall --no-deps build/wheel/*.whl
	.venv-lowest/bin/pip install -q -c tests/lowest.txt "graph-passlib[all,dask,prove]"
	touch $@

.venv-mxnet/installed:
	test -x .venv-mxnet/bin/python || $(PYTHON) -m venv .venv-mxnet
	.venv-mxnet/bin/pip install -q "mxnet==1.9.1" "numpy<1.24"
	.venv-mxnet/bin/python -c "import mxnet"
	touch $@

clean:
	rm -rf build .venv .venv-lowest .venv-mxnet
