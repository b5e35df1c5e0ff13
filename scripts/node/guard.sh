# Runs "$@" in a session of its own and ends all of it when our standard input ends: when the other side closes it on
# purpose (time limit, interrupt), and also when the other side is killed or the connection breaks.
# usage: sh guard.sh BYTES WORDS...   The first BYTES bytes of standard input are base64 for the command's own input.
bytes=$1
shift
payload=$(head -c "$bytes")
exec 3<&0 </dev/null
if [ "$bytes" -gt 0 ]; then
  printf %s "$payload" | base64 -d | setsid "$@" 3<&- &
else
  setsid "$@" 3<&- &
fi
child=$!
payload=
{
  cat <&3
  kill -TERM "-$child" || kill -TERM "$child" # it has no session of its own before setsid ran
  sleep 2
  kill -KILL "-$child"
} >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait "$child"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
