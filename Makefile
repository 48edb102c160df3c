# The two commands of the README are `make demo` and `make test`; each sets up .venv by itself.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin

.PHONY: demo test test-slow test-browser load fuzz faults bench bench-peers docs check lint types clean

demo: .venv/ready
	$(BIN)/mirada demo

test: .venv/ready
	$(BIN)/python -m pytest -n 2

# What takes longest: trainings until a task is solved, kills, every gradient with every dropout. About five minutes.
test-slow: .venv/ready
	$(BIN)/python -m pytest -n 2 -m slow

# The pages in Chromium (Debian: apt install chromium), on four small models that are trained first: a few minutes.
test-browser: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m browser tests/serving/test_browser.py tests/export/test_page_browser.py

# 1 to 200 clients of `mirada serve`, two minutes each, every answer compared with the offline one. LOAD holds options:
# LOAD="--requests 100000" (memory over so many short texts), LOAD=--beside with MODEL=a Transformer (CTranslate2 beside).
load: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.load $(or $(MODEL),mirada-demo/bahdanau) $(LOAD)

# What schemathesis makes of the service's own description, new examples each time: some minutes.
fuzz: .venv/ready
	MIRADA_FUZZ_EXAMPLES=$(or $(EXAMPLES),400) OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/serving/test_fuzz.py

# Kill loops, full disks, a million lines, ten minutes of fuzzing: about half an hour (docs/reliability.md).
faults: .venv/ready
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m faults

# Speed beside the machine's own limit: about an hour, with nothing else to do meanwhile. BENCH holds options, such as
# BENCH="--quick" or BENCH="--tokenised DIR --only train" (python -m benchmarks --help); rows and report: bench-results/.
bench: .venv/ready
	$(BIN)/python -m benchmarks $(BENCH)

# Other toolkits beside: PEERS="onmt joey" TRAIN="train.en train.de" TEST="test.en test.de" G2P=words.tsv (docs/speed-peers.md).
PEERS ?= onmt
PEERS_DIR ?= build/peers
bench-peers:
	PYTHON=$(PYTHON) benchmarks/peers/install.sh $(PEERS_DIR) $(PEERS)
	$(PEERS_DIR)/venvs/prepare/bin/python -m benchmarks.peers.prepare $(PEERS_DIR) \
		$(if $(TRAIN),--train $(TRAIN) --test $(TEST)) $(if $(G2P),--g2p $(G2P))
	OPTIONS="$(OPTIONS)" benchmarks/peers/run.sh $(PEERS_DIR) $(PEERS)

# The site of docs/, in build/site; reading it needs no network. Its search needs a server: python -m http.server -d build/site
docs: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

check: lint types test

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache
