#!/bin/sh
# pack.sh RANK BYTES FAULT: makes /out/rows-RANK.bin, in the way that FAULT says.
set -e
trap 'echo "told to end"; exit 143' TERM
echo "packing rank $1, token ${TOKEN:-none}"
case $3 in
fail-"$1")
    head -c 10 /dev/zero >"/out/rows-$1.bin"
    while [ ! -e /out/go ]; do sleep 0.1; done
    echo "rank $1 met a bad row"
    exit 3
    ;;
once-"$1")
    if [ ! -e /out/cache ]; then
        head -c 602112 /dev/zero >/out/cache
        echo "rank $1 met a bad row, and leaves what it has"
        exit 3
    fi
    ;;
wait | fail-*)
    head -c 10 /dev/zero >"/out/rows-$1.bin"
    while [ ! -e /out/go ]; do sleep 0.1; done
    ;;
deaf)
    trap '' TERM
    while [ ! -e /out/go ]; do sleep 0.1; done
    ;;
esac
head -c "$2" /dev/zero >"/out/rows-$1.bin"
[ "$3" = short ] && head -c 10 /dev/zero >"/out/rows-$1.bin"
[ "$3" = mute ] || echo "packed $2 bytes"
