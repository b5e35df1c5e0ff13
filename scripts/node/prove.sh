# Reads files on a node and compares their content with what it must be. POSIX sh, GNU coreutils.
# usage: sh -c THIS sparkyard-prove PYTHON FOLDER LEDGER SEAL, with the work on standard input:
#   HOW <tab> DIGEST <tab> SIZE <tab> PATH <tab> ORIGIN     HOW: hold, read, arrived, offered
#   seal                                                    then the seal's text to the end
# See prove.py, which does the work wherever there is python3: it reads on all cores. What follows is the same, one by one.
set -u
export LC_ALL=C
umask 022
python=$1 folder=$2 ledger=$3 seal=$4
mkdir -p "$folder" "${ledger%/*}" || exit
fs=$(stat -f -c %i "$folder") || exit
if python3 -I -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
    exec python3 -I -X utf8 -c "$python" "$folder" "$ledger" "$seal" "$fs"
fi

tab=$(printf '\t')
incoming=$folder/.incoming
total=0
touch "$ledger" || exit

if command -v openssl >/dev/null; then
    tool=openssl
    sum() { openssl dgst -r "-$1"; }
else
    tool=sha256sum
    sum() { "${1}sum"; }
fi
printf 'tool\t%s\n' "$tool"

# digest_of KIND FILE SIZE
digest_of() {
    case $1 in
    sha256) hash=$(sum sha256 <"$2") || return ;;
    *) hash=$({ printf 'blob %s\0' "$3" && cat "$2"; } | sum sha1) || return ;;
    esac
    printf '%s:%s' "$1" "${hash%% *}"
}

# key FILE: filesystem, inode, size, mtime and ctime in nanoseconds, as the ledger has them.
key() {
    [ -f "$1" ] || return
    stat -c "$fs$tab%i$tab%s$tab%.9Y$tab%.9Z" "$1" | tr -d .
}

record() {
    printf '%s\t%s\n' "$(key "$1")" "$2" >>"$ledger"
}

# place FILE PATH: give a proven file its name.
place() {
    mkdir -p "$(dirname "$folder/$2")" && sync "$1" && mv -f "$1" "$folder/$2"
}

# offered FILE PATH: link it to where it is to be, or copy and prove the copy.
offered() {
    mkdir -p "$(dirname "$incoming/$2")"
    rm -f "$incoming/$2"
    if ln -L "$1" "$incoming/$2" 2>/dev/null; then
        printf 'linked\t%s\t%s\n' "$2" "$1"
    else
        cp "$1" "$incoming/$2" || return
        [ "$(digest_of "${want%%:*}" "$incoming/$2" "$size")" = "$want" ] || return
        printf 'copied\t%s\t%s\n' "$2" "$1"
    fi
    place "$incoming/$2" "$2"
}

# prove: reads $how $want $size $path $origin.
prove() {
    case $how in
    read) file=$folder/$path ;;
    arrived) file=$incoming/$path ;;
    offered) file=$origin ;;
    esac
    if [ "$how" != offered ] && [ -h "$file" ] || ! before=$(key "$file"); then
        [ "$how" = offered ] || printf 'missing\t%s\n' "$path"
        return 0
    fi
    seen=$(digest_of "${want%%:*}" "$file" "$size") || exit
    total=$((total + size))
    printf 'progress\t%s\n' "$total"
    if [ "$before" != "$(key "$file")" ]; then
        printf 'changed\t%s\n' "$path"
    elif [ "$seen" != "$want" ]; then
        case $how in
        offered) printf 'unfit\t%s\t%s\n' "$path" "$seen" ;;
        *) printf 'damaged\t%s\t%s\n' "$path" "$seen" && rm -f "$file" "$seal" ;;
        esac
    else
        case $how in
        arrived) place "$file" "$path" ;;
        offered) offered "$file" "$path" ;;
        esac || exit
        record "$folder/$path" "$want"
        printf 'proven\t%s\n' "$path"
    fi
}

# held: whether the ledger says that the file in its place is right.
held() {
    now=$(key "$folder/$path") && grep -qxF "$now$tab$want" "$ledger"
}

todo=$(mktemp "$ledger.XXXXXX") || exit
trap 'rm -f "$todo"' EXIT
while IFS=$tab read -r how want size path origin && [ "$how" != seal ]; do
    printf '%s\t%s\t%s\t%s\t%s\n' "$how" "$want" "$size" "$path" "$origin" >>"$todo"
done
while IFS=$tab read -r how want size path origin; do
    [ "$how" = hold ] || { [ "$how" = offered ] && held; } || prove </dev/null
done <"$todo"
left=$(while IFS=$tab read -r how want size path origin; do held || printf '%s\n' "$path"; done <"$todo" | sort -u | wc -l)
if [ "$left" -eq 0 ]; then
    cat >"$todo" && sync "$todo" && chmod 644 "$todo" && mv -f "$todo" "$seal" || exit
    rm -rf "$incoming"
    printf 'sealed\n'
else
    printf 'unsealed\t%s\n' "$left"
fi
printf 'end\n'
