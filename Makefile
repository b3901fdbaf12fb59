# Everything a person or a build machine does here, each in one command.
# All it takes is make and Python 3.11 or newer; the rest goes into $(VENV).

PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
BIN := $(VENV)/bin

.PHONY: help play test lint browser bench soak pictures clean

help: ## what can be made
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

play: $(VENV)/play.stamp ## serve the playground and open it in the browser
	$(BIN)/playground serve --open

test: $(VENV)/dev.stamp browser ## all tests; the browser's have a process of their own, as they keep an event loop
	$(BIN)/python -m pytest -m "not e2e" $(PYTEST_ARGS)
	$(BIN)/python -m pytest -m e2e $(PYTEST_ARGS)

lint: $(VENV)/dev.stamp ## style, types, and which part may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

bench: $(BENCH_VENV)/bench.stamp ## speed and memory as ratios to peers, measured in one run
	$(BENCH_VENV)/bin/python -m bench $(BENCH_ARGS)

soak: $(VENV)/dev.stamp ## kill processes at random moments, hundreds of times: nothing may be lost or done twice
	$(BIN)/python -m tests.soak $(SOAK_ARGS)

pictures: $(VENV)/dev.stamp browser ## take the documentation's pictures anew
	$(BIN)/python -m tests.browser.pictures

clean: ## forget what was installed and measured
	rm -rf $(VENV) $(BENCH_VENV) bench/results

# A browser that is already there is used; as root on Debian one is installed, elsewhere Playwright brings its own.
browser: $(VENV)/dev.stamp
	@if [ -n "$$PLAYGROUND_CHROMIUM" ] || command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium fonts-wqy-zenhei; \
	else $(BIN)/playwright install chromium; fi

$(VENV)/pip.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Agent Playground needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	@touch $@

$(VENV)/play.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/python -m pip install -q --editable ".[all]"
	@touch $@

$(VENV)/dev.stamp: $(VENV)/play.stamp
	$(BIN)/python -m pip install -q --group dev
	@touch $@

$(BENCH_VENV)/bench.stamp: pyproject.toml bench/requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install -q --requirement bench/requirements.txt --editable ".[fast]"
	@touch $@
