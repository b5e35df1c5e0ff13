# Questions about jobs on a node. Uses limited of facts.sh, tree_existing and tree_text of tree.sh.

# ask_job SEAL BEGUN OUTPUT…: the age of the first record in seconds, the two records, then a line for each output: its filesystem, then what lies there.
ask_job() {
    job_age=$(($(date +%s) - $(stat --format %Y -- "$1" 2>/dev/null || echo 0)))
    printf 'job 1 %s\n' "$job_age"
    tree_text seal "$1" || return
    tree_text begun "$2" || return
    shift 2
    printf '//made\n'
    for job_output do
        if ! job_seen=$(stat --format '%F|%i|%s|%b|%.9Y|%.9Z|%h' -- "$job_output" 2>&1); then
            case $job_seen in
            *'No such file or directory'*) job_seen=missing ;;
            *)
                printf '%s\n' "$job_seen" >&2
                return 1
                ;;
            esac
        fi
        # of its folder, which stays: a job that goes on may replace the file meanwhile
        printf '%s|%s\n' "$(stat -f -c %i "$(tree_existing "${job_output%/*}")")" "$job_seen"
    done
    printf '//done\n'
}

# written_files BEGUN PLACE…: device, inode, 512-byte blocks and bytes of each file below the places that was written after BEGUN; `closed` for
# a folder that we may not look into. What vanishes meanwhile is none. Files on other filesystems below a place take none of its room.
written_files() {
    written_after=$1
    shift
    for written_place do
        shift
        [ ! -d "$written_place" ] || set -- "$@" "$written_place/"
    done
    [ "$#" -gt 0 ] || return 0
    limited 20 find -P "$@" -xdev -type d \( ! -readable -o ! -executable \) -printf 'closed\n' -prune \
        -o -type f -newer "$written_after" -printf '%D %i %b %s\n' 2>/dev/null
}

# ask_written BEGUN PLACE…: when a job was begun (the time of its record), filesystem and device of each place, and what was written below them
# since: by device, the bytes that it takes there and the bytes of content. A file counts once, however many names it has, and holes do not.
# A record from the future, of a clock that was put back since, tells nothing.
ask_written() {
    written_begun=$1
    shift
    written_since=none
    [ ! -f "$written_begun" ] || written_since=$(stat --format %.9Y -- "$written_begun") || return
    [ "$written_since" = none ] || [ "${written_since%.*}" -le "$(date +%s)" ] || written_since=none
    printf 'written 1\nsince %s\n' "$written_since"
    for written_place do
        written_at=$(tree_existing "$written_place")
        printf 'place %s %s\n' "$(stat -f -c %i "$written_at")" "$(stat -c %d "$written_at")"
    done
    if [ "$written_since" != none ]; then
        written_found=$(written_files "$written_begun" "$@")
        [ "$?" -lt 124 ] || return 124
        printf '%s\n' "$written_found" | awk '
            $1 == "closed" { closed = 1 }
            NF == 4 && !seen[$1, $2]++ { taken = $3 * 512; held[$1] += taken; content[$1] += $4 < taken ? $4 : taken }
            END { for (device in held) printf "held %s %.0f %.0f\n", device, held[device], content[device]; if (closed) print "closed" }'
    fi
    printf '//done\n'
}
