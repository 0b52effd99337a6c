# Every target has one line of help: run `make` to list them.
NODE := bin/pinned-node

.DEFAULT_GOAL := help
# GNU make 3.81 (macOS) and later.
.PHONY: help install core demo demo-custody demo-enclave test test-fast test-guest watch debug check lint types format docs \
  bench release clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { name[++n] = $$1; says[n] = $$2; if (length($$1) > width) width = length($$1) } \
	  END { for (i = 1; i <= n; i++) printf "  make %-" width "s %s\n", name[i], says[i] }' $(MAKEFILE_LIST)

include enclave/native/native.mk
include eif/init/init.mk
include release/launcher/launcher.mk

install: node_modules/.installed ## Install the packages that the lockfile names (and the pinned Node.js)

node_modules/.installed: package.json package-lock.json .npmrc
	npm ci --loglevel=error
	@touch $@

demo: install core-quietly ## Start a signer, sign an attestation, show a slashable one refused; KEEP=1 keeps it up
	@KEEP=$(KEEP) $(NODE) demo/demo.ts

demo-custody: install core-quietly ## Show custody on stand-ins: boot, root token, seal, recovery; KEEP=1 keeps it up
	@KEEP=$(KEEP) $(NODE) demo/custody.ts

demo-enclave: install core-quietly ## Build an image and show it in QEMU: boot, verification, signing, seal, recovery
	@$(NODE) demo/enclave.ts

VITEST := $(NODE) node_modules/vitest/vitest.mjs
# Programs, databases, images and long searches: what makes the whole suite take a while.
SLOW := 'test/{bench,chamber,contract,e2e,eif,guest,harden,operator,parent-proxy,property}/**' \
  'test/{release,runbooks,web3signer}/**' 'test/slashing/{dynamodb,interchange,postgres,sqlite,web3signer}/**' \
  'test/keys/{files,keystores,management,table}/**' 'test/signing/bls/**' \
  test/config/check.test.ts test/config/check-start.test.ts test/deploy/runbooks.test.ts \
  test/formats/strict-json-cost.test.ts test/signing/lodestar-roots.test.ts test/slashing/local-floor-restart.test.ts \
  test/ceremony/check-identity.test.ts test/ceremony/participants-guide.test.ts \
  test/setup/enclave-permissions.test.ts test/setup/signer-permissions.test.ts test/ceremony/custody-guide.test.ts

test: install core ## Run all tests, or those of FILE=…; the last line is `N passed, N failed, N skipped`
	@$(VITEST) run $(FILE)

test-fast: install core ## Run the tests that start no programs, databases or images: under two minutes on two cores
	@$(VITEST) run $(foreach files,$(SLOW),--exclude $(files))

watch: install core ## Run the tests of FILE=… again whenever a file that they import changes
	@$(VITEST) watch $(FILE)

debug: install core ## Run the tests of FILE=… in one process that waits for a debugger
	@$(VITEST) run $(FILE) --inspect-brk --no-file-parallelism

test-guest: install core ## Run the tests that need a kernel of their own in QEMU; root installs what is missing
	@$(NODE) test/guest/main.ts

core: install ## Build the native signing core when there is a C compiler; the portable one needs nothing
	@if command -v $(CC) >/dev/null; then $(MAKE) --no-print-directory native; \
	else echo "no C compiler ($(CC)): the portable signing core is used"; fi

# What the compiler is told is shown when it fails.
.PHONY: core-quietly
core-quietly: install
	@mkdir -p build
	@$(MAKE) --no-print-directory core >build/core.log 2>&1 || { cat build/core.log; exit 1; }

check: lint types ## Lint, formatting and types

lint: install ## Lint and check the formatting (biome, oxlint)
	@node_modules/.bin/biome check --error-on-warnings .
	@node_modules/.bin/oxlint --deny-warnings

types: install ## Check the types (tsc)
	@$(NODE) node_modules/typescript/bin/tsc -p .

format: install ## Rewrite the sources in the house format
	@node_modules/.bin/biome check --write .

docs: install ## Write the generated references under docs/reference
	@$(NODE) docs/generate.ts

bench: install core ## Measure the signing path beside raw BLS signing, as ratios of one run
	@$(NODE) test/bench/signing.ts

release: install ## Make what is installed without a checkout, into build/release: tarball, package, image archive
	@$(MAKE) --no-print-directory native $(launcher_directory)/strongroom $(if $(IMAGE),$(init_directory)/init)
	@$(NODE) release/main.ts $(if $(COMMIT),--commit $(COMMIT)) $(if $(IMAGE),--image '$(IMAGE)')

clean: ## Remove what was built and installed
	rm -rf build node_modules
