# make demo · make test · make check · make docs · make bench
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# By exact version, first and alone: a looser request brings gigabytes of GPU packages.
TORCH := 2.13.0

.PHONY: demo test check docs bench install clean

# Installed anew when what it is built from changes.
SOURCES := pyproject.toml CMakeLists.txt $(wildcard cpp/* cpp/*/*)

$(VENV)/firth: $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip
	$(BIN)/pip install -q -e .
	touch $@

$(VENV)/tools: $(VENV)/firth
	$(BIN)/pip install -q torch==$(TORCH)
	$(BIN)/pip install -q --group test --group check --group docs
	touch $@

install: $(VENV)/firth

demo: $(VENV)/firth
	$(BIN)/firth demo

test: $(VENV)/tools
	$(BIN)/python -m pytest -n 2

check: $(VENV)/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/tools
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# DATA is a folder laid out as benchmarks/README.md says.
bench: $(VENV)/tools
	$(BIN)/python benchmarks/words.py $(DATA)

clean:
	rm -rf $(VENV) build docs/_build
