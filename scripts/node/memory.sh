# Runs "$@" and watches this node's memory meanwhile. When less than KIB of it are available, a line on standard error says so and
# CONTAINER is killed, if it is ours. With CONTAINER '' the words are killed, and with them everything in their process group.
# The watching ends with the words, and with the connection. usage: sh memory.sh KIB CONTAINER WORDS...
limit=$1
container=$2
shift 2

# By its id, so that nothing else is hit which gets its name later. Where Docker does not tell it, nothing is run: it would be unwatched.
if [ -n "$container" ]; then
  id=$(docker container inspect --format '{{if index .Config.Labels "sparkyard.lane"}}{{.Id}}{{end}}' "$container") || exit
  [ -n "$id" ] || exec "$@"
fi

# Sets $available to KiB; empty where it cannot be read, which is no reason to kill.
look() {
  available=
  while read -r name value _; do
    case $name in MemAvailable:) available=$value ;; esac
  done </proc/meminfo
  case $available in *[!0-9]*) available= ;; esac
}

end() {
  [ -n "$container" ] || kill -KILL 0 # the guard around us is in another group and hands the status on
  said=$(timeout --foreground --kill-after=2 20 docker kill --signal KILL "$id" 2>&1)
  case $? in
  0) exit ;;
  124 | 137) said='Docker did not answer within 20 s' ;;
  esac
  case $said in
  *'is not running'* | *'o such container'*) exit ;;
  esac
  printf '\nsparkyard-memory kept %s\n' "$(printf %s "$said" | tr '\n' ' ')" >&2
}

watch() {
  trap 'kill "$pause" 2>/dev/null; exit' TERM
  while :; do
    look
    if [ -n "$available" ] && [ "$available" -lt "$limit" ]; then
      printf '\nsparkyard-memory low %s\n' "$available" >&2
      end
    fi
    sleep 0.5 >/dev/null 2>&1 &
    pause=$!
    wait "$pause"
  done
}

watch &
watcher=$!
"$@"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
