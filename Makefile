# make          what there is
# make demo     set up, then train on data that it makes, in two modes, and word vectors (under two minutes)
# make test     set up, then check and test everything (under ten minutes)
# make test-full  what takes longer: all that can be chosen, compiled; changed files; real peers (under thirty minutes)
# make fuzz     the same by hand: TARGET=svmlight COUNT=10000 SEED=7
# make steady   tests that start threads or processes, many times on quiet and busy cores: COUNT=5 ONLY=pausing MINUTES=60 CORES=busy JOURNAL=file
# make check    ruff, mypy, import-linter
# make docs     the documentation as a site, in build/site; a warning is an error
# make bench    comparisons with other tools, in an environment of their own

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers

# Packages are turned into bytecode by the first import, not by pip: half of an installation would go there.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# Of tests: many of them wait, for Ray or for processes of their own.
PROCESSES := 3

DEBIAN := DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test tests test-full shells browser docs fuzz steady check bench clean

help:
	@sed -n 's/^# \(make.*\)/\1/p' Makefile

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/pip $(INSTALL) -e .
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/pip $(INSTALL) -e ".[dev]"
	@touch $(VENV)/.installed $@

$(PEERS)/.installed: benchmarks/requirements.txt constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip $(INSTALL) -e . -r benchmarks/requirements.txt
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/hogwild demo

check: $(VENV)/.installed-dev
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/mypy
	$(BIN)/lint-imports

# The checks, of which mypy takes longest, on one core, while the tests begin on the other.
test: $(VENV)/.installed-dev
	@$(MAKE) --no-print-directory -j 2 check tests

tests:
	$(BIN)/python -m pytest -m "not full" --durations 25 --durations-min 5 --numprocesses $(PROCESSES) --dist loadfile

$(VENV)/.installed-peers: $(VENV)/.installed-dev
	$(BIN)/pip $(INSTALL) -e ".[dev,docs,peers]"
	@touch $(VENV)/.installed-docs $@

$(VENV)/.installed-docs: $(VENV)/.installed-dev
	$(BIN)/pip $(INSTALL) -e ".[dev,docs]"
	@touch $@

docs: $(VENV)/.installed-docs
	$(BIN)/python docs/site/build.py
	@echo "build/site/index.html"

# The shells whose completion is tried: from Debian's packages where one may install them.
shells:
	@for shell in zsh fish; do command -v $$shell > /dev/null || $(DEBIAN) $$shell > /dev/null 2>&1 || \
		{ apt-get update --quiet && $(DEBIAN) $$shell; } > /dev/null 2>&1 || \
		echo "Install $$shell: its completion is not tested without it."; done

# The browser in which reports are looked at.
browser:
	@command -v chromium > /dev/null || $(DEBIAN) chromium > /dev/null 2>&1 || \
		{ apt-get update --quiet && $(DEBIAN) chromium; } > /dev/null 2>&1 || \
		echo "Install chromium: reports are not looked at without it."

# Tests that start Ray follow each other.
test-full: $(VENV)/.installed-peers shells browser
	$(BIN)/python -m pytest -m "full or peers" --durations 40 --durations-min 10 --numprocesses $(PROCESSES) --dist loadgroup

fuzz: $(VENV)/.installed-dev
	PYTHONPATH=tests $(BIN)/python -m fuzz $(TARGET) $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED)) \
		$(if $(FIRST),--first $(FIRST))

steady: $(VENV)/.installed-dev
	PYTHONPATH=$(CURDIR)/tests $(BIN)/python -m steady $(if $(COUNT),--count $(COUNT)) $(foreach part,$(ONLY),--only '$(part)') \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(CORES),--cores $(CORES)) $(if $(JOURNAL),--journal $(JOURNAL))

bench: $(PEERS)/.installed
	$(PEERS)/bin/python benchmarks/startup.py
	$(PEERS)/bin/python benchmarks/svmlight.py
	$(PEERS)/bin/python benchmarks/vocabulary.py
	$(PEERS)/bin/python benchmarks/linear.py
	$(PEERS)/bin/python benchmarks/growth.py
	$(PEERS)/bin/python benchmarks/word2vec.py --quality
	$(PEERS)/bin/python benchmarks/doc2vec.py
	$(PEERS)/bin/python benchmarks/crf.py --quality
	$(PEERS)/bin/python benchmarks/crf_c1.py
	$(PEERS)/bin/python benchmarks/bilstm.py --quality
	$(PEERS)/bin/python benchmarks/recommender.py
	$(PEERS)/bin/python benchmarks/ctr.py --quality
	$(PEERS)/bin/python benchmarks/sparse_mlp.py
	$(PEERS)/bin/python benchmarks/tfrecord.py
	$(PEERS)/bin/python benchmarks/multislot.py
	$(PEERS)/bin/python benchmarks/tables.py
	$(PEERS)/bin/python benchmarks/sentiment.py --peers $(PEERS)/bin/python --rounds 3
	$(PEERS)/bin/python benchmarks/defaults.py --json $(PEERS)/defaults.json
	USER=hogwild $(PEERS)/bin/python benchmarks/fm.py

clean:
	rm -rf $(VENV) $(PEERS) build dist .mypy_cache .pytest_cache .ruff_cache
