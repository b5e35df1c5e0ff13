#!/bin/sh
# Runs in the preparation image: what the checkout is, and what its programs say of themselves, each line behind its program's name.
# Nothing here fails: what is missing is told by the lines that the recipe wants and does not find.
cat /opt/flare/.sparkyard-origin

help_of() { # the words of the program, which become the name in front of each line
    name=$1
    shift
    "$@" --help 2>&1 | while IFS= read -r line; do printf '%s| %s\n' "$name" "$line"; done
}

cd /opt/flare || exit 1
help_of "flare" flare
help_of "flare agent install" flare agent install
help_of "flare orbit pair" flare orbit pair
help_of "flare orbit run" flare orbit run
help_of "ignition export" .venv/bin/python -m ignition export
help_of "ignition join" .venv/bin/python -m ignition join
exit 0
