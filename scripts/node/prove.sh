# Reads files on a node and compares their content with what it must be. POSIX sh, GNU coreutils.
# usage: sh -c THIS sparkyard-prove PYTHON FOLDER LEDGER SEAL, with the work on standard input:
#   HOW <tab> DIGEST <tab> SIZE <tab> PATH <tab> ORIGIN     HOW: hold, read, arrived, offered
#   shards <tab> - <tab> 0 <tab> PATTERN <tab>                what an index names and PATTERN fits must be among the PATHs
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

# header_fault FILE: how far a safetensors file's header is from ending the file, in words.
header_fault() {
    header_size=$(stat -L -c %s "$1") || return 0
    header_length=$(od -An -tu8 -N8 "$1") || return 0
    header_length=$(printf %s "$header_length" | tr -d ' ')
    if [ "${#header_length}" -gt 9 ] || [ "${header_length:-0}" -lt 2 ] || [ "$((8 + header_length))" -gt "$header_size" ]; then
        printf 'does not begin as a safetensors file'
        return 0
    fi
    header_end=$(tail -c +9 "$1" | head -c "$header_length" | tr -d ' \t' | grep -o '"data_offsets":\[[0-9]*,[0-9]*\]' |
        sed 's/.*,//; s/\]//' | sort -n | tail -n 1)
    header_off=$((8 + header_length + ${header_end:-0} - header_size))
    if [ "$header_off" -gt 0 ]; then
        printf 'is %s bytes short' "$header_off"
    elif [ "$header_off" -lt 0 ]; then
        printf 'is %s bytes too long' "$((-header_off))"
    fi
}

# absent INDEX: the shards that it names, a pattern fits, and nobody asked to be here.
absent() {
    absent_folder=$(dirname "$1")
    tr -d '\n' <"$folder/$1" | sed 's/.*"weight_map"//' | grep -o '"[^"]*\.safetensors"' | tr -d '"' | sort -u |
        while read -r absent_name; do
            [ "$absent_folder" = . ] || absent_name=$absent_folder/$absent_name
            absent_known=$(cut -f 4 "$todo" | grep -cxF "$absent_name")
            [ "$absent_known" -eq 0 ] || continue
            while IFS= read -r absent_pattern; do
                # shellcheck disable=SC2254
                case $absent_name in $absent_pattern) printf 'absent\t%s\t%s\n' "$1" "$absent_name" && break ;; esac
            done <"$patterns"
        done
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
    fault=
    case $path in
    *.safetensors) fault=$(header_fault "$file") ;;
    esac
    [ -z "$fault" ] || printf 'header\t%s\t%s\n' "$path" "$fault"
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
    elif [ -n "$fault" ]; then
        printf 'broken\t%s\t%s\n' "$path" "$fault"
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
patterns=$todo.patterns
trap 'rm -f "$todo" "$patterns"' EXIT
: >"$patterns"
while IFS=$tab read -r how want size path origin && [ "$how" != seal ]; do
    [ "$how" != shards ] || { printf '%s\n' "$path" >>"$patterns" && continue; }
    printf '%s\t%s\t%s\t%s\t%s\n' "$how" "$want" "$size" "$path" "$origin" >>"$todo"
done
while IFS=$tab read -r how want size path origin; do
    [ "$how" = hold ] || { [ "$how" = offered ] && held; } || prove </dev/null
done <"$todo"
left=$(while IFS=$tab read -r how want size path origin; do held || printf '%s\n' "$path"; done <"$todo" | sort -u | wc -l)
held_broken=$(while IFS=$tab read -r how want size path origin; do
    case $how:$path in
    hold:*.safetensors)
        fault=$([ ! -f "$folder/$path" ] || header_fault "$folder/$path")
        [ -z "$fault" ] || printf 'broken\t%s\t%s\n' "$path" "$fault"
        ;;
    esac
done <"$todo")
if [ -n "$held_broken" ]; then
    printf '%s\n' "$held_broken"
    left=$((left + 1))
fi
lost=$(cut -f 4 "$todo" | grep '\.safetensors\.index\.json$' | while IFS= read -r path; do [ ! -f "$folder/$path" ] || absent "$path"; done)
if [ -n "$lost" ]; then
    printf '%s\n' "$lost"
    left=$((left + 1))
fi
if [ "$left" -eq 0 ]; then
    cat >"$todo" && sync "$todo" && chmod 644 "$todo" && mv -f "$todo" "$seal" || exit
    rm -rf "$incoming"
    printf 'sealed\n'
else
    printf 'unsealed\t%s\n' "$left"
fi
printf 'end\n'
