# Every target has one line of help: run `make` to list them.
NODE := bin/pinned-node

.DEFAULT_GOAL := help
# GNU make 3.81 (macOS) and later.
.PHONY: help install core demo demo-custody demo-distributed demo-enclave test test-setup test-all test-fast test-guest test-clients \
  watch debug check lint types format docs screenshots release clean
.PHONY: check-model check-slashing check-memory fuzz fuzz-http

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { name[++n] = $$1; says[n] = $$2; if (length($$1) > width) width = length($$1) } \
	  END { for (i = 1; i <= n; i++) printf "  make %-" width "s %s\n", name[i], says[i] }' $(MAKEFILE_LIST)

include signer/native/native.mk
include eif/init/init.mk
include tools/release/launcher/launcher.mk
# A tree without test/ builds the same, and one without lab/ builds, checks and tests the same.
-include test/fuzz/native/native.mk lab/lab.mk

install: node_modules/.installed ## Install the packages that the lockfile names (and the pinned Node.js)

node_modules/.installed: package.json package-lock.json .npmrc
	@tools/checkout/install
	@touch $@

demo: install core-quietly ## Start a signer, sign an attestation, show a slashable one refused; KEEP=1 keeps it up
	@KEEP=$(KEEP) $(NODE) demo/demo.ts

demo-custody: install core-quietly ## Show custody on stand-ins: boot, root token, seal, recovery; KEEP=1 keeps it up
	@KEEP=$(KEEP) $(NODE) demo/custody.ts

demo-distributed: install core-quietly ## Show a key in four shares: one signer stops, one forgets, votes go on
	@$(NODE) demo/distributed.ts

demo-enclave: install core-quietly ## Build an image and show it in QEMU: boot, verification, signing, seal, recovery
	@$(NODE) demo/enclave.ts

VITEST := $(NODE) node_modules/vitest/vitest.mjs
# Programs, databases, images and long searches: what makes the whole suite take a while.
SLOW := 'test/{chamber,contract,e2e,eif,guest,harden,model,operator,parent-proxy,property}/**' \
  'test/{release,runbooks,slashing-check,web3signer}/**' 'test/slashing/{dynamodb,interchange,postgres,sqlite}/**' \
  'test/keys/{files,keystores,management,table}/**' 'test/bls/**' \
  test/attestation/mutants.test.ts test/ceremony/day.test.ts test/clients/profiles.test.ts \
  test/command-line/completion.test.ts \
  test/config/check.test.ts test/config/check-start.test.ts test/config/examples.test.ts \
  test/deploy/prometheus.test.ts test/deploy/runbooks.test.ts \
  test/enclave/kms/cms.test.ts test/observe/log-color.test.ts test/receipts/mutants.test.ts \
  test/receipts/storage.test.ts test/tools/checkout.test.ts test/sign/envelopes/envelope-reader.test.ts \
  test/sign/fork-attacks.test.ts \
  test/formats/strict-json-cost.test.ts test/operations/lodestar-roots.test.ts test/slashing/local-floor-restart.test.ts \
  test/ceremony/check-identity.test.ts test/ceremony/participants-guide.test.ts \
  test/setup/enclave-permissions.test.ts test/setup/signer-permissions.test.ts test/ceremony/custody-guide.test.ts

test: install core ## Run all tests, or those of FILE=…; the last line is `N passed, N failed, N skipped`
	@$(VITEST) run $(FILE)

test-setup: ## Print the apt-get line of all that tests need beyond make, gcc and curl, and are skipped without
	@awk '!/^(#|$$)/ && $$2 != "-" { gsub(",", "\n", $$2); print $$2 }' test/support/needs.txt | LC_ALL=C sort -u | xargs echo apt-get install

test-all: ## Run them with the long ones at the whole size, as CI does; TEST_SCALE=20 is twenty times that
	@$(MAKE) --no-print-directory test TEST_SCALE=$(or $(TEST_SCALE),1)

test-fast: install core ## Run the tests that start no programs, databases or images: under four minutes on two cores
	@$(VITEST) run $(foreach files,$(SLOW) $(SLOW_OF_LAB),--exclude $(files))

watch: install core ## Run the tests of FILE=… again whenever a file that they import changes
	@$(VITEST) watch $(FILE)

debug: install core ## Run the tests of FILE=… in one process that waits for a debugger
	@$(VITEST) run $(FILE) --inspect-brk --no-file-parallelism

test-guest: install core ## Run the tests that need a kernel of their own in QEMU; root installs what is missing
	@$(NODE) test/guest/main.ts

test-clients: install core ## Run real validator clients against this signer and a small chain, for some minutes
	@$(NODE) test/clients/main.ts

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
	@$(NODE) tools/reference/generate.ts

screenshots: install core-quietly ## Make the pictures in docs/images anew; Chromium shows the report
	@$(NODE) demo/screenshots/main.ts

check-model: install ## Check the model of the slashing protocol in Spin (spin and gcc); RUN=… runs those with that name
	@$(NODE) test/model/check.ts '$(RUN)'

check-slashing: install core ## Ask fleets and processes at random, MESSAGES=… (20000), SEED=… (1): nothing slashable
	@$(NODE) test/slashing-check/main.ts '$(MESSAGES)' '$(SEED)'

check-memory: install core ## Search signers, their cores (gcc; CORE=0: none) and heap snapshots; Linux, root
	@CORE=$(CORE) $(NODE) test/memory-check/main.ts

fuzz: install ## Fuzz the decoders for SECONDS=… each (60), or TARGET=…; KEEP=1 adds to test/fuzz/corpus
	@SECONDS=$(SECONDS) KEEP=$(KEEP) $(NODE) test/fuzz/main.ts '$(TARGET)' $(if $(TARGET),$(or $(SECONDS),60))
	@$(if $(TARGET),true,$(MAKE) --no-print-directory fuzz-native)

fuzz-http: install core ## Ask a real signer what schemathesis makes of its OpenAPI document, for SECONDS=… (120)
	@SECONDS=$(SECONDS) SEED=$(SEED) $(NODE) test/fuzz/http/main.ts

release: install ## Make what is installed without a checkout, into build/release: tarball, package, image archive
	@$(MAKE) --no-print-directory native $(launcher_directory)/strongroom $(if $(IMAGE),$(init_directory)/init)
	@$(NODE) tools/release/main.ts $(if $(COMMIT),--commit $(COMMIT)) $(if $(IMAGE),--image '$(IMAGE)')

clean: ## Remove what was built and installed
	rm -rf build node_modules
