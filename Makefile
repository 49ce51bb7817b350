# `make demo` and `make test` set up what they need on a machine that has only Python >= 3.11.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do command -v $$p >/dev/null 2>&1 && \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
SETUP = @test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }; $(PYTHON) tools/setup.py
RUN := .venv/bin/python
SHELL := /bin/bash
unexport PYTHONDONTWRITEBYTECODE  # tests start many processes, and each would compile the sources anew
.PHONY: demo test setup tools inspector serve lint format generate docs bench bench-quick soak hosts \
	small-model wheel wheel-check release clean

demo:
	$(SETUP) core
	@.venv/bin/muniment demo

test:  # everything, or some parts: make test PARTS="http style"
	@$(PYTHON) tools/test.py $(PARTS)

setup:
	$(SETUP) dev

tools: setup
	$(SETUP) tests

inspector:
	$(SETUP) inspector

serve: inspector
	$(SETUP) server
	.venv/bin/muniment serve

lint:  # and whether committed files that are written from the code are current
	@$(PYTHON) tools/test.py style
	for name in aio_stub reference typescript requirements; do $(RUN) tools/make_$$name.py --check || exit 1; done

format: setup
	.venv/bin/ruff check --fix . && .venv/bin/ruff format .

generate: setup  # committed files that are written from the code
	for name in examples openapi reference typescript requirements aio_stub; do $(RUN) tools/make_$$name.py || exit 1; done
	.venv/bin/muniment schema export schemas

docs: setup
	$(RUN) tools/docs_site.py site

bench: setup
	for name in ledger recall_pool compose compaction verify research serve; do $(RUN) -m benchmarks.$$name || exit 1; done
	$(RUN) tools/figures.py

bench-quick: setup
	$(RUN) -m benchmarks.ledger --quick

# Whatever draws examples or tries a sample in every run, in full.
SOAKED = $(shell grep -rlE --include='test_*.py' 'MUNIMENT_(SOAK|KILL|RUN)|^from (effort|hypothesis|deployments) import' tests)
soak: tools
	$(RUN) -m benchmarks.simulator --seeds 10000 --processes 3
	$(RUN) -m benchmarks.simulator --seeds 1000 --first 20000 --processes 3 \
		--engine memory,postgres-pooler,postgres-replica --file simulator_servers
	$(RUN) -m benchmarks.doubling
	MUNIMENT_SOAK=3400 MUNIMENT_KILL_ROUNDS=400 MUNIMENT_RUN_CLAIMS=10000 $(RUN) -m pytest -s -o timeout=7200 $(SOAKED)

hosts small-model: setup  # real coding agents (700 MB) and a small real model: large, so by hand
	$(SETUP) $@
	$(RUN) -m pytest tests/clients/test_$(subst -,_,$@).py

wheel: inspector setup
	$(SETUP) build
	build/tools/bin/python tools/make_licenses.py --check
	build/tools/bin/python tools/make_wheel.py && $(RUN) tools/make_sbom.py dist/muniment-*.whl

wheel-check: wheel
	$(PYTHON) tools/try_wheel.py dist/muniment-*.whl

release: setup  # prints what it would do; with WRITE=--write it does it
	$(RUN) tools/release.py $(VERSION) $(WRITE)

clean:
	rm -rf .venv .venv-apart build dist site .*_cache .hypothesis src/muniment/surfaces/inspector/dist
	rm -rf {inspector,clients/*}/node_modules clients/.generator clients/.small-model clients/typescript/{dist,build,LICENSE}
	rm -f clients/typescript/src/{openapi.d,operations}.ts
