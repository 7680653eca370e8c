# Two commands on a fresh machine: `make demo` and `make test`. Both set up what they need in .venv.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev
# What is never imported need not be compiled: half of the time of an installation.
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --no-compile
SPEED_OTHER ?=
SOURCES := logtriage tests notebooks scripts
ADDRESS = $(shell sed -n 's/^REPOSITORY = "\(.*\)".*/\1/p' logtriage/__init__.py)
ADDRESSED = $(wildcard README.md CITATION.cff docs/*.md logtriage/README.md notebooks/*.ipynb)

.PHONY: help setup demo serve test test-slow lint format benchmark seeds teaches credit real ablations ladder loop-speed speed tokens gpu load screenshot pictures gallery \
  leaderboard constraints address results tables redraw notebooks clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: $(READY_DEV)  ## virtual environment with everything installed, for tests and checks too

# Unsloth asks for versions of its own, so the constraints do not hold where there is an NVIDIA GPU.
$(READY): requirements.txt requirements-gpu.txt constraints.txt logtriage/pyproject.toml
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --constraint constraints.txt --requirement requirements.txt
	if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then \
	  $(INSTALL) --requirement requirements-gpu.txt; fi
	$(INSTALL) --no-deps --editable logtriage
	touch $@

$(READY_DEV): $(READY) requirements-dev.txt
	$(INSTALL) --constraint constraints.txt --requirement requirements-dev.txt
	touch $@

constraints: setup  ## write constraints.txt from what is installed, after an upgrade that passed the tests
	@echo "# The versions that the results were made with, and the tests pass with: \`make constraints\`." > constraints.txt
	$(RUN) -m pip freeze --exclude-editable | sed -E 's/^(torch==[0-9.]+)\+.*/\1/' >> constraints.txt

demo: $(READY)  ## train the embedded agent and look at its learning curve (notebooks 03 and 04)
	$(RUN) scripts/demo.py

serve: $(READY)  ## the OpenEnv server on http://127.0.0.1:8000, reachable from this machine only
	$(RUN) -m logtriage serve

test: setup lint  ## all tests but the slow ones, the notebooks with tiny parameters included
	OMP_NUM_THREADS=1 $(RUN) -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "not slow" --nbmake tests \
	  notebooks/01_explore_the_environment.ipynb

test-slow: setup  ## the slow ones: training that must learn, and the package in a fresh environment
	$(RUN) -m pytest -q -m slow tests

lint: setup  ## style, import contracts, types, workflows; what pre-commit runs, on everything
	$(RUN) -m ruff check $(SOURCES)
	$(RUN) -m ruff format --check $(SOURCES)
	$(VENV)/bin/lint-imports
	$(RUN) -m mypy
	$(VENV)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(VENV)/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	PATH=$(VENV)/bin:$$PATH; if command -v actionlint >/dev/null; then actionlint; fi

format: setup  ## apply the formatter
	$(RUN) -m ruff check --fix $(SOURCES)
	$(RUN) -m ruff format $(SOURCES)

benchmark: $(READY)  ## 7 policies on all tasks and splits: tables and figures in results/benchmark, and the README's
	$(RUN) -m logtriage benchmark
	$(RUN) scripts/tables.py

seeds: $(READY)  ## 10 seeds of both tracks of the embedded agent, and one of the general: hours on two cores, resumable
	$(RUN) -m logtriage sweep sweeps/seeds.yaml --folder runs
	$(RUN) -m logtriage sweep sweeps/varied.yaml --folder runs

teaches: $(READY)  ## the study of what teaches, and its finalists: hours on two cores, resumable
	$(RUN) -m logtriage sweep sweeps/teaches.yaml
	$(RUN) -m logtriage sweep sweeps/finalists.yaml

credit: $(READY)  ## estimators of credit beside forked rollouts, after `make teaches`: results/credit
	$(RUN) scripts/credit.py --checkpoint runs/teaches/recipe/seed-0/checkpoint-40

real: $(READY)  ## every policy on the 76 real incidents, the embedded agents after `make demo`: results/real
	$(RUN) scripts/real.py

ablations: $(READY)  ## what each piece of the recipe is worth: hours, resumable
	$(RUN) -m logtriage sweep sweeps/ablations.yaml

ladder: $(READY)  ## four sizes of the embedded model: hours, resumable
	$(RUN) -m logtriage sweep sweeps/ladder.yaml

loop-speed: $(READY)  ## our training loop beside TRL's own, in turns; after `make demo`
	$(RUN) scripts/loop_speed.py

speed: $(READY)  ## steps per second, one core; SPEED_OTHER=path/to/module.py:Class measures another world beside it
	$(RUN) scripts/speed.py $(SPEED_OTHER)

tokens: setup  ## what an episode costs in Qwen2.5's tokens: results/tokens, and the table of docs/t4.md
	$(RUN) scripts/tokens.py

gpu: setup  ## on an NVIDIA GPU, after `make demo`: training on Unsloth, and memory at a T4's size: results/gpu
	$(RUN) scripts/gpu.py

load: setup  ## 64 and 256 WebSocket sessions at once, beside OpenEnv's echo environment: results/serving
	$(RUN) scripts/load.py
	$(RUN) scripts/tables.py

screenshot: setup  ## take the README's picture of the page /web; needs chromium
	PYTHONPATH=tests:tests/server $(RUN) scripts/screenshot.py

pictures: setup  ## draw the README's architecture and services (docs/*.svg)
	$(RUN) scripts/pictures.py

gallery: setup  ## write GALLERY.md from the generator
	$(RUN) scripts/gallery.py

leaderboard: setup  ## play every entry of results/leaderboard again, and write LEADERBOARD.md
	$(RUN) scripts/leaderboard.py

address:  ## write the repository's address (logtriage/__init__.py) wherever it stands
	sed -i -E 's#(github\.com|com/github)/[A-Za-z0-9_.-]+/logtriage([/[:space:]")\#.]|$$)#\1/$(ADDRESS)\2#g' $(ADDRESSED)

results: setup  ## after sweeps: complete and copy the tracks, and what sweeps came to, to results/; write all tables
	$(RUN) scripts/publish.py

tables: setup  ## write the README's tables from results/
	$(RUN) scripts/tables.py

redraw: setup  ## draw every figure of results/ anew from its tables, without playing
	$(RUN) scripts/redraw.py

notebooks: setup  ## execute the notebooks for a CPU in place, so that they show their outputs; after `make demo` and `make ladder`
	$(VENV)/bin/jupyter nbconvert --to notebook --execute --inplace --log-level WARN \
	  --ExecutePreprocessor.store_widget_state=False $(filter-out notebooks/08%,$(wildcard notebooks/*.ipynb))

clean:
	rm -rf $(VENV) runs build dist
