# Needs python3, make and the network. Each target makes its own environment in $(VENV).
#   PYTHON=/path/to/python3     instead of the newest working one on PATH
#   DJANGO="django~=6.0.0"      another Django than the newest that fits; give it a VENV of its own
#   RUNS="sqlite"               other runs of the suite than both databases (scripts/test)
#   ARGS="-k claim"             more arguments for pytest; for the benchmark, its options
VENV ?= .venv
DJANGO ?=
RUNS ?=
ARGS ?=
SERVE ?=

python = $(VENV)/bin/python
# `false` if there is no interpreter; find-python has said so.
environment = "$(or $(PYTHON),$(shell scripts/find-python),false)" scripts/environment.py $(VENV) --django "$(DJANGO)"

# The line that `make help` shows for this target.
say = @sed -n 's/^$@:.*\#\# /$@: /p' Makefile

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test bench crash mutants rivals lint docs clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' Makefile | expand -t 14

demo: ## Real jobs at real work, on SQLite or on DATABASE_URL; SERVE=1 starts the site and a worker
	$(say)
	@$(environment) demo $(if $(DATABASE_URL),postgresql)
	@$(python) testproject/manage.py demo $(if $(SERVE),--serve)

test: ## The whole suite on SQLite and on a PostgreSQL that it brings, with coverage
	$(say)
	@$(environment) test
	@scripts/test $(python) "$(RUNS)" $(ARGS)

bench: ## The queue's speed beside bare loops on the same database; ARGS="--quick" in minutes, "--help" for more
	$(say)
	@$(environment) test
	@$(python) -m tests.benchmarks $(ARGS)

crash: ## Real workers under every fault, by seed; ARGS="--suite short", "--seed 7", "--help"
	$(say)
	@$(environment) test
	@$(python) -m tests.crash $(or $(ARGS),--suite full)

mutants: ## The guards of the package left out one by one: does the crash suite notice?
	$(say)
	@$(environment) test
	@$(python) -m tests.crash.mutants $(ARGS)

rivals: ## Other queues under SIGKILL and SIGTERM, judged by the same ledger
	$(say)
	@$(environment) test
	@$(python) -m tests.crash.rivals $(ARGS)

lint: ## Style, types, layers, migrations, system checks
	$(say)
	@$(environment) lint
	@scripts/lint $(VENV)/bin

docs: ## Build the documentation into docs/_build/html; a warning is an error
	$(say)
	@$(environment) docs
	@$(VENV)/bin/sphinx-build -q -W --keep-going -b html docs docs/_build/html

clean: ## Remove the environments and everything that the tools made
	@rm -rf .venv .venvs build crash-logs dist htmlcov docs/_build .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	@find django_jobqueue testproject tests scripts -name __pycache__ -prune -exec rm -rf {} +
