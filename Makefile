# Everything a newcomer needs: `make study` and `make test`. Both set up .venv when it is missing or out of date.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
STUDY := build/study

.PHONY: setup study test lint types clean

setup: $(READY)

# The stamp is written last, so an interrupted set-up is taken up again. What was installed may be older than the
# constraints say, so pip is always asked; it does nothing where nothing changed.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "leadwise needs Python 3.11 or newer; say which with: make PYTHON=/path/to/python"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

study: $(READY)
	$(BIN)/leadwise run demo --out $(STUDY)/run

# A worker that dies ends the run: pytest-xdist waits for ever when it replaces one under loadfile.
test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart=0 -m "not long" $(PYTEST_ARGS)

lint: $(READY)
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy

clean:
	rm -rf build dist $(VENV)
