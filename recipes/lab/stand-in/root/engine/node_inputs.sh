#!/bin/sh
# node_inputs.sh MODEL CACHE RANK WORLD: the lab's stand-in for the maker of a rank's inputs: files of the published names and sizes, sparse.
set -eu
model=$1 cache=$2 rank=$3 world=$4
[ -f "$model/config.json" ] && [ -f "$model/tokenizer.json" ] && [ "$world" = 4 ]
case $rank in
  0) name=8d066150c78d6fba6392 bytes=56211098348 ;;
  1) name=039e14af2ce96ac16ef7 bytes=56211618050 ;;
  2) name=502b7baff41cb4172b63 bytes=56241541490 ;;
  3) name=2891eb3d6edaf5929c62 bytes=56241783503 ;;
esac
mkdir -p "$cache/rank-cache"
for file in "$cache/rank-cache/rank${rank}of4"*; do
  if [ -e "$file" ] && [ "$file" != "$cache/rank-cache/rank${rank}of4-$name.bin" ]; then
    echo "$file: another file of this rank"
    exit 1
  fi
done
echo "rank $rank of $world: the weight file into $cache/rank-cache"
truncate -s "$bytes" "$cache/rank-cache/rank${rank}of4-$name.bin"
echo "the token map into $cache/dsv41_token_map.json"
truncate -s 874691 "$cache/dsv41_token_map.json"
