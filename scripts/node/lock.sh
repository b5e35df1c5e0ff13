# Takes the node's lock, says "held" and keeps it until the guard ends us.
# usage: sh lock.sh ROOT WAIT_SECONDS DETAILS    status 75: somebody else holds it, and their details are printed
case $1 in
  '<discovered: home>'*) root=$HOME${1#'<discovered: home>'} ;;
  *) root=$1 ;;
esac
mkdir -p "$root" || exit 1
exec 9>>"$root/lock" || exit 1
if ! flock -w "$2" 9; then
  cat "$root/lock.holder" 2>/dev/null
  exit 75
fi
printf '%s\n' "$3" >"$root/lock.holder.new" && mv "$root/lock.holder.new" "$root/lock.holder" || exit 1
echo held
exec sleep infinity
