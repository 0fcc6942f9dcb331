# Everything runs in .venv, made once with python3 -m venv and pip. `make help` lists the targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip -qq --disable-pip-version-check install

.DEFAULT_GOAL := help
.PHONY: help run test check bench accuracy docs data fit messages picture clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/core ## rank the real offers for painter-heavy and write report.html
	@$(BIN)/gpuwise rank painter-heavy --html report.html

test: $(VENV)/test ## install what the tests need (PyTorch too, 5.6 GB) and run them
	@$(BIN)/python -m pytest $(if $(CI),-p tests.no_skips) $(ARGS)

check: $(VENV)/test $(VENV)/dev ## linter, format, types, import contracts, dependencies
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo >$(VENV)/contracts.txt || { cat $(VENV)/contracts.txt; exit 1; }
	@$(BIN)/deptry --no-ansi src 2>$(VENV)/deptry.txt || { cat $(VENV)/deptry.txt; exit 1; }
	@echo "Checks passed."

bench: $(VENV)/test ## measure speed, memory and verdicts; nothing is asserted
	@$(BIN)/python -m benchmarks $(ARGS)

accuracy: $(VENV)/core ## compute every accuracy split anew, which takes minutes, and write the table
	@$(BIN)/python -m benchmarks.accuracy $(ARGS)

docs: $(VENV)/docs ## build the documentation into docs/_build/html
	@$(BIN)/python docs/generate.py
	@$(BIN)/python -m benchmarks.founding
	@$(BIN)/python -m benchmarks.claim
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs docs/_build/html
	@echo "Read docs/_build/html/index.html"

data: $(VENV)/core ## rebuild the bundled tables from ../shared/data
	@$(BIN)/python tools/build_data.py --from ../shared/data

fit: $(VENV)/test ## fit the shipped predictor anew, from the bundled tables
	@$(BIN)/python -m benchmarks.fit $(ARGS)

messages: $(VENV)/core ## bring the translations up to date with the texts of the source
	@$(BIN)/python -m tools.messages update

picture: $(VENV)/core ## draw the picture in the README anew
	@$(BIN)/python docs/picture.py

clean: ## remove the virtual environment, caches, built pages and the report
	@rm -rf $(VENV) docs/_build build dist report.html .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What is installed leaves a stamp; it is done again only when pyproject.toml changes.

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpuwise needs Python 3.11 or newer; \
	this is %s. Name another one: make $(MAKECMDGOALS) PYTHON=python3.11" % sys.version.split()[0])'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

$(VENV)/core: EXTRAS :=
$(VENV)/test: EXTRAS := [test]
$(VENV)/dev:  EXTRAS := [dev]
$(VENV)/docs: EXTRAS := [docs]

$(VENV)/core $(VENV)/test $(VENV)/dev $(VENV)/docs: pyproject.toml | $(VENV)/pyvenv.cfg
	@echo "Installing gpuwise$(EXTRAS) into $(VENV), once ..." >&2
	@$(PIP) -e '.$(EXTRAS)'
	@touch $@
