# Everything lives in .venv, which the first command makes. It needs Python 3.11 or newer:
# `make run PYTHON=python3.12` where python3 is older.

PYTHON ?= python3
BIN := .venv/bin
WHEEL := build/wheel-check

# Where the environment asks for no bytecode, bytecode is kept away from the sources: reading all
# sources anew takes each process a second or two.
ifdef PYTHONDONTWRITEBYTECODE
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/build/bytecode
endif

# Installs packages into an environment. uv takes a seventh of pip's processor time; where it is
# missing or fails, pip installs. The third argument holds more options of uv.
install = $(BIN)/uv pip install --quiet --python $(1)/bin/python $(3) $(2) || \
	$(1)/bin/pip install --quiet $(2)

.PHONY: run check test filecheck generated pytest ranks nightly lint format docs site pages links wheel-check clean

# Install timetile, run heat conduction in a plate, on a GPU where one answers, else on the CPU, and
# draw the plate. Then run the compiled kernels thread by thread, and compare the arrays with those
# of the CPU, bit for bit.
run: .venv/run
	$(BIN)/timetile run examples/heat2d.mlir --steps 1000 --init discs --plot heat2d.png
	$(BIN)/timetile run examples/heat2d.mlir --steps 10 --random 1 --executor simt --check

# What most changes need, in a minute on two cores: style, the direction of imports, the IR of
# dialects and targets, and these files of tests with few generated cases. Before a change is
# landed, `make test`.
QUICK := blocking bounded_waits bounds bundle_names card_facts carried_and_viewed cli_refuses \
	constraints copies_are_ordered cycles_of_launches decomposition devito_fallback documentation \
	function_selection glossary guards launch_planning laws links methods_of_classes native_cells \
	options processor_modes properties ptx_names raising raising_laws resident_tiles \
	shared_layout small_changes_show special_values stencil_arithmetic stencil_errors utilisation \
	verified_passes whole_numbers words
check: .venv/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/lit -q test/filecheck/dialects test/filecheck/targets
	$(BIN)/pytest -n auto --hypothesis-profile=check $(QUICK:%=test/pytest/test_%.py)

# All tests. None needs a GPU; where one answers, the compiled kernels run on it too.
test: filecheck generated pytest

filecheck: .venv/dev
	$(BIN)/lit test/filecheck

# The generated pages of docs/ are those of the code.
generated: .venv/dev
	$(BIN)/python docs/make_walkthrough.py --check & first=$$!; \
	$(BIN)/python docs/make_reference.py --check && wait $$first

pytest: .venv/dev
	$(BIN)/pytest -n auto

# Drawn programs on 1, 2, 3, 4, 6 and 8 processes of MPI end with the bits of one evaluation. SEED
# may be given.
ranks: .venv/dev
	TIMETILE_NUM_THREADS=1 $(BIN)/mpiexec -n 8 $(BIN)/python test/ranks_of_mpi.py --programs 4 \
		--seed $(SEED)

# Programs and schedules drawn at random: 20,000 pairs, counted by how they end, and all tests with
# all their generated cases, many and others every time. For a machine with many cores. PAIRS, SEED
# and EXECUTOR (planes, simt, ptx, gpu) may be given.
PAIRS ?= 20000
SEED ?= 0
EXECUTOR ?= planes
nightly: .venv/dev
	$(BIN)/python test/fuzz.py --pairs $(PAIRS) --seed $(SEED) --executor $(EXECUTOR) \
		--keep build/fuzz --out build/fuzz.json
	$(BIN)/python benchmarks/ptx_hashes.py --check benchmarks/results/ptx-hashes.json --processes 4
	$(BIN)/pytest -n auto --hypothesis-profile=nightly

# Style, types, and the direction of imports.
lint: .venv/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/pyright --pythonpath $(BIN)/python

format: .venv/dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The generated pages of docs/, then the site, in build/site.
docs: .venv/dev
	$(BIN)/python docs/make_walkthrough.py
	$(BIN)/python docs/make_reference.py
	$(MAKE) site

# The site of docs/. A warning is an error: a dead link, or a page that no navigation reaches.
site: .venv/dev
	$(BIN)/sphinx-build --quiet --fail-on-warning --builder html docs build/site

# The warnings of `site`, in a quarter of the time: all pages are read and joined, and none is written.
pages: .venv/dev
	$(BIN)/sphinx-build --quiet --fail-on-warning --builder dummy docs build/pages

# Asks for every page on other sites that docs/ links to. Needs the network.
links: .venv/dev
	$(BIN)/sphinx-build --quiet --builder linkcheck docs build/links

# The wheel holds all packages, plain xdsl-opt finds what the wheel brings, and the examples of the
# wheel run outside of this folder.
wheel-check: .venv/python
	rm -rf $(WHEEL) build/lib build/bdist.*
	$(BIN)/uv build --quiet --wheel --out-dir $(WHEEL) || \
		$(BIN)/pip wheel --quiet --no-deps --wheel-dir $(WHEEL) .
	$(BIN)/uv venv --quiet --seed --python $(PYTHON) $(WHEEL)/venv || \
		$(PYTHON) -m venv $(WHEEL)/venv
	$(call install,$(WHEEL)/venv,$(WHEEL)/timetile-*.whl)
	cd $(WHEEL) && venv/bin/timetile example heat2d --out elsewhere
	cd $(WHEEL) && venv/bin/timetile example python/heat --out elsewhere
	cd $(WHEEL)/elsewhere && ../venv/bin/timetile run heat2d.mlir --steps 10 --init discs \
		--executor cpu --check
	cd $(WHEEL)/elsewhere && ../venv/bin/python heat.py
	cd $(WHEEL)/elsewhere && ../venv/bin/xdsl-opt heat2d.mlir -p timetile -t ptx > heat2d.ptx
	grep -c 'visible .entry' $(WHEEL)/elsewhere/heat2d.ptx

clean:
	rm -rf .venv build

# The environment: bare, for users, for developers.

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
		"timetile needs Python 3.11 or newer; say make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	-$(BIN)/pip install --quiet uv
	@touch $@

USERS := .[assembler,plot]

.venv/run: .venv/python pyproject.toml
	$(call install,.venv,--editable $(USERS),--compile-bytecode)
	@touch $@

.venv/dev: .venv/python pyproject.toml
	$(call install,.venv,--editable .[dev])
	@touch $@
