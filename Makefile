# Everything a developer does, from a fresh clone on. `make help` lists it.
# Each target sets up what it needs: the virtual environment .venv and, where Spark runs, Java.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test check style format-is-right house format fuzz simulate exhaustive mutants checkers kills starts gossip loss stopped splits answering bench long venv java chromium firewall clean

BIN := .venv/bin
READY := .venv/.ready
# No input is ever asked for.
export PIP_NO_INPUT := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start some thousand processes: without compiled files each of them would compile the whole package.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

demo: venv java ## four processes, one order, a kill, an audit: the report is demo-out/report.html
	@$(BIN)/pygroups demo

test: venv format-is-right java chromium firewall ## everything that CI runs: style, types, all tests
	@$(BIN)/python -m tests.parts

check: venv style ## what to run before a commit, in some minutes: style, types, fast tests
	@$(BIN)/pytest -q -m "not slow and not long"

style: format-is-right # formatter, linter and strict types; part of check; in test the types are checked beside the tests
	@$(BIN)/mypy --strict src

format-is-right: venv # formatter and linter
	@$(BIN)/ruff format --check --quiet . || { echo "the format differs: make format mends it" >&2; exit 1; }
	@$(BIN)/ruff check --quiet .

house: venv ## the rules of the house alone: imports, sizes, names, traces of a machine
	@$(BIN)/pytest -q tests/house

format: venv ## format the source and mend what the linter can mend
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

SECONDS ?= 60
fuzz: venv ## every decoder, and stacks in the middle of what groups do, guided by coverage, for SECONDS=60
	@PYTHONPATH=src:. $(BIN)/python -m tests.fuzz --seconds $(SECONDS)

long: venv java chromium firewall ## the tests that make test leaves out; make simulate counts on
	@$(BIN)/pytest -m long

MINUTES ?= 20
simulate: venv ## the long count of simulated schedules goes on for MINUTES=20; PROFILE=total one profile, JOBS=1
	@PYTHONPATH=src $(BIN)/python -m bench.simulate --minutes $(MINUTES) --profile "$(PROFILE)" --jobs "$(JOBS)"

exhaustive: venv ## three real stacks, every order of arrival, a crash at every step: at least 100,000 states in MINUTES=20
	@PYTHONPATH=src:. $(BIN)/python -m tests.exhaustive --minutes $(MINUTES)

mutants: venv ## plant bugs in a copy and hunt them: SINCE=HEAD~20 made from the change; ONLY=M4 a kept one; else all kept ones
	@ONLY="$(ONLY)" SINCE="$(SINCE)" PYTHONPATH=src:. $(BIN)/python -m tests.mutants.gate

checkers: venv java ## make each check of a promise blind, in the simulator and in the audit: a planted history must show it
	@ONLY="$(ONLY)" $(BIN)/python -m tests.mutants.checkers.gate

KILLS ?= 200
kills: venv java ## KILLS=200 deaths between the steps of a turn, half of them in fifo, an audit over all journals
	@$(BIN)/python -m tests.e2e.kills --kills $(KILLS)

STARTS ?= 20
starts: venv ## 20 processes at the same moment, STARTS=20 times: each time one view
	@$(BIN)/python -m tests.e2e.starts --starts $(STARTS) --processes 20

gossip: venv firewall ## gossip groups up to 1,000 members at 10 and 30 % loss: misses, load, spread; the plot; 50 processes
	@$(BIN)/python bench/gossip.py
	@$(BIN)/pytest -q -m long tests/layers/test_pbcast_many.py
	@$(BIN)/python -m tests.e2e.gossip

loss: venv java firewall ## 2 and 5 members exchange 100,000 messages each over UDP at 0, 1 and 10 % loss, then one audit
	@$(BIN)/python bench/loss.py

stopped: venv ## SIGSTOP under full load for SECONDS=60, over TCP and UDP: memory of the others, who waits, who is excluded
	@$(BIN)/python -m tests.e2e.stopped --seconds $(SECONDS)

splits: SECONDS = 30
splits: venv java firewall ## five processes on hosts of their own: cuts of SECONDS=30 under load, a heal, an audit
	@$(BIN)/python -m tests.e2e.splits --seconds $(SECONDS)
	@$(BIN)/python -m tests.e2e.majority_splits --seconds $(SECONDS)

answering: venv ## four members that answer each message, and one that only sends, for SECONDS=60 each
	@$(BIN)/python -m tests.channel.answering --seconds $(SECONDS)

bench: venv ## short benchmarks, about two minutes; what they mean stands in bench/README.md
	@$(BIN)/python bench/layers.py --seconds 1
	@$(BIN)/python bench/layers.py --seconds 1 --profile gossip
	@$(BIN)/python bench/delivery.py --seconds 2
	@$(BIN)/python bench/stable.py --seconds 1
	@$(BIN)/python bench/total_order.py --seconds 3 --repeat 1
	@$(BIN)/python bench/failover.py --kills 2
	@$(BIN)/python bench/blocked.py --rounds 2
	@$(BIN)/python bench/simulator.py --seconds 20 --repeat 1

venv: $(READY) ## the virtual environment .venv, with pinned packages

$(READY): pyproject.toml constraints.txt
	@python=$$(bash .ci/find-python) && echo "preparing .venv with $$python ..." && $$python -m venv .venv
	@$(BIN)/python -m pip install --quiet -e '.[spark,dev]' -c constraints.txt
	@touch $(READY)

java: # Java 17 or newer for Spark
	@bash .ci/need-java

chromium: # a browser for the tests of the report
	@bash .ci/need-chromium

firewall: # what the tests of partial failures cut networks with
	@bash .ci/need-firewall

clean: ## remove the virtual environment, caches and results
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-out build dist src/*.egg-info
