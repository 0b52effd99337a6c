# Builds the first process of enclave images, statically, with plain `cc`. Included by the Makefile; paths are from the
# project root. The same sources and compiler give the same bytes in any folder, also one with a space or a quote in its
# name: no path, time or build id gets in.

init_parts := entropy heartbeat modules mounts network report settings signer text
init_sources := init $(init_parts)
init_directory := build/eif
init_flags := -std=c11 -D_GNU_SOURCE -Os -static -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 \
  -Wall -Wextra -Wshadow -Wconversion -Werror -ffile-prefix-map='$(subst ','\'',$(CURDIR))'=. \
  -s -Wl,--build-id=none,-z,relro,-z,now,-z,noexecstack

.PHONY: image-parts
image-parts: install ## Build what an enclave image has besides the bundle: the addon and the first process
	@$(MAKE) --no-print-directory native $(init_directory)/init

# Linked under another name and renamed, so that no build takes half a file.
$(init_directory)/init: $(init_sources:%=eif/init/%.c) $(init_parts:%=eif/init/%.h) eif/init/init.mk
	@mkdir -p $(@D)
	$(CC) $(init_flags) $(init_sources:%=eif/init/%.c) -o $@.new
	mv $@.new $@
