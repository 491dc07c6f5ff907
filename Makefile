# Everything lives in .venv, which the first command makes. It needs Python 3.11 or newer:
# `make run PYTHON=python3.12` where python3 is older.

PYTHON ?= python3
BIN := .venv/bin
WHEEL := build/wheel-check

.PHONY: run test nightly lint format docs wheel-check clean

# Install timetile and run heat conduction in a plate: on a GPU where one answers, else on the CPU. Then
# run the compiled kernels thread by thread, and compare what they leave with the CPU, bit for bit.
run: .venv/run
	$(BIN)/timetile run examples/heat2d.mlir --steps 1000 --random 1 --plot heat2d.png
	$(BIN)/timetile run examples/heat2d.mlir --steps 10 --random 1 --executor simt --check

# All tests. None needs a GPU; where one answers, the compiled kernels run on it too.
test: .venv/dev
	$(BIN)/lit test/filecheck
	$(BIN)/python docs/make_walkthrough.py --check
	$(BIN)/python docs/make_reference.py --check
	$(BIN)/python docs/check_readme.py
	$(BIN)/pytest -n auto

# Programs and schedules drawn at random: 20,000 pairs, counted by how they end, and those of the generated tests, many
# and others every time. Half an hour on 16 cores. PAIRS, SEED and EXECUTOR (planes, simt, ptx, gpu) may be given.
PAIRS ?= 20000
SEED ?= 0
EXECUTOR ?= planes
nightly: .venv/dev
	$(BIN)/python test/fuzz.py --pairs $(PAIRS) --seed $(SEED) --executor $(EXECUTOR) \
		--keep build/fuzz --out build/fuzz.json
	$(BIN)/pytest -n auto --hypothesis-profile=nightly test/pytest/test_properties.py \
		test/pytest/test_plans_of_every_rotation.py test/pytest/test_buffers_in_every_role.py \
		test/pytest/test_depths.py test/pytest/test_memory_reads.py

# Style, types, and the direction of imports.
lint: .venv/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/pyright --pythonpath $(BIN)/python

format: .venv/dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The pages of docs/ that are generated.
docs: .venv/dev
	$(BIN)/python docs/make_walkthrough.py
	$(BIN)/python docs/make_reference.py

# The wheel holds all packages, and plain xdsl-opt finds what it brings.
wheel-check: .venv/python
	rm -rf $(WHEEL) build/lib build/bdist.*
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir $(WHEEL) .
	$(PYTHON) -m venv $(WHEEL)/venv
	$(WHEEL)/venv/bin/pip install --quiet $(WHEEL)/timetile-*.whl
	cd $(WHEEL) && venv/bin/xdsl-opt ../../examples/heat2d.mlir -p timetile -t ptx > heat2d.ptx
	grep -c 'visible .entry' $(WHEEL)/heat2d.ptx

clean:
	rm -rf .venv build

# The environment: bare, for users, for developers.

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "timetile needs Python 3.11 or newer; say make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	@touch $@

.venv/run: .venv/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.[assembler,plot]'
	@touch $@

.venv/dev: .venv/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@
