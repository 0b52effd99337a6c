#!/bin/sh
# A C compiler for builds that are about something else: what it is asked for was compiled before and lies in a folder
# beneath $COMPILED_BEFORE. Of its arguments only the name of the output counts.
set -eu
while [ "$1" != -o ]; do shift; done
cp "$COMPILED_BEFORE"/*/"$(basename "$2" .new)" "$2"
