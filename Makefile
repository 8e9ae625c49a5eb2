# The book from a fresh clone: `make book`; its tests: `make test`. Needs Python 3.11+ and make.

PYTHON ?= python3
PROFILE ?= book
PAGE ?=
PORT ?= 8000
CHAPTER ?=
TESTS ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LAB := $(VENV)/.lab
LIBRARIES := .venv-bench

.DEFAULT_GOAL := help
.PHONY: help setup book test lint links screenshots verify chaos bench serve live lab clean distclean

help: ## say what can be made
	@echo "Targets:"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 20
	@echo "Variables: PROFILE=smoke|book|thesis (now $(PROFILE)), PYTHON=$(PYTHON), PORT=$(PORT)"

setup: $(READY) ## create .venv with the pinned versions

# pip builds the project itself in an isolated environment; both variables pin that one too.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "make: $(PYTHON) is older than Python 3.11; name another with PYTHON=..." >&2; exit 1; }
	@test -x $(BIN)/python || { echo "Creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing the book and its pinned dependencies into $(VENV) (minutes, once)"
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	  $(BIN)/python -m pip install --quiet -e '.[test]'
	@touch $(READY)

book: $(READY) ## run what is stale and build _build/html/index.html
	@$(BIN)/regretbook build --profile $(PROFILE)

# One worker more than two cores: browsers, kernels and killed processes let theirs wait.
test: $(READY) ## run the linters and all tests
	@$(BIN)/python -m pytest -n 3 $(TESTS)

lint: $(READY) ## run the linters alone
	@$(BIN)/python -m pytest -q tests/test_lint.py

links: $(READY) ## ask whether the pages that the book links to are still there
	@$(BIN)/regretbook build --profile smoke
	@$(BIN)/jupyter-book build _build/render/smoke/source --builder linkcheck \
	  --config _config.yml --toc _toc.yml --path-output _build/links

screenshots: $(READY) ## take the pictures of the README from the built book
	@$(BIN)/python -m ci.screenshots

verify: $(READY) ## recompute the first trial of what is recorded, of PAGE or all, and compare
	@$(BIN)/regretbook verify $(PAGE)

chaos: $(READY) ## kill and damage builds for ten minutes, then compare their tables with quiet ones
	@$(BIN)/python -m ci.chaos linear-bandits clustering-of-bandits --out results/chaos.json

bench: $(READY) $(LIBRARIES)/.ready ## time all algorithms beside bare kernels and libraries
	@$(BIN)/regretbook bench --record

# One after the other: a library that does not install is named by the bench and left out.
$(LIBRARIES)/.ready: libraries.txt
	@test -x $(LIBRARIES)/bin/python || { echo "Creating $(LIBRARIES)"; $(PYTHON) -m venv $(LIBRARIES); }
	@for each in contextualbandits mabwiser obp river vowpalwabbit; do \
	  PIP_CONSTRAINT=libraries.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	    $(LIBRARIES)/bin/python -m pip install --quiet $$each >/dev/null 2>&1 \
	    || echo "$$each cannot be installed here"; done
	@touch $(LIBRARIES)/.ready

serve: $(READY) ## show the built book at http://localhost:8000
	@test -f _build/html/index.html || { echo "make: nothing to serve yet; run 'make book' first" >&2; exit 1; }
	@echo "http://localhost:$(PORT)/ (Ctrl-C ends)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

live: $(READY) ## show the built book with a form on every page that runs it
	@$(BIN)/regretbook live --profile $(PROFILE) --open

lab: $(LAB) ## open the first page of CHAPTER, or chapter/page, as a notebook in JupyterLab
	@test -n "$(CHAPTER)" || { echo "make: name a page, such as CHAPTER=linear-bandits" >&2; exit 1; }
	@$(BIN)/regretbook lab $(CHAPTER)

$(LAB): $(READY)
	@echo "Installing JupyterLab into $(VENV) (once)"
	@PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet -e '.[lab]'
	@touch $(LAB)

clean: ## remove what was built; finished trials stay in .cache
	rm -rf _build

distclean: clean ## remove finished trials and the environment too
	rm -rf .cache $(VENV) $(LIBRARIES) regretbook.egg-info
