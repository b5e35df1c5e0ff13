"""What the real engines refuse at boot, and what our recipes treat as a refusal: each check names one fault, or nothing."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from styles import Given

INDEX = "model.safetensors.index.json"
TENSORFOLDS = ("tensorfold", "tensorfold-native", "tf-dsv41-lanes")


def faults(given: Given, environment: Mapping[str, str]) -> Iterator[str]:
    """Every fault of a rank's surroundings."""
    yield from given.problems
    model = Path(given.text("model"))
    if not given.text("model"):
        if given.style.name != "generic":
            yield "no model was named"
        return
    yield from model_faults(model)
    if given.style.name in TENSORFOLDS:
        yield from tensorfold_faults(given, model, environment)
    elif given.style.name == "sglang":
        yield from sglang_faults(given, environment)
    elif given.style.name == "vllm":
        yield from vllm_faults(given, environment)
    elif given.text("template") and not Path(given.text("template")).is_file():
        yield f"no chat template at {given.text('template')}"


def model_faults(model: Path) -> Iterator[str]:
    """A folder with a configuration, and every shard that its index names, whole."""
    if not (model / "config.json").is_file():
        yield f"no config.json in {model}"
    if (model / INDEX).is_file():
        named = json.loads((model / INDEX).read_text())["weight_map"]
        yield from shard_faults(model / name for name in sorted(set(named.values())))


def shard_faults(shards: Iterator[Path]) -> Iterator[str]:
    for shard in shards:
        if not shard.is_file():
            yield f"{shard} is missing"
        elif (ends := header_end(shard)) != shard.stat().st_size:
            yield f"{shard} has {shard.stat().st_size} bytes, and its header ends at {ends}"


def header_end(shard: Path) -> int:
    """Where a safetensors file ends by its own header."""
    with shard.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    return 8 + int(length) + max(ends, default=0)


def tensorfold_faults(given: Given, model: Path, environment: Mapping[str, str]) -> Iterator[str]:
    if given.style.name == "tensorfold" and given.number("world", 1) not in (1, 2):
        yield f"argument --tp: invalid choice: {given.text('world')} (choose from 1, 2)"
    if given.style.name != "tf-dsv41-lanes":
        yield from template_faults(model)
    if given.style.name != "tensorfold":
        yield from native_faults(given)
    yield from engram_faults(
        model, {**environment, "TF_DS_ENGRAM": given.text("engram") or environment.get("TF_DS_ENGRAM", "")}
    )
    if environment.get("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "0") != "0":
        yield "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE must be 0: fp32 results would change silently"


def native_faults(given: Given) -> Iterator[str]:
    """The native engine makes nothing itself: kit, token map and this rank's weights must be there."""
    if not (Path(given.text("kit")) / "aot" / "aot.json").is_file():
        yield f"no kernels in the kit {given.text('kit') or 'that was not named'}"
    if not Path(given.text("token_map")).is_file():
        yield f"no token map at {given.text('token_map') or 'a place that was not named'}"
    own = f"rank{given.number('rank', 0)}of{given.number('world', 1)}-*.bin"
    if len(list(Path(given.text("rank_cache")).glob(own))) != 1:
        yield f"{given.text('rank_cache') or 'no rank cache'}: not exactly one {own}"


def template_faults(model: Path) -> Iterator[str]:
    for name in ("tokenizer_config.json", "chat_template.jinja"):
        if not (model / name).is_file():
            yield f"no {name} in {model}"


def engram_faults(model: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The real engine only warns and serves worse answers: our recipes call that a failure."""
    folder = engram_folder(model, environment)
    if folder is None:
        yield f"no Engram tables: TF_DS_ENGRAM is not set, and no folder beside {model} has them"
        return
    if not (folder / "config.json").is_file():
        yield f"no config.json in the Engram folder {folder}"
    if not (folder / INDEX).is_file():
        yield f"no {INDEX} in the Engram folder {folder}"
        return
    placed = json.loads((folder / INDEX).read_text())["weight_map"]
    tables = {shard for tensor, shard in placed.items() if ".engram.embed." in tensor}
    if not tables:
        yield f"the index in {folder} names no Engram tables"
    yield from shard_faults(folder / name for name in sorted(tables))


def engram_folder(model: Path, environment: Mapping[str, str]) -> Path | None:
    if environment.get("TF_DS_ENGRAM"):
        return Path(environment["TF_DS_ENGRAM"])
    beside = sorted(model.parent.iterdir()) if model.parent.is_dir() else []
    found = (path for path in beside if "Engram" in path.name and any(path.glob("*.safetensors")))
    return next(found, None)


def sglang_faults(given: Given, environment: Mapping[str, str]) -> Iterator[str]:
    """What ends a boot of the four-Spark kit, or would spoil its replies without a word."""
    if given.text("tensors", "1") != given.text("world", "1"):
        yield f"--tp {given.text('tensors')} is not the number of nodes, {given.text('world')}"
    if given.text("graphs", given.text("parallel")) != given.text("parallel"):
        yield f"graphs are captured up to {given.text('graphs')}, and {given.text('parallel')} requests may run"
    if "expandable_segments:True" in environment.get("PYTORCH_CUDA_ALLOC_CONF", ""):
        yield "expandable segments: logits are NaN"
    if given.number("chunk", 0) > 1024 and environment.get("DSV41_INDEXER_CHUNKED") != "1":
        yield "a chunk above 1024 without the indexer backport runs out of memory in long prompts"
    if given.text("experts") == "1" and environment.get("DSV41_MOE_B12X_NEXT") != "1":
        yield "ValueError: the per-rank width 576 of the experts is no multiple of 128"
    if environment.get("DSV41_PACKED_DIR"):
        yield from pack_faults(given, Path(environment["DSV41_PACKED_DIR"]))


def vllm_faults(given: Given, environment: Mapping[str, str]) -> Iterator[str]:
    """What spark-ds41f's boot refuses, where it is told so; a plain vLLM is asked none of it."""
    if given.text("template") and not Path(given.text("template")).is_file():
        yield f"no chat template at {given.text('template')}"
    if given.text("long_prefill") and given.text("speculative"):
        drafts = json.loads(given.text("speculative")).get("num_speculative_tokens", 0)
        room = given.number("chunk", 0) - given.number("parallel", 0) * (1 + drafts)
        if given.number("long_prefill", 0) > room:
            yield f"--long-prefill-token-threshold {given.text('long_prefill')} leaves the decodes no room: at most {room}"
    if environment.get("VLLM_DS41_KERNEL_BACKEND") == "tilelang":
        if environment.get("VLLM_ENABLE_ROCE_ALLREDUCE", "0") != "0":
            yield "ValueError: VLLM_ENABLE_ROCE_ALLREDUCE does not apply to these kernels"
        if given.text("no_custom_all_reduce"):
            yield "ValueError: the one-shot collectives need custom all-reduce"
    if environment.get("SPARK3_DISPLAY_CARVEOUT_WEIGHTS") == "1" and not Path("/dev/dri/card0").exists():
        yield "RuntimeError: the display carve-out cannot hold the weights: no /dev/dri/card0"
    if environment.get("SPARKNET_ROCE_TOPOLOGY") == "ring4" and given.text("experts"):
        yield "ValueError: ranks across the ring have no route for experts"


def pack_faults(given: Given, folder: Path) -> Iterator[str]:
    """The real engine reads the checkpoint where its pack is missing; a pack of other rows it would believe."""
    rank, world = given.number("rank", 0), given.number("world", 1)
    config = json.loads((Path(given.text("model")) / "config.json").read_text())
    text = config.get("text_config", config)
    for layer, total in zip(text["engram_layer_ids"], text["engram_num_embeddings"], strict=True):
        path = folder / f"engram-l{layer}-r{rank}of{world}.bin"
        if not path.is_file():
            yield f"no packed Engram rows: {path} is missing"
            continue
        with path.open("rb") as file:
            found = struct.unpack("<6Q", file.read(48))
        wanted = (layer, total * rank // world, total * (rank + 1) // world, total, 264)
        if found[1:] != wanted or path.stat().st_size != 4096 + 264 * (wanted[2] - wanted[1]):
            yield f"{path} has the rows {found[2]} to {found[3]} of {found[4]}, not {wanted[1]} to {wanted[2]} of {total}"


def alike(given: Given, environment: Mapping[str, str]) -> dict[str, object]:
    """What must be the same on every rank: the engine compares it before it loads."""
    if given.style.name == "sglang":
        apart = ("rank", "host", "config")
        return {name: value for name, value in given.facts.items() if name not in apart}
    devices = environment.get("TF_RDMA_DEVICES") or environment.get("NCCL_IB_HCA") or ""
    told: dict[str, object] = {
        "--parallel": given.text("parallel", "auto"),
        "the number of RDMA devices": len([name for name in devices.split(",") if name]),
    }
    if given.style.name == "tensorfold":
        told["--vision"] = given.text("vision", "off")
    return told
