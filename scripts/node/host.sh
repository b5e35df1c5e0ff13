# Questions about what sparkyard never changes on a node: its kernel, its settings, its services.

# ask_read FILE: the text of a small file.
ask_read() {
    limited 5 head -c 65536 -- "$1"
}

# ask_sha256 FILE: what its whole content hashes to, before its name.
ask_sha256() {
    limited 60 sha256sum -- "$1"
}

# ask_getconf NAME: a configuration value of the system; status 2 for a name that it does not know.
ask_getconf() {
    command -v getconf >/dev/null || return 127
    limited 5 getconf -- "$1"
}

# ask_unit UNIT: the state of a systemd unit; status 4 when there is no such unit, 127 without systemd.
ask_unit() {
    [ -d /run/systemd/system ] && command -v systemctl >/dev/null || return 127
    limited 8 systemctl is-active -- "$1"
}
