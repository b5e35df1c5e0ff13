#!/bin/sh
# verify_kit.sh --kit DIR MODEL: the lab's stand-in for the kernel kit's own check. It compares every row of DIR/MANIFEST for real.
set -eu
[ "$1" = --kit ] && [ -f "$3/config.json" ]
kit=$2 ok=0 bad=0
while read -r sha bytes _ _ path; do
  case $sha in "#"*) continue ;; esac
  if [ "$(stat -c %s "$kit/$path")" = "$bytes" ] && [ "$(sha256sum < "$kit/$path" | cut -c1-64)" = "$sha" ]; then
    ok=$((ok + 1))
  else
    bad=$((bad + 1))
    echo "DIFFERS: $path"
  fi
done < "$kit/MANIFEST"
echo "verify_kit: $ok of $((ok + bad)) files match MANIFEST"
[ $bad = 0 ]
