"""The lab's stand-in for the maker of a rank's sparse Engram copy: SOURCE TARGET LAYER:FIRST:BEHIND …

The files have the shards' sizes and headers; of the lab's tiny tables every byte stands for a row, and all of them are copied and compared.
"""

import json
import struct
import sys
from pathlib import Path


def main() -> int:
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    ranges = {
        layer: [int(first), int(behind)]
        for layer, first, behind in (word.split(":") for word in sys.argv[3:])
    }
    if any(first >= behind for first, behind in ranges.values()):
        print("an empty range", file=sys.stderr)
        return 2
    placed = json.loads((source / "model.safetensors.index.json").read_text())["weight_map"]
    checked = wrong = 0
    for shard in sorted(
        {placed[f"layers.{layer}.engram.embed.{part}"] for layer in ranges for part in ("weight", "scale")}
    ):
        whole = (source / shard).read_bytes()
        (length,) = struct.unpack("<Q", whole[:8])
        with (target / shard).open("wb") as file:
            file.truncate(len(whole))
            file.write(whole)
        copied = (target / shard).read_bytes()
        checked += len(whole) - 8 - length
        wrong += sum(one != other for one, other in zip(whole, copied, strict=True))
    (target / "model.safetensors.index.json").write_text(
        (source / "model.safetensors.index.json").read_text()
    )
    (target / "engram-local.json").write_text(json.dumps({"source": str(source), "layers": ranges}, indent=1))
    print(f"verify: {checked} rows checked, {wrong} mismatches; elapsed 0s", flush=True)
    return 1 if wrong else 0


sys.exit(main())
