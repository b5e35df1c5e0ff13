# Questions about a checkpoint on a node, answered from names and inodes: no file is opened but the ledger and the seal.
# Each answer ends with the line `//done`, so that one cut short is known. No path below a folder holds `//`, and no line
# of a ledger or seal starts with it, so the marks cannot be taken for a name, whatever the names are.

# tree_existing PATH: the path, or its nearest parent that exists.
tree_existing() {
    tree_path=$1
    while [ ! -e "$tree_path" ] && [ -n "$tree_path" ]; do
        tree_path=${tree_path%/*}
    done
    printf '%s' "${tree_path:-/}"
}

# tree_files FOLDER FIND-OPTION: type, inode, bytes, 512-byte blocks, mtime, ctime and path of each entry that is no folder.
tree_files() {
    [ -d "$1" ] || return 0
    find "$2" "$1/" -mindepth 1 ! -type d -printf '//%y\t%i\t%s\t%b\t%T@\t%C@\t%P\n'
}

# tree_text NAME FILE: the file's lines below a mark, nothing when it is not there. A folder cannot be read, and a pipe never ends.
tree_text() {
    printf '//%s\n' "$1"
    if [ -e "$2" ] && [ ! -f "$2" ] && [ "$2" != /dev/null ]; then
        printf 'not a file: %s\n' "$2" >&2
        return 1
    fi
    [ ! -e "$2" ] || cat "$2" || return
    printf '\n'
}

# ask_tree FOLDER LEDGER SEAL: filesystem id, the files of the folder, then what ledger and seal say.
ask_tree() {
    printf 'tree 1\nfs %s\n' "$(stat -f -c %i "$(tree_existing "$1")")"
    tree_files "$1" -P || return
    tree_text ledger "$2" || return
    tree_text seal "$3" || return
    printf '//done\n'
}

# ask_offer PATH [-P]: the files that a person offers; links are followed, as a Hub cache is made of them, or with -P they are not.
ask_offer() {
    [ -d "$1" ] || {
        printf 'no folder %s\n' "$1" >&2
        return 2
    }
    printf 'tree 1\nfs %s\n' "$(stat -f -c %i "$1")"
    tree_files "$1" "${2:--L}" || return
    printf '//ledger\n\n//seal\n\n//done\n'
}

# ask_disk PATH: the filesystem that PATH is or would be on, and the bytes that we may still write there.
ask_disk() {
    disk_at=$(tree_existing "$1")
    disk_facts=$(stat -f -c '%i %a %S' "$disk_at") || return
    disk_blocks=${disk_facts#* }
    printf 'disk 1\nfs %s\navailable %s\nat %s\n//done\n' \
        "${disk_facts%% *}" "$((${disk_blocks% *} * ${disk_blocks#* }))" "$disk_at"
}

# ask_kept FOLDER: its filesystem and the bytes free there, the bytes that it holds, and the names of the folders beside it.
ask_kept() {
    kept_disk=$(ask_disk "$1") || return
    kept_used=0
    [ ! -d "$1" ] || kept_used=$(timeout 30 du -s -B1 "$1" 2>/dev/null) || kept_used=unknown
    printf 'kept 1\n%s\nused %s\n' "$(printf '%s' "$kept_disk" | sed -e 1d -e '/^\/\/done$/d')" "${kept_used%%[!0-9a-z]*}"
    [ ! -d "${1%/*}" ] || find "${1%/*}" -mindepth 1 -maxdepth 1 -type d ! -name "${1##*/}" -printf 'beside %f\n' 2>/dev/null
    printf '//done\n'
}
