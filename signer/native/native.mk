# Builds the native addon with plain `cc`: our C files and blst's sources from the npm package c-kzg (pinned by the
# lockfile), no node-gyp and nothing downloaded. Included by the Makefile; paths are from the project root.

native_sources := addon arguments core core-calls derive descriptors keyring memory multiples nsm process receipts seccomp shares sign threads \
  vsock vsock-connect vsock-socket
native_directory := build/native
native_blst := node_modules/c-kzg/deps/blst
native_headers := node_modules/node-api-headers/include
# The pinned Node's own libuv: with it vsock-connect.c (Linux) waits for a connect. It comes after native_headers, which
# have the Node-API. Make looks for it when it compiles a file, because `make install native` installs it after make has
# read this line.
native_libuv = $(shell ls -d node_modules/node-linux-*/include/node 2>/dev/null)

# blst as its own build.sh compiles it. __BLST_PORTABLE__: both the ADX and the plain code are in, the CPU decides when
# the addon is loaded, so one binary is safe on every CPU of its architecture.
native_blst_flags := -O2 -fno-builtin -fPIC -fvisibility=hidden -D__BLST_PORTABLE__
native_flags = -std=c11 -D_GNU_SOURCE -DNAPI_VERSION=8 -O2 -fPIC -fvisibility=hidden -pthread \
  -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -Wall -Wextra -Werror \
  -isystem $(native_blst)/bindings -isystem $(native_headers) $(addprefix -isystem ,$(native_libuv))

ifeq ($(shell uname -s),Darwin)
native_link_flags := -bundle -undefined dynamic_lookup
else
native_link_flags := -shared -pthread -lm -Wl,-Bsymbolic,-z,relro,-z,now,-z,noexecstack
endif

native_objects := $(native_sources:%=$(native_directory)/%.o) $(native_directory)/blst.o $(native_directory)/blst-assembly.o

.PHONY: native
native: $(native_directory)/strongroom.node ## Build the native signing core again, after a change in signer/native

# Linked under another name and renamed, so that a running process never sees half a file.
$(native_directory)/strongroom.node: $(native_objects)
	$(CC) $(native_objects) $(native_link_flags) -o $@.new
	mv $@.new $@

$(native_directory)/%.o: signer/native/%.c $(wildcard signer/native/*.h) signer/native/native.mk | $(native_directory)
	$(CC) $(native_flags) -c $< -o $@

$(native_directory)/blst.o: $(native_blst)/src/server.c signer/native/native.mk | $(native_directory)
	$(CC) $(native_blst_flags) -c $< -o $@

$(native_directory)/blst-assembly.o: $(native_blst)/build/assembly.S signer/native/native.mk | $(native_directory)
	$(CC) $(native_blst_flags) -c $< -o $@

$(native_directory):
	mkdir -p $@

# Signatures compared in each run; millions were, when the code was written (docs/performance.md).
MULTIPLES_COMPARED ?= 20000

.PHONY: check-multiples
check-multiples: $(native_directory)/multiples-proof ## Prove our arithmetic: equal to blst's, blind to keys (valgrind)
	$< equal $(MULTIPLES_COMPARED)
	valgrind --quiet --error-exitcode=1 --suppressions=test/native/multiples.supp $< secret

$(native_directory)/multiples-proof: test/native/multiples.c $(native_objects)
	$(CC) $(native_flags) $< $(native_directory)/sign.o $(native_directory)/multiples.o $(native_directory)/memory.o \
	  $(native_directory)/blst.o $(native_directory)/blst-assembly.o -o $@

# The addon with sanitizers, for test/native/sanitizers, and each with a fault of ours that has to be found. blst is as
# it is: its assembly has none.
native_sanitizers := address thread address-broken thread-broken
native_sanitized_flags := -O1 -g -fno-omit-frame-pointer -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=0
sanitizer_address := -fsanitize=address,undefined -fno-sanitize-recover=undefined
sanitizer_address-broken := $(sanitizer_address)
sanitizer_thread := -fsanitize=thread
sanitizer_thread-broken := $(sanitizer_thread)
native_broken_headers := -include test/native/sanitizers/broken.c

define sanitized_addon
$(native_directory)/$(1)/keyring.o: sanitized_fault := $(if $(filter address-broken,$(1)),-DBROKEN_MEMORY $(native_broken_headers))
$(native_directory)/$(1)/sign.o: sanitized_fault := $(if $(filter thread-broken,$(1)),-DBROKEN_LOCKS $(native_broken_headers))

$(native_directory)/$(1)/%.o: signer/native/%.c $(wildcard signer/native/*.h) signer/native/native.mk test/native/sanitizers/broken.c
	@mkdir -p $$(@D)
	$$(CC) $$(native_flags) $$(native_sanitized_flags) $(sanitizer_$(1)) $$(sanitized_fault) -c $$< -o $$@

$(native_directory)/$(1)/strongroom.node: $(native_sources:%=$(native_directory)/$(1)/%.o) $(native_directory)/blst.o $(native_directory)/blst-assembly.o
	$$(CC) $(sanitizer_$(1)) $$^ $(native_link_flags) -o $$@
endef
$(foreach name,$(native_sanitizers),$(eval $(call sanitized_addon,$(name))))

.PHONY: check-sanitizers
check-sanitizers: install ## Run the addon under address, undefined and thread sanitizers, SECONDS=… each (30)
	@$(MAKE) --no-print-directory --silent $(native_sanitizers:%=$(native_directory)/%/strongroom.node)
	@SECONDS=$(SECONDS) SEED=$(SEED) $(NODE) test/native/sanitizers/main.ts
