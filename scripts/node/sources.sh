# Questions about git sources on a node.

# ask_git CLONE COMMIT: status 0 when the bare clone has the whole commit, 1 when not, 127 where there is no git.
ask_git() {
    command -v git >/dev/null || return 127
    limited 8 git --git-dir="$1" cat-file -e "$2^{tree}" 2>/dev/null || return 1
}
