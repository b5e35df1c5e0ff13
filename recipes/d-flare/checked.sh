#!/bin/sh
# Runs in the container of every rank right before Ignition: what would be found out hours later is found out now.
#   checked.sh patched|pristine SHA256 WORDS...
# Ends with 78 and says what is wrong, or becomes WORDS.
set -eu
state=$1
wanted=$2
shift 2
cache=/root/.cache
module=ignition.recipes.deepseek41.recipe
recipe=$PWD/ignition/recipes/deepseek41/recipe.py

refuse() {
    echo "ERROR $*"
    exit 78
}

# Ignition hard-links what it writes into the package: the cache must be one filesystem that can.
mkdir -p "$cache/flare/runtime" || refuse "$cache cannot be written to"
systems=$(find "$cache" -type d -exec stat -c %d '{}' + | sort -u | wc -l)
[ "$systems" -eq 1 ] || refuse "below $cache are $systems filesystems; hard links do not cross them"
first=$cache/.sparkyard-link-test
second=$cache/flare/runtime/.sparkyard-link-test
rm -f "$first" "$second"
: > "$first" || refuse "$cache cannot be written to"
ln "$first" "$second" || refuse "the filesystem of $cache has no hard links"
[ "$(stat -c %h "$first")" -eq 2 ] || refuse "the filesystem of $cache made a copy in place of a hard link"
rm -f "$first" "$second"
echo "checked: hard links work in $cache, one filesystem"

# The text that Ignition will import must be the one that was meant, and not a copy that an install left elsewhere.
found=$(.venv/bin/python -c "import importlib.util; print(importlib.util.find_spec('$module').origin)") || refuse "$module cannot be found"
[ "$found" = "$recipe" ] || refuse "Ignition imports $found, and the recipe is mounted at $recipe"
seen=$(sha256sum "$recipe" | cut -d ' ' -f 1)
[ "$seen" = "$wanted" ] || refuse "$recipe is not $state: sha256 $seen, expected $wanted"
echo "checked: recipe $recipe is $state, sha256 $seen"

exec "$@"
