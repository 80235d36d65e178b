# `make run` and `make test` need nothing but Python 3.11: both set up .venv from pinned versions, once.
# TORCH_INDEX_URL chooses where torch comes from, for example a CPU-only index; by default it is the usual one.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check --no-input --no-compile
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.PHONY: run test test-all lint ui clean-env

run: $(STAMP)
	@$(BIN)/envace run

# a test that hangs fails by name, with the stacks of its threads
test: $(STAMP)
	@$(PYTEST) -q -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder --timeout 600

test-all: $(STAMP)
	@$(PYTEST) -q

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/pyright

ui: $(STAMP)
	@$(BIN)/envace ui

clean-env:
	rm -rf $(VENV)

# torch brings what its build needs (CUDA libraries, where it is not a CPU build). For all the rest constraints/cpu.txt is
# the whole closure, so nothing is left to resolve. pip would compile everything on one core: what many processes import
# at once is compiled here on all of them, the rest when it is first imported.
COMPILED := torch transformers verl ray numpy tensordict transfer_queue pyarrow pydantic
$(STAMP): constraints/cpu.txt pyproject.toml
	@for python in $(PYTHON) python3.11 python3; do \
	  if $$python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then \
	    echo "setting up $(VENV) (once, a few minutes)"; exec $$python -m venv $(VENV); \
	  fi; \
	done; echo "Python 3.11 was not found; install it, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1
	@$(PIP) $(if $(TORCH_INDEX_URL),--index-url $(TORCH_INDEX_URL)) -c constraints/cpu.txt $$(grep '^torch==' constraints/cpu.txt)
	@$(PIP) --no-deps -r constraints/cpu.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@cd $(VENV)/lib/python3.11/site-packages && ../../../bin/python -m compileall -q -j 0 $(COMPILED) >/dev/null 2>&1 || true
	@touch $@
