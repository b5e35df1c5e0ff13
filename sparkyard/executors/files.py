"""Writes a file on a node: a whole new file beside the old one, synced, then renamed over it."""

from __future__ import annotations

from sparkyard.actions import WriteFile
from sparkyard.actions_job import RemoveFiles
from sparkyard.command import Command
from sparkyard.errors import StepFailed
from sparkyard.world import World, must

SCRIPT = """
set -eu
path=$1 mode=$2 bytes=$3
umask "$4"
folder=$(dirname -- "$path")
mkdir -p -- "$folder"
new=$folder/.$(basename -- "$path").sparkyard-new
trap 'rm -f -- "$new"' EXIT
rm -f -- "$new"
dd of="$new" bs=65536 conv=fsync 2>/dev/null
got=$(wc -c < "$new")
if [ "$got" -ne "$bytes" ]; then echo "only $got of $bytes bytes arrived" >&2; exit 1; fi
chmod -- "$mode" "$new"
if [ -d "$path" ]; then echo "$path is a folder" >&2; exit 1; fi
mv -f -- "$new" "$path"
sync -- "$folder" 2>/dev/null || true
"""
"""Reads the content from standard input (sh): $1 path, $2 octal mode, $3 bytes, $4 umask for the file and new folders.

The name of the new file is always the same, so that what a killed run left is overwritten by the next (the node's lock is held).
"""


def write_file(action: WriteFile, node: str, world: World) -> None:
    """Write the file atomically; nobody else can read a secret one at any moment. Raises StepFailed."""
    umask = "022" if action.mode & 0o077 else "077"
    words = (
        "sh",
        "-c",
        SCRIPT,
        "sparkyard-write",
        action.path,
        f"{action.mode:04o}",
        str(len(action.content)),
        umask,
    )
    must(world.shell(node), Command(words, stdin=action.content, timeout=120), f"writing {action.path}")


def remove_files(action: RemoveFiles, node: str, world: World) -> None:
    """Remove the files; one that is gone already is fine. Raises StepFailed, with the line to type, for one that must not be removed."""
    command = Command(("rm", "-f", "--", *action.paths), timeout=600)
    done = world.shell(node).run(command)
    if done.status != 0:
        raise StepFailed(
            f"{action.paths[0]} could not be removed",
            node=node,
            details=done.last_lines(),
            next_step=f"on {node}: sudo {command.line()}",
        )
