# `make serve` and `make test` are all that a fresh machine with Python 3.11+ needs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: serve install install-test test lint types layers fast lock clean

serve: install  ## install what the daemon needs and run it on its embedded default
	$(BIN)/rollcall serve

install: .venv/.base  ## create .venv with the `rollcall` command

.venv/.base: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

install-test: .venv/.test

.venv/.test: .venv/.base requirements-test.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-test.lock
	@touch $@

test: install-test lint types layers  ## everything; the fast pure tests first
	$(BIN)/python -m pytest

fast: install-test  ## only the tests in virtual time, no sockets
	$(BIN)/python -m pytest tests/protocol tests/purgatory tests/coordinator tests/storage tests/topics

lint: install-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: install-test
	$(BIN)/mypy

layers: install-test
	$(BIN)/lint-imports --no-cache

lock:  ## renew the locks; they record no index, link or local path
	$(BIN)/python -m pip install -q pip-tools
	$(BIN)/pip-compile -q --strip-extras --allow-unsafe --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
	  --build-deps-for editable -o requirements.lock pyproject.toml
	$(BIN)/pip-compile -q --strip-extras --allow-unsafe --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
	  --build-deps-for editable --extra test -o requirements-test.lock pyproject.toml

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache
