# Every target sets up what it needs, in .venv. Another Python: PYTHON=python3.12 make test
# Keep to GNU make 3.81, the one macOS ships.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test lint unit sweep smoke bench bfcl classes damage grammar gbnf model eval capture guard turns frameworks servers clients killtest typescript shown laws mutants fuzz golden measure walk pages pagetests ray train venv clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.model ## install rightcall and show what it does, with a small model if one can be downloaded
	@$(VENV)/bin/rightcall demo
	@echo
	@$(VENV)/bin/rightcall demo --live --folder target/demo
	@test ! -e $(VENV)/.model || { echo; echo "The same model with an adapter of 5 MB, no examples shown, asked here and now:"; \
		echo 'Make it 21 degrees in the bathroom.' | \
		$(VENV)/bin/rightcall chat --local smollm2-tools --tools examples/house_tools.json --max-tokens 80 --temperature 0; }

test: ## run ruff, mypy, the wheel's smoke test and the test suite
	@start=`date +%s`; $(MAKE) -j2 lint smoke && echo "lint and smoke: $$((`date +%s` - start)) s"
	@start=`date +%s`; $(MAKE) unit && echo "unit: $$((`date +%s` - start)) s"

lint: $(VENV)/.dev ## run ruff and mypy
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

unit: $(VENV)/.dev ## run the test suite: products with formats use one format of each shape
	@# Three processes on two cores: many tests wait for a server, a file or a limit of time.
	$(RUN) -m pytest -n 3 --dist worksteal

sweep: $(VENV)/.dev ## run what the test suite leaves out: the same products with all other formats
	@start=`date +%s`; RIGHTCALL_SWEEP=1 $(RUN) -m pytest -n 2 --dist worksteal -m sweep && echo "sweep: $$((`date +%s` - start)) s"

smoke: $(VENV)/.dev ## build the wheel and try it in a clean environment
	$(RUN) tests/support/smoke_wheel.py

bench: $(VENV)/.dev ## run every benchmark; with BASE=COMMIT compare the speed of this tree with another commit
ifdef BASE
	$(RUN) benchmarks/compare.py $(BASE) $(FLAGS)
else
	@set -e; for file in benchmarks/bench_*.py; do echo "== $$file"; $(RUN) "$$file"; done
endif

bfcl: $(VENV)/.dev ## measure against public benchmarks; fail if a figure got worse
	$(RUN) evals/bfcl.py
	$(RUN) evals/bfcl_rules.py

classes: $(VENV)/.dev ## parse texts of every known class of fault in every format; fail if one is parsed wrongly
	PYTHONPATH=evals $(RUN) -m classes $(FLAGS)

shown: $(VENV)/.dev ## parse 150,000 texts that quote or make calls; fail if a quoted call runs or a real one is lost
	PYTHONPATH=evals $(RUN) -m shown $(FLAGS)

damage: $(VENV)/.dev ## damage calls in every known manner; fail if one runs with other arguments or fewer are repaired
	PYTHONPATH=evals $(RUN) -m damaged $(FLAGS)

model: $(VENV)/.local ## download a small model, run it here and count its valid calls
	$(VENV)/bin/rightcall model pull smollm2
	$(RUN) evals/model.py
	$(RUN) evals/model.py --grammar
	$(RUN) -m pytest tests/test_local.py tests/test_model_eval.py

train: $(VENV)/.train ## train a tiny model here, serve it, kill it 200 times; models/smollm2-tools/make.sh trains the real one
	RIGHTCALL_TRAINING_KILLS=200 $(RUN) -m pytest tests/test_training.py tests/test_constrain_xgrammar.py

typescript: $(VENV)/.dev ## check the TypeScript declarations of tools with the compiler; needs node and npm
	$(RUN) evals/typescript.py

grammar: $(VENV)/.dev ## measure which public schemas grammars can express; fail if a figure got worse
	$(RUN) evals/grammar.py

gbnf: $(VENV)/.local ## check GBNF grammars with llama.cpp
	RIGHTCALL_GBNF=1 $(RUN) -m pytest tests/test_constrain_gbnf.py

eval: $(VENV)/.local ## measure a small model, alone and with each part of rightcall added; resumes where it stopped
	$(VENV)/bin/rightcall model pull smollm2
	$(VENV)/bin/rightcall eval questions --local smollm2 --one-call --temperature 0 --seed 1 --max-tokens 96 --out target/eval.jsonl --resume $(FLAGS)

capture: $(VENV)/.local ## run a small model over every stub domain, in three modes
	$(VENV)/bin/rightcall model pull smollm2
	$(RUN) evals/capture.py

guard: $(VENV)/.local ## measure each policy of the guard with scripted faulty models and a small model
	$(VENV)/bin/rightcall model pull smollm2
	$(RUN) evals/guard.py $(FLAGS)
	$(RUN) evals/guard.py --live $(FLAGS)

turns: $(VENV)/.dev ## run a million random turns of a runner; fail on an exception, a lost message or a call without a result
	RIGHTCALL_TURNS=$${RIGHTCALL_TURNS:-1000000} $(RUN) -m pytest -o faulthandler_timeout=0 tests/test_random_turns.py

frameworks: $(VENV)/.frameworks ## run the guard inside LangGraph, pydantic-ai and openai-agents
	$(RUN) -m pytest tests/test_framework_examples.py

clients: $(VENV)/.dev ## run real clients against faulty servers, with and without the proxy (docs/clients.md); needs node and npm
	PYTHONPATH=evals:tests $(RUN) -m clients $(if $(ALL),--all) $(if $(CLIENT),--client $(CLIENT)) $(FLAGS)

servers: $(VENV)/.dev ## install real model servers, run each with a small model, and examine it directly and through the proxy
	$(VENV)/bin/rightcall model pull smollm2
	$(if $(CLIENTS),$(VENV)/bin/rightcall model pull smollm2-tools)
	PYTHONPATH=evals:tests $(RUN) -m real_servers $(SERVER) $(if $(API),--api $(API)) $(if $(CLIENTS),--clients)

killtest: $(VENV)/.dev ## kill captures and evaluations for minutes, and every command that writes at every step
	RIGHTCALL_SWEEP=1 RIGHTCALL_KILL_SECONDS=$${RIGHTCALL_KILL_SECONDS:-120} $(RUN) -m pytest -s -k killed tests/test_capture_resume.py tests/test_evaluation.py tests/test_files_written.py

pagetests: $(VENV)/.dev ## check every page in a real browser, at three widths, light and dark; needs Chromium
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		{ command -v apt-get >/dev/null && [ "`id -u`" = 0 ] && apt-get install -qq -y chromium >/dev/null; } || \
		{ echo "make: no Chromium here; install it, for example: apt-get install chromium" >&2; exit 1; }
	RIGHTCALL_PAGETESTS=1 $(RUN) -m pytest tests/test_webpages.py tests/test_webpages_browser.py

ray: $(VENV)/.ray ## process rows on a real Ray cluster with two workers, and in an S3 store
	$(RUN) -m pytest -o faulthandler_timeout=120 -o faulthandler_exit_on_timeout=true tests/test_ray.py tests/test_rows_remote.py

laws: $(VENV)/.dev ## test the laws with 300 examples for each law and format; SEED=n repeats a run
	$(RUN) fuzz/laws.py $(if $(SEED),--seed $(SEED)) --seconds $${LAWS_SECONDS:-900}

mutants: $(VENV)/.dev ## insert one-line bugs into a copy of the source, one at a time; fail if the tests miss one
	$(RUN) fuzz/mutants.py $(FLAGS)

fuzz: $(VENV)/.dev ## parse hostile text with every function and search for superlinear cost; SECONDS=n for each of three parts
	$(RUN) fuzz/run.py $(if $(SEED),--seed $(SEED)) --seconds $(or $(SECONDS),60)
	$(RUN) fuzz/superlinear.py $(if $(SEED),--seed $(SEED)) --seconds $(or $(SECONDS),60)
	$(RUN) fuzz/schemas.py $(if $(SEED),--seed $(SEED)) --seconds $(or $(SECONDS),60)

golden: $(VENV)/.dev ## compare what this tree and BASE=COMMIT parse, on all recorded texts; fail if another call runs
	$(RUN) tools/golden.py $(or $(BASE),HEAD) $(FLAGS)

measure: $(VENV)/.dev ## measure the size and structure of the package; fail if a goal that was reached is missed
	$(RUN) tools/measure.py $(FLAGS)

walk: $(VENV)/.dev ## count the files and functions that one call passes through
	$(RUN) tools/walk.py $(FLAGS)

pages: $(VENV)/.dev ## generate the pages of docs/ that are made from the source
	$(RUN) tools/pages.py

venv: $(VENV)/.dev ## set up .venv with the development tools

clean: ## remove what the other targets created
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are files, so that nothing is installed again until pyproject.toml changes.

$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || { echo "make: no $(PYTHON) here; rightcall needs Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "make: rightcall needs Python 3.11 or newer, and $(PYTHON) is `$(PYTHON) --version 2>&1`." >&2; \
		echo "make: name a newer one, for example: PYTHON=python3.12 make $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.user: $(VENV)/.made pyproject.toml
	$(PIP) --editable '.[all]'
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.user

# What the demo runs a model with. Where it cannot be had, the demo has a recording, and says so.
$(VENV)/.model: $(VENV)/.user
	@$(PIP) --editable '.[local]' && $(VENV)/bin/rightcall model pull smollm2-tools && touch $@ || \
		echo "make: the small model cannot be fetched here; a recording of it stands in" >&2

$(VENV)/.frameworks: $(VENV)/.dev
	$(PIP) langgraph openai-agents pydantic-ai-slim
	@touch $@

$(VENV)/.ray: $(VENV)/.dev
	$(PIP) --editable '.[dev,ray]' 'moto[server]>=5'
	@touch $@

$(VENV)/.train: $(VENV)/.dev
	$(PIP) --editable '.[dev,train]' xgrammar
	@touch $@

$(VENV)/.local: $(VENV)/.dev
	$(PIP) --editable '.[dev,local]'
	@touch $@
