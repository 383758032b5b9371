# make demo · make test · make fuzz · make check · make web · make docs · make bench
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Pinned and installed first: an unpinned version would install gigabytes of GPU packages.
TORCH := 2.13.0

.PHONY: demo test fuzz check web check-web docs pictures bench install clean

# Reinstalled when the sources of the native module change.
CPP := $(wildcard cpp/*.h cpp/*.cpp cpp/bindings/*.h cpp/bindings/*.cpp)
SOURCES := pyproject.toml CMakeLists.txt $(wildcard cpp/* cpp/*/*)

$(VENV)/firth: $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip
	$(BIN)/pip install -q -e .[server]
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

# Damaged files of every format; takes hours on two cores.
fuzz: $(VENV)/tools
	for script in tests/fuzz/*.py; do $(BIN)/python $$script || exit 1; done

check: $(VENV)/tools check-web
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/retired_names.py

# Builds the workbench's pages into the package, where they are committed.
web: web/node_modules/.package-lock.json
	npm run --silent --prefix web build

web/node_modules/.package-lock.json: web/package-lock.json
	npm install --no-save --silent --prefix web # (ci wants the packages of every platform in the lock file)
	touch $@

check-web:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory fresh-web; \
	else echo "skipped the checks of web/: npm is not installed"; fi

fresh-web: web/node_modules/.package-lock.json
	npm run --silent --prefix web check
	npm run --silent --prefix web fresh
	diff -r web/fresh src/firth/server/static
	rm -r web/fresh

docs: $(VENV)/tools
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Redraws the docs' pictures.
pictures: $(VENV)/tools
	$(BIN)/python benchmarks/pictures.py && $(BIN)/python benchmarks/workbench_pictures.py

# DATA is a folder with the layout described in benchmarks/README.md.
bench: $(VENV)/tools
	$(BIN)/python benchmarks/words.py $(DATA)

clean:
	rm -rf $(VENV) build docs/_build
