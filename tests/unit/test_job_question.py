"""What a node says of a job's outputs while the job goes on and replaces them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts" / "node"
VANISHING = """
tree_existing() {
    printf '%s' "$1"
    rm -f -- "$OUTPUT"
}
"""
"""The file is gone as soon as its place was found."""


def test_a_file_that_is_replaced_while_it_is_looked_at_still_has_a_filesystem(tmp_path: Path) -> None:
    output = tmp_path / "rows-0.bin"
    output.write_bytes(b"12345")
    asked = f'OUTPUT={output}; ask_job {tmp_path}/none {tmp_path}/none2 "$OUTPUT"'
    text = "\n".join([(SCRIPTS / "tree.sh").read_text(), (SCRIPTS / "jobs.sh").read_text(), VANISHING, asked])
    done = subprocess.run(["sh", "-s"], input=text, capture_output=True, text=True, check=True)
    line = done.stdout.splitlines()[-2]
    assert re.fullmatch(r"[0-9a-f]+\|regular( empty)? file\|\d+\|5\|.*", line), done.stdout + done.stderr
