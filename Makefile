# `make serve` and `make test` are all that a fresh machine with Python 3.11+ needs.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
COMPILE := $(BIN)/pip-compile -q --strip-extras --allow-unsafe --generate-hashes --no-header \
  --no-annotate --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
  --build-deps-for editable
PROCESSES ?= 2
COMPILED := .venv/.compiled-$(or $(ROLLCALL_COMPILE),1)
KILLS ?= 200

.DEFAULT_GOAL := help
# Every target that `make help` lists.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*  \#\# .*/\1/p' $(firstword $(MAKEFILE_LIST)))

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 34

serve: install  ## install the daemon's dependencies and run it with the default configuration
	@exec $(BIN)/rollcall serve

install: $(COMPILED)  ## create .venv with the `rollcall` command

.venv/.base: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "Rollcall needs Python 3.11 or later: make PYTHON=python3.11")'
	@echo "Creating .venv and installing the locked dependencies: once, for about half a minute"
	@$(PYTHON) -m venv .venv
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

SOURCES := $(wildcard */*.py */*/*.py */*/*/*.py)

# Bytecode, made here: where PYTHONDONTWRITEBYTECODE is set, each start would compile every module again
# (a start takes a third less with it), and an account that may only read the folder could not keep it.
.venv/.bytecode: .venv/.base $(SOURCES)
	@$(BIN)/python -m compileall -q $(dir $(wildcard */__init__.py))
	@$(BIN)/python -m native.bundle
	@touch $@

# C of the modules that serve requests, where there is a C compiler; ROLLCALL_COMPILE=0 switches it off.
$(COMPILED): .venv/.bytecode requirements-compile.lock native/loader.c $(wildcard native/*.pxi) pipeline/decode/commit_reader.c storage/journal/group_writer.c
	@rm -f .venv/.compiled-*
	@$(BIN)/python -m native.compile; case $$? in 0) touch $@;; 3) ;; *) exit 1;; esac

install-test: .venv/.test .venv/.bytecode  ## install also what the tests need, including a Java runtime

.venv/.test: .venv/.base requirements-test.lock
	@echo "Installing what the tests need, Java and Spark included: once, for a minute or two"
	@$(PIP) --require-hashes -r requirements-test.lock
	@touch $@

test: install install-test lint types layers  ## run all checks and tests
	@$(BIN)/python -m tests.suite $(PROCESSES)

FAST = $$($(BIN)/python -m tests.suite --fast)
fast: install-test  ## run only the tests in virtual time, without sockets
	$(BIN)/python -m pytest $(FAST)

fast-compiled: install-test install  ## run the same tests on the compiled build
	ROLLCALL_PURE=0 $(BIN)/python -m pytest -n $(PROCESSES) -m "not pure" $(FAST) tests/packaging/test_compiled_build.py

PYTHONS ?= $(PYTHON) $(shell for v in 3.11 3.12 3.13 3.14; do command -v python$$v; done)
wheels:  ## build a pure wheel, and a compiled one for each Python of PYTHONS, into dist/
	@rm -rf dist && mkdir dist
	@for python in $(PYTHONS); do \
	  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  tag=$$($$python -c 'import sys; print(sys.implementation.cache_tag)'); \
	  ls dist | grep -q "cp$${tag#cpython-}-" && continue; \
	  rm -rf build/wheels && $$python -m venv build/wheels && \
	  build/wheels/bin/pip install -q --disable-pip-version-check --require-hashes -r requirements-compile.lock && \
	  for level in 0 2; do rm -rf build/lib build/bdist*; ROLLCALL_COMPILE=$$level build/wheels/bin/pip wheel -q \
	    --disable-pip-version-check --no-deps --no-build-isolation -w dist . || exit 1; done; \
	done; rm -rf build/wheels; ls dist

lint: install-test  ## ruff: rules and format
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: install-test  ## mypy --strict
	$(BIN)/mypy

layers: install-test  ## which package may import which
	$(BIN)/lint-imports --no-cache

bench: install-test  ## measure the cost of a heartbeat and of a commit
	$(BIN)/python -m bench.records
	$(BIN)/python -m bench.daemon

bench-trees: install-test  ## compare CPU and start time with those of the commit BASE
	$(BIN)/python bench/trees.py $(BASE)

BASE ?= $(shell git describe --tags --abbrev=0 2>/dev/null)
BUILD ?= compiled
bench-check: install-test  ## fail if a request costs 5 % more CPU than at BASE (the last release), on BUILD (compiled or pure)
	@test -n "$(BASE)" || { echo "There is no release yet: make bench-check BASE=COMMIT" >&2; exit 2; }
	$(BIN)/python bench/trees.py $(BUILD):$(BASE) $(BUILD):. --rounds 3 --check 5

drill: install-test  ## crash drills: each step of a rebalance, and KILLS (200) kills under load
	DRILL_KILLS=$(KILLS) $(BIN)/python -m pytest tests/drills
	CRASH_POINT_SEEDS=20 $(BIN)/python -m pytest tests/storage/test_crash_points.py
	CLEANER_KILLS=30 $(BIN)/python -m pytest tests/interop/test_compacted_topics.py -k random

long-drills: install-test  ## every shipped drill with each client library, and planted defects
	LONG_DRILLS=1 $(BIN)/python -m pytest -s --timeout 300 tests/drills/test_drill_command.py

browser: install-test  ## the console in a headless Chromium that is on PATH; pictures in build/console/
	BROWSER=1 $(BIN)/python -m pytest -s tests/browser

long-damage: install-test  ## every kind of damage of every file of a data directory
	DAMAGE=all $(BIN)/python -m pytest --timeout 7200 tests/broker/test_damage.py

long-kills: KILLS = 1000
long-kills: install-test  ## KILLS (1000) kills of a daemon under load, with admin requests
	DRILL_KILLS=$(KILLS) $(BIN)/python -m pytest -s tests/drills/test_kills_under_load.py

long-model: install-test  ## 5,000 simulated lives of topics and logs, with kills and power failures
	TOPIC_WORLDS=5000 $(BIN)/python -m pytest --timeout 7200 tests/simulator/test_topic_world.py
	KAFKA_WORLDS=3000 KAFKA_WORLD_STEP=1 $(BIN)/python -m pytest --timeout 7200 tests/simulator/test_kafka_world.py

long-crash-images: CRASHES = 1000
long-crash-images: install-test  ## CRASHES (1000) power failures, what was not synced dropped or torn
	CRASH_IMAGES=$(CRASHES) $(BIN)/python -m pytest --timeout 7200 tests/simulator/test_topic_world.py -k image
	CRASH_POINT_SEEDS=5 $(BIN)/python -m pytest --timeout 7200 tests/storage/test_crash_points.py

topic-world: install-test  ## replay a simulated life of topics and logs from its SEED
	$(BIN)/python -m tests.simulator.topic_world $(SEED)

long-compare: install-test  ## random consumer groups at a real Kafka and here: DRIVER=its script [SEEDS=1-200]
	$(BIN)/python -m tests.compare.at_random --driver $(DRIVER) --seeds $(or $(SEEDS),1-200)

kafka-world: install-test  ## replay such a life on a real Kafka's folders from its SEED
	$(BIN)/python -m tests.simulator.kafka_world $(SEED)

long-signals: install-test  ## a signal at 300 moments of a start
	START_SIGNALS=300 $(BIN)/python -m pytest --timeout 1200 tests/cli/test_start_signals.py

long-properties: install-test  ## property tests with other examples each time, and more of them
	RANDOM_EXAMPLES=1 $(BIN)/python -m pytest -n $(PROCESSES) tests/protocol tests/config tests/coordinator \
	  tests/storage tests/purgatory tests/topics tests/transactions tests/history

long-fuzz: install-test  ## any request of the coordinator with any values: FUZZ_SEEDS (2000)
	FUZZ_SEEDS=$${FUZZ_SEEDS:-2000} FUZZ_ELEMENTS=100000 $(BIN)/python -m pytest -n $(PROCESSES) \
	  tests/coordinator/test_any_request.py

golden: install-test  ## record a real Kafka's bytes and answers again: LIBS=its libs DRIVER=its script
	$(BIN)/python -m tests.protocol.golden.make $(LIBS)
	$(BIN)/python -m tests.protocol.golden.make_config_values $(LIBS)
	$(BIN)/python -m tests.coordinator.consumer.golden.make $(LIBS)
	$(BIN)/python -m tests.coordinator.consumer.golden.make_replay_orders
	$(BIN)/python -m tests.coordinator.consumer.assignors.golden.make $(LIBS)
	$(BIN)/python -m tests.security.acls.golden.make $(LIBS)
	$(BIN)/python -m tests.compare.record --driver $(DRIVER)
	$(BIN)/python -m tests.storage.golden.make_cleaner --driver $(DRIVER)
	$(BIN)/python -m tests.storage.golden.make_folders --driver $(DRIVER)
	$(BIN)/python -m tests.pipeline.golden.make_golden --driver $(DRIVER)

sim: install-test  ## replay a simulated world from its seed: SEED=n [STEPS=m]
	$(BIN)/python -m tests.simulator.run $(SEED) $(STEPS)

consumer-sim: install-test  ## replay a simulated world of consumer groups: SEED=n [STEPS=m]
	$(BIN)/python -m tests.simulator.consumer_run $(SEED) $(STEPS)

migration-sim: install-test  ## replay a simulated migration from its seed: SEED=n [STEPS=m]
	$(BIN)/python -m tests.simulator.migration_run $(SEED) $(STEPS)

long-consumer-sim: install-test  ## 2,000 simulated worlds of consumer groups, and as many migrations
	CONSUMER_WORLDS=2000 MIGRATION_WORLDS=2000 $(BIN)/python -m pytest -n $(PROCESSES) \
	  tests/simulator/test_consumer_groups.py tests/simulator/test_migration.py

transaction-sim: install-test  ## replay a simulated world of transactions from its seed: SEED=n [STEPS=m]
	$(BIN)/python -m tests.simulator.transaction_run $(SEED) $(STEPS)

long-transaction-sim: install-test  ## 2,000 simulated worlds of transactions
	TRANSACTION_WORLDS=2000 $(BIN)/python -m pytest -n $(PROCESSES) tests/simulator/test_transactions.py

long-consumer-transfer: install-test  ## move consumer groups between a real Kafka and Rollcall, compare what tools print
	CONSUMER_TRANSFER=1 $(BIN)/python -m pytest tests/interop/test_consumer_group_transfer.py \
	  tests/interop/test_consumer_group_tools.py

long-consumer-clients: install-test  ## consumer groups with librdkafka, Java and franz-go (needs Go)
	CONSUMER_CLIENTS=1 $(BIN)/python -m pytest --timeout 900 tests/interop/test_consumer_groups.py \
	  tests/interop/test_consumer_migration.py

long-admin-tools: install-test  ## Kafka's tools for the cluster: elections, reassignments, quorum, features, ACLs
	ADMIN_TOOLS=1 $(BIN)/python -m pytest tests/interop/test_kafka_tools.py -k tools_of_a_cluster
	ADMIN_TOOLS=1 $(BIN)/python -m pytest tests/interop/test_acl_tools.py

long-cluster-commands: install-test  ## rollcall group and topic at a real Kafka, compared with its tools
	CLUSTER_COMMANDS=1 $(BIN)/python -m pytest -s --timeout 300 tests/interop/test_cluster_commands.py

long-secured-clients: install-test  ## clients over each mechanism and protocol, with and without rights
	SECURED_CLIENTS=1 $(BIN)/python -m pytest --timeout 300 tests/interop/test_secured_clients.py

long-handshake-fuzz: FRAMES = 1000000
long-handshake-fuzz: install-test  ## FRAMES (1,000,000) bad frames before and after authentication
	FRAMES=$(FRAMES) $(BIN)/python -m pytest -s --timeout 7200 tests/drills/test_bad_frames.py

long-codec-fuzz: FRAMES = 10000000
long-codec-fuzz: install-test  ## FRAMES (10,000,000) hostile frames: the compiled codec beside the generated one
	ROLLCALL_PURE=0 $(BIN)/python -m tests.protocol.codec_fuzz --frames $(FRAMES)

long-apps: install-test  ## Kafka Streams, Connect and MirrorMaker (real ones, from Maven Central)
	KAFKA_APPS=1 $(BIN)/python -m pytest --timeout 900 tests/interop/test_streams.py \
	  tests/interop/test_connect.py tests/interop/test_mirror_maker.py

long-transaction-clients: install-test  ## transactions with seven libraries (needs Go and npm)
	TRANSACTION_CLIENTS=1 $(BIN)/python -m pytest --timeout 600 tests/interop/test_transaction_clients.py

long-spark-streaming: install-test  ## Spark Structured Streaming from a topic to a topic
	SPARK_STREAMING=1 $(BIN)/python -m pytest tests/pipeline/test_kafka_streaming.py

long-data-tools: install-test  ## Kafka's tools for data and transactions print here what they print at a Kafka
	DATA_TOOLS=1 $(BIN)/python -m pytest tests/interop/test_data_tools.py tests/interop/test_moved_topic.py

long-exactly-once: install-test  ## copy a topic in transactions while the daemon is killed: librdkafka, Java
	EXACTLY_ONCE=1 $(BIN)/python -m pytest --timeout 1200 tests/interop/test_exactly_once.py

long-consumer-fuzz: SEEDS = 1-200
long-consumer-fuzz: install-test  ## compare random requests of consumer groups with a real Kafka: DRIVER=its script, SEEDS (1-200)
	$(BIN)/python -m tests.compare.fuzz_consumer_groups --driver $(DRIVER) --seeds $(SEEDS)
	$(BIN)/python -m tests.compare.fuzz_consumer_groups --driver $(DRIVER) --seeds $(SEEDS) --restart

long-compare-transactions: SEEDS = 1-200
long-compare-transactions: install-test  ## compare random transactions with a real Kafka: DRIVER=its script, SEEDS (1-200)
	$(BIN)/python -m tests.compare.fuzz_transactions --driver $(DRIVER) --seeds $(SEEDS)
	$(BIN)/python -m tests.compare.fuzz_transactions --driver $(DRIVER) --seeds $(SEEDS) --restart

long-assignors: install-test  ## compare 30,000 target assignments with Kafka's own assignors: LIBS=its libs
	$(BIN)/python -m tests.coordinator.consumer.assignors.compare_live $(LIBS)

site: install-test  ## the documentation site, in build/site; needs no network
	$(BIN)/python -m mkdocs build -d build/site

long-wheels: install-test wheels  ## build the wheels of PYTHONS, and try each in an empty environment of its Python
	$(BIN)/python -m tests.packaging.wheels_check $(PYTHONS)

release-check: install-test  ## build wheel, sdist and bill of materials, try them in empty environments
	$(BIN)/python -m tests.packaging.release_check

bench-pytest: install-test  ## measure the pytest plugin: cold fixture, twenty session timeouts
	$(BIN)/python -m bench.pytest_plugin

long-pipeline-cluster: install-test  ## the jobs on a standalone Spark cluster of three workers, and whether the tables are the same
	$(BIN)/python -m bench.pipeline_cluster

long-pipeline-kafka: install-test  ## the pipeline at a real Kafka: its log ends, from the broker and from its directory
	PIPELINE_KAFKA=1 $(BIN)/python -m pytest tests/pipeline/test_kafka_log_ends.py

docs: install-test  ## regenerate the pages of docs/ that are generated from the code
	$(BIN)/rollcall config --markdown > docs/configuration.md
	$(BIN)/python -m docs.make_group_states
	$(BIN)/python -m docs.make_metrics
	$(BIN)/python -m docs.make_dashboard
	$(BIN)/python -m docs.make_pipeline

lock: install-test  ## update the lock files; they contain no index, link or local path
	$(PIP) pip-tools
	$(COMPILE) -o requirements.lock pyproject.toml
	$(COMPILE) --extra test -o requirements-test.lock pyproject.toml
	$(COMPILE) --extra compile -c requirements-test.lock -o requirements-compile.lock pyproject.toml

clean:  ## remove what make has made, the virtual environment too
	rm -rf .venv build dist *.egg-info $(addsuffix __pycache__,$(wildcard */ */*/)) .mypy_cache .ruff_cache .pytest_cache .hypothesis
