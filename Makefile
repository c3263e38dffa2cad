# The commands to know: demo, test, check. `make help` lists them all.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
MANAGE := $(BIN)/python manage.py
.DEFAULT_GOAL := help
.PHONY: help demo lab run worker test test-integration check client audit lock chaos bench schema docs format screenshots clean native browser dist sbom packaging

help: ## Show this
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 18

$(READY): requirements.txt requirements.lock
	@echo "Installing what requirements.txt names …" >&2
	@$(PYTHON) -m venv $(VENV)
	@# What those need is as production has it, whatever came out since.
	@grep -o '^[^ ]*==[^ ]*' requirements.lock > $(VENV)/constraints.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt -c $(VENV)/constraints.txt >&2
	@touch $(READY)

demo: native ## Everything on this machine: lab, worker, web server, a workspace
	@$(MANAGE) demo $(if $(SOURCE),--source "$(SOURCE)") $(if $(BUILD),--build "$(BUILD)") $(if $(IGNORE),--ignore "$(IGNORE)") $(ARGS)

lab: $(READY) ## The lab alone
	@$(MANAGE) lab $(ARGS)

run: $(READY) ## The web server for development
	@$(MANAGE) migrate --verbosity 0
	@DEBUG=true $(MANAGE) runserver $(ARGS)

worker: native ## A worker for all queues
	@$(MANAGE) worker $(ARGS)

test: native browser ## Every test but the long ones of test-integration
	@$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

test-integration: native browser packaging ## Long tests: every page in all looks, kills, chaos, other clients
	@$(BIN)/python -m pytest -m integration -n auto --dist worksteal $(ARGS)

check: $(READY) ## Formatting, lint, types, import contracts, migrations, schema
	@.ci/check $(BIN)

client: $(READY) ## The wheel cloneyard-client, into var/dist: docs/client.md
	@$(BIN)/python -m provisioner.api_client.generate
	@$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w var/dist var/client
	@ls var/dist/cloneyard_client-*.whl

audit: ## Known vulnerabilities of what production installs, where the index can be asked
	@PYTHON=$(PYTHON) .ci/audit

dist: native sbom ## What is shipped, in dist/: wheel, requirements.lock, bill of materials, units
	@.ci/dist $(BIN)

sbom: $(READY) ## The bill of materials alone: dist/cloneyard.cdx.json
	@.ci/sbom $(BIN)

lock: ## Write requirements.lock again, after a change of requirements.txt
	@PYTHON=$(PYTHON) .ci/lock

chaos: native ## Trials that kill and cut everything, and a judge (ARGS="--seed 123 --trials 1")
	@$(BIN)/python -m tests.chaos $(ARGS)

bench: native ## Benchmarks; a JSON line per figure
	@benchmarks/run $(BIN) $(ARGS)

schema: $(READY) ## Write docs/openapi.yaml anew
	@$(MANAGE) spectacular --validate --fail-on-warn --file docs/openapi.yaml

docs: $(READY) ## The documentation as a site, in var/docs
	@PYTHONPATH=. $(BIN)/properdocs build --quiet --strict --config-file .ci/properdocs.yml

format: $(READY) ## Format code and templates
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .
	@git ls-files 'templates/*.html' | xargs -r $(BIN)/djade --target-version 5.2

screenshots: native browser ## The pictures of the README, from a demo
	@$(MANAGE) screenshots $(ARGS)

native: $(READY) # the tree walk of chown and removal, compiled where there is a C compiler
	@$(BIN)/python -m provisioner.gateways.hosts.trees.native

browser: # a Chromium, btrfs-progs, systemd, slapd and haproxy, where we may install them
	@.ci/system-packages

packaging: $(READY) # tools that make and check what is shipped
	@PYTHON=$(BIN)/python .ci/packaging

clean: ## Forget the demo: database, lab, logs
	@$(if $(wildcard $(READY)),$(MANAGE) clean,rm -rf var)
