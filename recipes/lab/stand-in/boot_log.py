"""What an engine says while it boots, as far as recipes look for it: the lines of its log by style, with what the rank was told in them.

``STAND_IN_KV_TOKENS`` is the pool that the boot grants, for tests of a pin that does not fit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import engram
from rendezvous import say
from styles import Given

GRANTED = 6_624_000
"""Tokens; more than lane B pins."""
BANNERS = {
    "sglang": "The server is fired up and ready to roll!",
    "vllm": "INFO:     Application startup complete.",
}
"""What the head says once its API is open."""


def tell(given: Given, rank: int, environment: Mapping[str, str]) -> None:
    """Say the lines of this rank's engine, if anything is known of them."""
    lines = STYLES.get(given.style.name)
    for line in lines(given, rank, environment) if lines else ():
        say(rank, line)


def sglang(given: Given, rank: int, environment: Mapping[str, str]) -> Iterator[str]:
    """As the head of the four-Spark kit logs them (its README, "the boot log must show these lines")."""
    granted = int(environment.get("STAND_IN_KV_TOKENS") or GRANTED)
    drafts = given.number("drafts", 5)
    if environment.get("DSV41_SHARED_PAD_K") == "1":
        yield "DSV41 shared-expert padding K: down_proj (5120, 576) -> (5120, 640)"
    if environment.get("DSV41_INDEXER_CHUNKED") == "1":
        yield "DSV41 indexer chunked (sglang#39187 backport) ARMED: budget 2147483648 bytes"
    yield f"Initialized DSpark draft runner. attention_backend=dsv4, gamma={drafts}, verify_num_draft_tokens={drafts + 1}"
    yield f"DSV4 memory calculation: bytes_per_full_token=1670.75, available_bytes=10.31 GB, swa_fixed=0.30 GB, full_token={granted}"
    pool = min(given.number("kv_tokens", granted), granted)
    yield (
        f"max_total_num_tokens={pool // 256 * 256}, chunked_prefill_size={given.text('chunk')}, max_prefill_tokens=16384, "
        f"max_running_requests={given.text('parallel')}, context_len={given.text('context')}"
    )
    if environment.get("NCCL_SWITCHLESS_RING_ONLY") == "1":
        count = len(environment["NCCL_IB_HCA"].split(","))
        yield f"NCCL INFO NET/IB ListenerRouting format=ipv4-v1 advertised={count} observed={count}"
    if environment.get("SGLANG_ROCE_ALLREDUCE") == "1" and rank == 0:
        hcas, gid = environment.get("B12X_ROCE_HCA"), environment.get("NCCL_IB_GID_INDEX")
        yield f"RoCEnante ready: world={given.text('world')} hcas={hcas} gid_index={gid} max_size={environment.get('SGLANG_ROCE_MAX_SIZE')}"
    if environment.get("DSV41_MOE_B12X_NEXT") == "1":
        yield "[moe_b12x_next] armed: routed MoE on b12x_next a7d7d29b"


def vllm(given: Given, rank: int, environment: Mapping[str, str]) -> Iterator[str]:
    if environment.get("DSV41_ENGRAM_DISK") == "1":
        yield from engram_from_disk(given, rank, environment)
    yield from ds41f(given, rank, environment)


def engram_from_disk(given: Given, rank: int, environment: Mapping[str, str]) -> Iterator[str]:
    """As the patches of the four-Spark baseline log where each rank reads its rows: a copy only where it covers them."""
    model, local = Path(given.text("model")), environment.get("DSV41_ENGRAM_DIR")
    copied = json.loads((Path(local) / "engram-local.json").read_text())["layers"] if local else {}
    for layer, first, behind in engram.rows(model, rank, given.number("world", 1)):
        start, end = copied.get(str(layer), (0, 0))
        if start <= first and behind <= end:
            yield f"Engram layer {layer} rows [{first}, {behind}) read from node-local {local}"
            continue
        if local:
            yield f"WARNING {local} has rows [{start}, {end}) of layer {layer}, this rank needs [{first}, {behind})"
        yield f"Engram DISK mode: layer {layer} rows [{first}, {behind}) read from {model}"
    if rank == 0:
        yield f"GPU KV cache size: {int(environment.get('STAND_IN_KV_TOKENS') or 1_070_168):,} tokens"


def serving(given: Given) -> None:
    """Say the head's banner."""
    if banner := BANNERS.get(given.style.name):
        say(0, banner)


def ds41f(given: Given, rank: int, environment: Mapping[str, str]) -> Iterator[str]:
    """As the head of spark-ds41f logs them; its pool follows from the bytes as in its release r6d (11,274,289,152: 8,580,566 tokens)."""
    if rank or not given.text("kv_bytes"):
        return
    granted = int(
        environment.get("STAND_IN_KV_TOKENS") or given.number("kv_bytes", 0) * 8_580_566 // 11_274_289_152
    )
    if environment.get("SPARKNET_ROCE_TOPOLOGY"):
        yield (
            "Collective policy for group 'tp:0': SPARKNET_ONESHOT for eligible all-reduce/all-gather; PYNCCL for other inputs, "
            "reduce-scatter and variable collectives. No backend-error fallback."
        )
    yield f"GPU KV cache size: {granted:,} tokens"


Lines = Callable[[Given, int, Mapping[str, str]], Iterator[str]]
STYLES: Mapping[str, Lines] = {"sglang": sglang, "vllm": vllm}
