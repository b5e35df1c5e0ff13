# Questions about jobs on a node. Uses tree_existing and tree_text of tree.sh.

# ask_job SEAL BEGUN OUTPUT…: the age of the first record in seconds, the two records, then a line for each output: its filesystem, then what lies there.
ask_job() {
    job_age=$(($(date +%s) - $(stat --format %Y -- "$1" 2>/dev/null || echo 0)))
    printf 'job 1 %s\n' "$job_age"
    tree_text seal "$1" || return
    tree_text begun "$2" || return
    shift 2
    printf '//made\n'
    for job_output do
        if ! job_seen=$(stat --format '%F|%i|%s|%b|%.9Y|%.9Z' -- "$job_output" 2>&1); then
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
