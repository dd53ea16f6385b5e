# `make tune` and `make test` set up what they need. Results go to standard output, everything else to standard error.
PYTHON ?= $(or $(WAYWISER_PYTHON),python3)
SETUP := @$(PYTHON) scripts/setup $(SETUP_FLAGS)
TUNE_FLAGS ?=
TEST_FLAGS ?=

.PHONY: tune build test test-rdma bench lint format sanitize sanitize-thread clean

tune: build
	@.venv/bin/waywiser tune $(TUNE_FLAGS)

build:
	$(SETUP)

test:
	$(SETUP) --tests
	@scripts/test $(TEST_FLAGS)

test-rdma:
	$(SETUP) --tests
	@.venv/bin/python scripts/test_rdma $(TEST_RDMA_FLAGS)

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
