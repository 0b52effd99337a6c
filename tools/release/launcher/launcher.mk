# Builds the entry point of a release, statically, with plain `cc`. Included by the Makefile; paths are from the project
# root. The same source and compiler give the same bytes in any folder: no path, time or build id gets in.

launcher_directory := build/launcher
launcher_flags := -std=c11 -D_GNU_SOURCE -Os -static -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 \
  -Wall -Wextra -Wshadow -Wconversion -Werror -ffile-prefix-map='$(subst ','\'',$(CURDIR))'=. \
  -s -Wl,--build-id=none,-z,relro,-z,now,-z,noexecstack

# Linked beside its place and moved into it, so that nobody takes half a file.
$(launcher_directory)/strongroom: tools/release/launcher/launcher.c tools/release/launcher/launcher.mk
	@mkdir -p $(@D)
	$(CC) $(launcher_flags) $< -o $@.new
	mv $@.new $@
