# `make tune` and `make test` set up what they need. Results go to standard output, everything else to standard error.
PYTHON ?= $(or $(WAYWISER_PYTHON),python3)
SETUP := @$(PYTHON) scripts/setup $(SETUP_FLAGS)
# The tests start Python some thousand times: without this each start would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
TUNE_FLAGS ?=
TEST_FLAGS ?=
FUZZ_SECONDS ?= 1200
SOAK_SECONDS ?= 7200

.PHONY: tune build test test-slow test-rdma test-long fuzz soak docs bench lint format sanitize sanitize-thread clean

tune: build
	@.venv/bin/waywiser tune $(TUNE_FLAGS)

build:
	$(SETUP)

# For each change: the C++ tests and the Python tests that take little time.
test:
	$(SETUP) --tests
	@scripts/test $(TEST_FLAGS)

# The explorer of schedules, stores in any order, groups on virtual GPUs, and the other Python tests: the programs of apps/, every
# fault, jobs under every launcher, GPUs of a server, wheels, large simulations.
test-slow:
	$(SETUP) --slow-tests
	@scripts/test_slow $(TEST_FLAGS)

test-rdma:
	$(SETUP) --tests
	@.venv/bin/python scripts/test_rdma $(TEST_RDMA_FLAGS)

# Every fuzzer for so many seconds each.
fuzz:
	$(SETUP) --fuzz
	@.venv/bin/python scripts/fuzz --seconds $(FUZZ_SECONDS) $(FUZZ_FLAGS)

# Random operations and faults, for so many seconds in all.
soak:
	$(SETUP) --tests
	@.venv/bin/python scripts/soak --seconds $(SOAK_SECONDS) $(SOAK_FLAGS)

# What takes too long for every day; tests/long_results.md tells of the last time.
test-long:
	$(SETUP) --slow-tests
	@.venv/bin/python scripts/test_long $(TEST_LONG_FLAGS)

# The reference site, into build/docs/index.html.
docs:
	$(SETUP) --docs
	@.venv/bin/python scripts/docs

bench:
	$(SETUP) --benchmarks
	@for file in build/benchmarks/*; do echo "$$file"; "$$file" || exit 1; done

lint:
	$(SETUP) --lint
	@.venv/bin/python scripts/lint $(LINT_FLAGS)

format:
	$(SETUP) --lint
	@.venv/bin/python scripts/lint --fix

sanitize:
	$(SETUP) --sanitize address $(SANITIZE_FLAGS)
	@scripts/test_sanitized address

sanitize-thread:
	$(SETUP) --sanitize thread
	@scripts/test_sanitized thread

clean:
	rm -rf build .venv python/waywiser/bin python/waywiser/*.so
