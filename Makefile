# `make demo` and `make test` set up everything they need on a machine that has only Python >= 3.11.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
SETUP = @test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }; $(PYTHON) tools/setup.py

SHELL := /bin/bash

# Bytecode is kept: tests start many processes, and each would compile the sources anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test setup tools lint style format goldens inspector hosts small-model bench bench-quick soak serve docs \
	mutants schemas openapi reference requirements stubs wheel wheel-check sbom release clean

demo:
	$(SETUP) core
	@$(BIN)/muniment demo

# Everything, the tools of all tests included; a part alone: make test PARTS="http style"
test:
	@$(PYTHON) tools/test.py $(PARTS)

setup:
	$(SETUP) dev

tools: setup
	$(SETUP) tests

inspector:
	$(SETUP) inspector

serve: inspector
	$(SETUP) server
	$(BIN)/muniment serve

style: setup
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lint: style
	$(BIN)/python tools/make_aio_stub.py --check
	$(BIN)/python tools/make_reference.py --check
	$(BIN)/python tools/make_typescript.py --check
	$(BIN)/python tools/make_requirements.py --check

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

goldens: setup
	$(BIN)/python -m pytest tests/goldens

# Real coding agents (700 MB of programs) and a real small model: by hand, since they are large.
hosts: setup
	$(SETUP) hosts
	$(BIN)/python -m pytest tests/clients/test_hosts.py

small-model: setup
	$(SETUP) small-model
	$(BIN)/python -m pytest tests/clients/test_small_model.py

bench: setup
	$(BIN)/python -m benchmarks.ledger
	$(BIN)/python -m benchmarks.recall
	test -d ~/.muniment/models/e5-small || $(BIN)/python -m benchmarks.embedders ~/.muniment/models/e5-small
	$(BIN)/python -m benchmarks.prompts --embedder e5-small
	for name in compose compaction verify research learning rules serve; do $(BIN)/python -m benchmarks.$$name || exit 1; done
	$(BIN)/python -m benchmarks.serve --soak
	$(BIN)/python tools/figures.py

bench-quick: setup
	$(BIN)/python -m benchmarks.ledger --quick

# Whatever draws examples or tries a sample in every run, in full.
SOAKED = $(shell grep -rlE --include='test_*.py' 'MUNIMENT_(SOAK|KILL|RUN)|^from (effort|hypothesis|deployments) import' tests)

soak: tools
	$(BIN)/python -m benchmarks.simulator --seeds 10000 --processes 3
	$(BIN)/python -m benchmarks.simulator --seeds 1000 --first 20000 --processes 3 \
		--engine memory,postgres-pooler,postgres-replica --file simulator_servers
	$(BIN)/python -m benchmarks.doubling
	MUNIMENT_SOAK=3400 MUNIMENT_KILL_ROUNDS=400 MUNIMENT_RUN_CLAIMS=10000 $(BIN)/python -m pytest -s -o timeout=7200 $(SOAKED)

# The documentation as a site, with its search; it loads nothing from anywhere: python -m http.server -d site
docs: setup
	$(BIN)/python tools/docs_site.py site

# A sample of mutants of some rooms, each judged by the tests that enter the mutated function: make mutants ROOMS="store rules"
mutants: setup
	$(BIN)/python tools/mutants.py $(ROOMS)

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

# The wheel that users install, with the inspector in it.
wheel: inspector
	$(SETUP) build
	build/tools/bin/python tools/make_licenses.py --check
	build/tools/bin/python tools/make_wheel.py

# As users install it: clean environments, no Node.js, every extra alone.
wheel-check: wheel
	$(PYTHON) tools/try_wheel.py dist/muniment-*.whl

sbom: wheel setup
	$(BIN)/python tools/make_sbom.py dist/muniment-*.whl

# make release VERSION=0.2.0 prints what would be done; with WRITE=--write it is done.
release: setup
	$(BIN)/python tools/release.py $(VERSION) $(WRITE)

clean:
	rm -rf .venv .venv-apart build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf inspector/node_modules src/muniment/surfaces/inspector/dist clients/.generator clients/.small-model
	rm -rf clients/hosts/node_modules clients/vercel/node_modules clients/typescript/{node_modules,dist,build,LICENSE}
	rm -f clients/typescript/src/{openapi.d,operations}.ts
