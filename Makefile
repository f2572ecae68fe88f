# Everything a person needs: `make run`, `make test`. Both set up a local virtual environment by themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: help run tour test test-all results bench generate format clean

help:            ## list the targets
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

# Set-up happens once, and again only when pyproject.toml, or the C runtime or how it is built, changes. It ends with
# everything compiled that Eshkol itself and `make run` need, so that nothing is when they first run.
$(STAMP): pyproject.toml setup.py $(wildcard build_support/*.py src/eshkol/runtime/native/*.[ch] src/eshkol/runtime/native/*/*.[ch])
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Eshkol needs Python 3.11 or newer; '$(PYTHON)' is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,bench]'
	@$(BIN)/eshkol prepare --also 'examples/digits.esk 1 .'
	@touch $@

run: $(STAMP)    ## learn handwritten digits: train, draw, save and load again; files go to build/
	@mkdir -p build
	@$(BIN)/eshkol run examples/digits.esk 10 build

tour: $(STAMP)   ## other examples: Scheme, Atlas programs on every backend, derivatives and tensors
	@for file in queens generators units; do $(BIN)/eshkol run examples/scheme/$$file.esk; done
	@for file in newton predators xor; do $(BIN)/eshkol run examples/calculus/$$file.esk; done
	@$(BIN)/python examples/tour.py
	@$(BIN)/python examples/tensors.py

# mypy runs beside the tests, in the time in which they wait for something; what it says comes after them.
test: $(STAMP)   ## ruff, mypy --strict, pytest (what CI runs)
	$(BIN)/ruff check src tests bench examples
	$(BIN)/ruff format --check src tests bench examples
	@mkdir -p build
	$(BIN)/mypy > build/mypy.txt 2>&1 & types=$$!; \
	  $(BIN)/pytest -n auto --dist worksteal -m "not slow"; tests=$$?; \
	  wait $$types; types=$$?; cat build/mypy.txt; test $$tests -eq 0 && test $$types -eq 0

test-all: $(STAMP)  ## the slow suites too, and all examples of the property tests
	$(BIN)/ruff check src tests bench examples
	$(BIN)/mypy
	ESHKOL_TEST_EFFORT=full $(BIN)/pytest -n auto --dist worksteal
	PYTHONPATH=. $(BIN)/python -m bench.results

results: $(STAMP)  ## train models on everything there is data for, and write docs/results.md
	@PYTHONPATH=. $(BIN)/python -m bench.results

bench: $(STAMP)  ## side-by-side tables; JSON and PNG under bench/out/
	@PYTHONPATH=. $(BIN)/python -m bench

generate: $(STAMP)  ## write everything that is derived from tables: pages of docs/, types, Scheme's names, C's derivative rules
	@$(BIN)/python -m eshkol.atlas.docs docs
	@$(BIN)/python -m eshkol.ops.docs docs
	@$(BIN)/python -m eshkol.lang.docs docs
	@$(BIN)/python -m eshkol.support.flags docs
	@$(BIN)/python -m eshkol.bindings.row_library
	@$(BIN)/python -m eshkol.cli.stubs src/eshkol
	@$(BIN)/python -m eshkol.calculus.header src/eshkol/runtime/native/scheme/derivative_rules.h
	@PYTHONPATH=tests $(BIN)/python tests/schedule/plan_sizes.py
	@PYTHONPATH=tests $(BIN)/python tests/calculus/code_sizes.py

format: $(STAMP) ## let ruff format the code
	@$(BIN)/ruff check --fix src tests bench examples
	@$(BIN)/ruff format src tests bench examples

clean:           ## remove the environment and everything built
	rm -rf $(VENV) build dist bench/out .mypy_cache .ruff_cache .pytest_cache .hypothesis src/eshkol/runtime/_native.*
	find . -name __pycache__ -prune -exec rm -rf {} +
