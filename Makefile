# make demo   set up and run the main job on any CPU: preview, evaluate, train, evaluate, picture
# make test   set up and run every test
# make check  format, lint and types
# Without a GPU, pip on Linux fetches a CUDA build of torch unless it is told otherwise:
#   make setup PIP_FLAGS="--extra-index-url https://download.pytorch.org/whl/cpu"
PYTHON ?= python3
PIP_FLAGS ?=
BIN := .venv/bin

.PHONY: setup demo test check clean

setup: .venv/installed

.venv/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q $(PIP_FLAGS) -e '.[dev]'
	@touch $@

demo: setup
	$(BIN)/python -m rlvr.demo

test: setup
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

clean:
	rm -rf .venv build *.egg-info
