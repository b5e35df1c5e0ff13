# Questions to a node, answered without changing anything on it. POSIX sh, sent whole over `sh -s`.
#
# sparkyard appends a function that calls `answers_open`, one `ask` a question, and `answers_close`, and calls it last:
# a text that was cut on its way runs nothing. The answer is one JSON document; its last key is "end", so that an
# answer that was cut on its way back is known as such:
#
#   {"version":1,"node":NAME,"home":HOME,"answers":[{"id":N,"out":BASE64,"status":S,"err":BASE64}, …],"end":true}
#
# Every program that can hang has its own time limit (status 124), so that one of them does not hang all questions.
# Forks are what this costs, so many small files are read by one grep.

set -u
export LC_ALL=C
: "${HOME:=/}"
newline='
'

# limited SECONDS WORDS…: status 124 when the time is over. In the foreground, so that ending our group ends it too.
limited() {
    limited_seconds=$1
    shift
    timeout --foreground --kill-after=2 "$limited_seconds" "$@"
}

# json_text TEXT: the inside of a JSON string.
json_text() {
    case $1 in
    *[\"\\]*) printf '%s' "$1" | sed 's/["\\]/\\&/g' ;;
    *) printf '%s' "$1" ;;
    esac
}

answers_open() {
    read -r answers_node </proc/sys/kernel/hostname
    exec 3>&1
    answers_comma=
    printf '{"version":1,"node":"%s","home":"%s","answers":[' "$(json_text "$answers_node")" "$(json_text "$HOME")"
}

answers_close() {
    printf '],"end":true}\n'
}

# ask N FUNCTION ARGUMENTS…: its output streams out as base64; its status travels behind the last newline of its errors.
ask() {
    printf '%s{"id":%s,"out":"' "$answers_comma" "$1"
    answers_comma=,
    shift
    for ask_word do
        shift
        case $ask_word in
        '<discovered: home>'*) ask_word=$HOME${ask_word#'<discovered: home>'} ;;
        esac
        set -- "$@" "$ask_word"
    done
    ask_errors=$({ { "$@" </dev/null; printf '\n%s' "$?" >&2; } | base64 -w 0 >&3; } 2>&1)
    printf '","status":%s,"err":"' "${ask_errors##*"$newline"}"
    ask_errors=${ask_errors%"$newline"*}
    [ -z "$ask_errors" ] || printf '%s' "$ask_errors" | base64 -w 0
    printf '"}'
}

# section NAME WORDS…: the output between a line `@@ NAME` and a line `@@ = STATUS`.
section() {
    printf '@@ %s\n' "$1"
    shift
    "$@"
    printf '\n@@ = %s\n' "$?"
}

# ask_system: kernel, memory, addresses, listening ports, GPUs, Docker and RDMA devices, in sections.
ask_system() {
    section files system_files
    section netdevs system_netdevs
    section machine uname -m
    section user id
    section tools system_tools
    section addresses system_addresses
    section listening system_listening
    section grub grep -sh GRUB_CMDLINE /etc/default/grub /etc/default/grub.d/*.cfg
    section gpus system_gpus
    section compute system_compute
    section docker system_docker
}

# `path:line` of each file. Empty GID slots are left out; their types cannot be read, which -s keeps quiet.
system_files() {
    grep -asHv '^0000:0000:0000:0000:0000:0000:0000:0000$' \
        /proc/sys/kernel/hostname /proc/sys/kernel/osrelease /proc/sys/kernel/random/boot_id \
        /proc/sys/kernel/io_uring_disabled /proc/sys/net/ipv4/ip_local_port_range \
        /proc/uptime /proc/meminfo /proc/cmdline /proc/driver/nvidia/version /sys/devices/system/cpu/online \
        /sys/class/net/*/mtu /sys/class/net/*/operstate \
        /sys/class/infiniband/*/ports/*/state /sys/class/infiniband/*/ports/*/rate \
        /sys/class/infiniband/*/ports/*/gids/* \
        /sys/class/infiniband/*/ports/*/gid_attrs/types/* /sys/class/infiniband/*/ports/*/gid_attrs/ndevs/*
}

# The network interfaces of each RDMA device, also of those without an address.
system_netdevs() {
    for system_netdev in /sys/class/infiniband/*/device/net/*; do
        [ ! -e "$system_netdev" ] || printf '%s\n' "$system_netdev"
    done
}

system_tools() {
    for system_tool in docker ip nvidia-container-runtime-hook nvidia-ctk nvidia-smi openssl ping python3 rsync ss; do
        command -v "$system_tool"
    done
    return 0
}

# JSON of iproute2 where it is there; else the kernel's own tables, which name addresses and routes.
system_addresses() {
    if command -v ip >/dev/null; then
        ip -json address
    else
        grep -sH '' /proc/net/route /proc/net/fib_trie
    fi
}

system_listening() {
    if command -v ss >/dev/null; then
        ss -Hltnp
    else
        grep -sh ' 0A ' /proc/net/tcp /proc/net/tcp6
    fi
}

system_gpus() {
    command -v nvidia-smi >/dev/null || return 127
    limited 8 nvidia-smi -L
}

# Processes on the GPU, a line each, and the control group of each, which names its container.
system_compute() {
    command -v nvidia-smi >/dev/null || return 127
    system_found=$(limited 8 nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv,noheader) || return
    printf '%s\n' "$system_found"
    IFS=$newline
    for system_process in $system_found; do
        system_pid=${system_process%%,*}
        case $system_pid in
        '' | *[!0-9]*) ;;
        *) [ ! -r "/proc/$system_pid/cgroup" ] || grep -H : "/proc/$system_pid/cgroup" ;;
        esac
    done
    return 0
}

system_docker() {
    limited 20 docker info --format '{"version":{{json .ServerVersion}},"runtimes":{{json .Runtimes}},"errors":{{json .ServerErrors}},"driver":{{json .Driver}},"root":{{json .DockerRootDir}}}'
}

# ask_file PATH hash|content: type, mode and size; then the sha256, or the content as base64 when it is asked for and small.
ask_file() {
    file_facts=$(stat --dereference --format '%F|%a|%s' -- "$1") || return
    printf '%s\n' "$file_facts"
    case $file_facts in
    regular*) ;;
    *) return 0 ;;
    esac
    if [ "$2" = content ] && [ "${file_facts##*|}" -le 65536 ]; then
        printf 'content '
        limited 8 base64 -w 0 -- "$1"
    else
        limited 60 sha256sum <"$1"
    fi
}

# ask_folder PATH: type and mode, and whether we may write there.
ask_folder() {
    stat --dereference --format '%F|%a|%U' -- "$1" || return
    [ ! -w "$1" ] || printf 'writable\n'
}

image_format='{"id":{{json .Id}},"labels":{{json .Config.Labels}},"layers":{{json .RootFS.Layers}},"architecture":{{json .Architecture}},"digests":{{json .RepoDigests}},"size":{{json .Size}}}'

# images_know REFERENCE…: what `ask_image` answers for each, from one call. Where one of them is missing, each is asked for by itself.
images_found=$newline
images_know() {
    images_told=$(limited 8 docker image inspect --format "$image_format" "$@" 2>/dev/null) || return 0
    while IFS= read -r images_line && [ $# -gt 0 ]; do
        images_found="$images_found$1 $images_line$newline"
        shift
    done <<EOF
$images_told
EOF
}

# ask_image REFERENCE
ask_image() {
    case $images_found in
    *"$newline$1 "*)
        image_line=${images_found#*"$newline$1 "}
        printf '%s\n' "${image_line%%"$newline"*}"
        return
        ;;
    esac
    limited 20 docker image inspect --format "$image_format" "$1"
}

# ask_containers: the records of containers that a kit's scripts started; a line for every container; the details of ours.
ask_containers() {
    containers_records=$HOME/.local/state/sparkyard/started
    [ ! -d "$containers_records" ] || cat -- "$containers_records"/* 2>/dev/null
    containers_listed=$(limited 20 docker ps --all --no-trunc --format '{{.ID}}|{{.State}}|{{.Names}}|{{.Image}}|{{.Label "sparkyard.lane"}}') || return
    [ -n "$containers_listed" ] || return 0
    printf '%s\n' "$containers_listed"
    IFS=$newline
    set --
    for containers_line in $containers_listed; do
        containers_name=${containers_line#*|*|}
        containers_name=${containers_name%%|*}
        case $containers_line in
        *'|') [ ! -f "$containers_records/$containers_name" ] || set -- "$@" "${containers_line%%|*}" ;;
        *) set -- "$@" "${containers_line%%|*}" ;;
        esac
    done
    [ $# -eq 0 ] || limited 20 docker inspect --type container --format '{"id":{{json .Id}},"name":{{json .Name}},"state":{{json .State}},"restarts":{{json .RestartCount}},"labels":{{json .Config.Labels}},"image":{{json .Config.Image}},"image_id":{{json .Image}}}' "$@"
}

# ask_clone FOLDER: the commit that is checked out there, then the tracked files that differ from it.
ask_clone() {
    command -v git >/dev/null || return 127
    [ -d "$1/.git" ] || return 2
    git --git-dir="$1/.git" rev-parse --verify HEAD^0 &&
        limited 20 git --git-dir="$1/.git" --work-tree="$1" status --porcelain --untracked-files=no
}

# ask_ssh TARGET: whether plain ssh, as other programs type it, gets there without a question.
ask_ssh() {
    limited 20 ssh -n -o BatchMode=yes -o ConnectTimeout=8 "$1" true
}

# ask_ping ADDRESS SIZE: one unfragmented packet of SIZE bytes there and back; when it fails, a small one.
ask_ping() {
    command -v ping >/dev/null || return 127
    section large limited 4 ping -n -q -M do -s "$2" -c 1 -w 2 "$1" && return
    section small limited 4 ping -n -q -c 1 -w 2 "$1"
}
