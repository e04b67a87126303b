# The two commands to know are `make demo` and `make test`; both need only make, Python >= 3.11
# and a network to install packages from. Everything is installed into .venv.

VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

# A Python that is new enough and able to make virtual environments; PYTHON=... overrides.
usable = $(shell $(1) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $(1))
CANDIDATES := python3.11 python3 python python3.12 python3.13 python3.14
PYTHON ?= $(firstword $(foreach candidate,$(CANDIDATES),$(call usable,$(candidate))))

# Modules are compiled when they are first imported, which most never are; and kept, or every
# process would compile them again.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/python -m pip --disable-pip-version-check install -qq --no-compile
CREATED := $(VENV)/.created
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev

# Part of the installation, so that the first plan does not wait for it; at once if it is done.
COMPILE := PYTHONPATH=src $(BIN)/python -m fsmdp.cli.ahead

# What compiling needs is installed first; the rest while it compiles. Should that have been too
# early, because a package was exchanged for another version, it is done again.
NEEDED := $(shell sed -n 's/^IMPORTED = (\(.*\))/\1/p' hatch_build.py | tr -d '",')
# What builds the package is installed beside it, which saves an environment of its own for that.
BUILDS := $(shell sed -n 's/^requires = \[\(.*\)\]/\1/p' pyproject.toml | tr -d ,) editables
define install
	@$(INSTALL) $(NEEDED)
	@$(COMPILE) $(PARTS) 2>/dev/null & compiling=$$!; \
	{ $(INSTALL) $(BUILDS) && $(INSTALL) --no-build-isolation -e '.[$(EXTRAS)]'; } || \
		{ kill $$compiling; exit 1; }; \
	wait $$compiling || $(COMPILE) $(PARTS)
endef

# An editable installation has no wheel that could hold what was compiled.
export FSMDP_COMPILE := 0

# Several processes on as many cores: threads of BLAS would only wait for one another, busily.
test coverage: export OPENBLAS_NUM_THREADS := 1

# Files stay together, since compiled code and fixtures serve all tests of one; tests/conftest.py
# puts the longest first, so that no process is left with one of them at the end.
PYTEST := $(BIN)/pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder

# Material for MkDocs otherwise prints a notice about a future MkDocs on every build.
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.PHONY: help demo test quick checks pages compiled coverage browser bench docs format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What the demo does without is compiled while it runs, where a core is idle, and a little longer.
demo: $(INSTALLED) ## install the package and show what it does
	@nice -n 19 $(COMPILE) >/dev/null 2>&1 & $(BIN)/fsmdp demo

test: $(INSTALLED_DEV) browser ## formatting, lint, types, layers, documentation, then the tests
	@$(MAKE) --no-print-directory -j 2 checks pages compiled
	@echo "== tests"
	@$(PYTEST) --durations=10

quick: $(INSTALLED_DEV) ## format, lint, types and the tests of what changed since the last commit
	@$(BIN)/ruff format --check -q && $(BIN)/ruff check -q && $(BIN)/mypy
	@tests=$$($(BIN)/python tests/changed.py); \
	test -z "$$tests" || OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q -n $(JOBS) --maxfail=3 $$tests

checks:
	@echo "== formatting"
	@$(BIN)/ruff format --check
	@echo "== lint"
	@$(BIN)/ruff check
	@echo "== types"
	@$(BIN)/mypy
	@echo "== layers"
	@$(BIN)/lint-imports --no-logo

# Takes about as long as the checks, on the other core.
pages:
	@echo "== documentation"
	@$(BIN)/mkdocs build --strict --quiet

compiled:
	@$(COMPILE)

# Tracing doubles the time that tests take, so it is not part of `make test`.
coverage: $(INSTALLED_DEV) browser ## run the tests with their line coverage, at least 95 %
	@$(COMPILE)
	@$(PYTEST) --cov --cov-report=term

# Tests of the report open it in Chromium. Without one, and without the right to install one, they
# are skipped and say so.
browser: ## install Debian's Chromium if there is none and apt-get may be used
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
		as_root=$$(test "$$(id -u)" = 0 || echo "sudo -n"); \
		if command -v apt-get >/dev/null && $$as_root true 2>/dev/null; then \
			echo "== browser: installing chromium"; \
			{ $$as_root apt-get -qq update && $$as_root env DEBIAN_FRONTEND=noninteractive \
				apt-get -qq install -y --no-install-recommends chromium; } >/dev/null 2>&1; \
		fi; \
		command -v chromium >/dev/null || echo "== browser: none, its tests will be skipped"; \
	}

bench: $(INSTALLED) ## run every benchmark in turn
	@for script in benchmarks/[!_]*.py; do \
		test -e "$$script" || { echo "no benchmarks found"; break; }; \
		echo "== $$script"; \
		$(BIN)/python "$$script" || exit 1; \
	done

docs: $(INSTALLED_DEV) ## build the documentation into site/
	@$(BIN)/mkdocs build --strict --quiet
	@echo "documentation: site/index.html"

format: $(INSTALLED_DEV) ## format the code and fix what lint can fix
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

clean: ## remove everything that is generated, .venv included; runs/ is kept
	@rm -rf $(VENV) build dist site .coverage .coverage.* \
		.mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(CREATED):
	@python='$(PYTHON)'; \
	if test -z "$$python"; then \
		echo "fsmdp needs Python 3.11 or newer with the venv module; none was found among:" \
			"$(CANDIDATES). Install one, or name it: make PYTHON=/path/to/python ..." >&2; \
		exit 1; \
	fi; \
	if ! "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "PYTHON=$$python is not Python 3.11 or newer with the venv module;" \
			"install one, or name another: make PYTHON=/path/to/python ..." >&2; \
		exit 1; \
	fi; \
	echo "creating $(VENV) with $$("$$python" --version)"; \
	"$$python" -m venv --clear $(VENV)
	@touch $@

$(INSTALLED): EXTRAS := rddl
$(INSTALLED): PARTS := demo
$(INSTALLED): pyproject.toml | $(CREATED)
	@echo "installing fsmdp into $(VENV) and compiling, a minute or two"
	$(install)
	@touch $@

$(INSTALLED_DEV): EXTRAS := dev,docs,rddl,ray,dask
$(INSTALLED_DEV): PARTS := all
$(INSTALLED_DEV): pyproject.toml | $(CREATED)
	@echo "installing fsmdp and its development tools into $(VENV) and compiling, a few minutes"
	$(install)
	@touch $@ $(INSTALLED)
