"""What the words and variables of each engine mean, as tables: which flag is the port, which the rank, which take no value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Style:
    """One engine's command line.

    Attributes:
        programs: names by which it is called, as a program or behind ``-m``.
        flags: fact → the flags that say it; of several given ones the last counts.
        variables: fact → environment variables that say it where no flag does.
        positional: facts in the order of the words that are no flags (``serve`` and the like left out).
        switches: flags without a value.
        values: further flags with one value; together with ``flags`` and ``switches`` all that it takes, if ``strict``.
        defaults: facts where nothing says them.
        hears_term: whether it ends on SIGTERM also as a container's first process, because it asks for the signal.
        signs: flags by which it is known where an image calls it itself, so that its name is in no word.
    """

    name: str
    programs: tuple[str, ...]
    flags: Mapping[str, tuple[str, ...]]
    variables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    positional: tuple[str, ...] = ("model",)
    switches: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    strict: bool = False
    defaults: Mapping[str, str] = field(default_factory=dict)
    signs: frozenset[str] = frozenset()
    hears_term: bool = False

    @property
    def single(self) -> frozenset[str]:
        """Flags that take exactly one value."""
        return self.values | {flag for flags in self.flags.values() for flag in flags} - self.switches


COMMON = {
    "model": ("--model", "--model-path"),
    "host": ("--host",),
    "port": ("--port",),
    "api_key": ("--api-key",),
    "api_key_file": ("--api-key-file",),
    "master_port": ("--master-port",),
    "template": ("--chat-template",),
}

TENSORFOLD = Style(
    name="tensorfold",
    programs=("tensorfold",),
    flags={
        **COMMON,
        "name": ("--name",),
        "world": ("--tp",),
        "rank": ("--rank",),
        "master": ("--master",),
        "parallel": ("--parallel",),
        "context": ("--context",),
        "vision": ("--vision",),
        "thinking": ("--thinking",),
        "no_thinking": ("--no-thinking",),
    },
    variables={"api_key": ("TF_API_KEY",), "api_key_file": ("TF_API_KEY_FILE",)},
    switches=frozenset(
        [
            "--vision",
            "--vision-urls",
            "--vision-offload",
            "--metrics-open",
            "--thinking",
            "--no-thinking",
            "--no-drafts",
            "--no-update-check",
            "--prefill-fp8",
        ]
    ),
    values=frozenset(
        [
            "--alias",
            "--vision-max-images",
            "--max-tokens",
            "--temperature",
            "--top-p",
            "--top-k",
            "--min-p",
            "--reasoning-effort",
            "--thinking-budget",
            "--drafter",
            "--mtp-drafts",
            "--mtp-confidence",
            "--prompt-cache-gib",
            "--checkpoint-slots",
            "--spill-gib",
            "--snapshot-dir",
            "--decode-share",
            "--backend",
            "--kv-dtype",
            "--precision",
        ]
    ),
    strict=True,
    defaults={"host": "127.0.0.1", "port": "8080", "master_port": "29551", "world": "1", "rank": "0"},
)

TENSORFOLD_NATIVE = Style(
    name="tensorfold-native",
    programs=("tensorfold-native",),
    flags={**TENSORFOLD.flags},
    variables={
        **TENSORFOLD.variables,
        "world": ("TF_TP_WORLD",),
        "master": ("TF_TP_MASTER",),
        "master_port": ("TF_TP_PORT",),
        "rank_cache": ("TF_DS_RANK_CACHE",),
        "token_map": ("TF_DS_TOKEN_MAP",),
        "kit": ("TF_DS_KIT",),
        "engram": ("TF_DS_ENGRAM",),
    },
    switches=TENSORFOLD.switches,
    defaults={**TENSORFOLD.defaults, "rank": "0"},
)

TENSORFOLD_LANES = Style(
    name="tf-dsv41-lanes",
    programs=("tf-dsv41-lanes",),
    flags={
        "context": ("--context",),
        "parallel": ("--streams",),
        "engram": ("--engram",),
        "token_map": ("--token-map",),
    },
    positional=("model", "rank_cache", "rank", "world", "master", "master_port", "kit"),
)

VLLM = Style(
    name="vllm",
    programs=("vllm",),
    flags={
        **COMMON,
        "name": ("--served-model-name",),
        "world": ("--nnodes",),
        "rank": ("--node-rank",),
        "master": ("--master-addr",),
        "parallel": ("--max-num-seqs",),
        "context": ("--max-model-len",),
        "chunk": ("--max-num-batched-tokens",),
        "long_prefill": ("--long-prefill-token-threshold",),
        "kv_bytes": ("--kv-cache-memory-bytes",),
        "speculative": ("--speculative-config",),
        "no_custom_all_reduce": ("--disable-custom-all-reduce",),
        "experts": ("--enable-expert-parallel",),
    },
    variables={"api_key": ("VLLM_API_KEY",)},
    switches=frozenset(
        [
            "--headless",
            "--async-scheduling",
            "--disable-custom-all-reduce",
            "--enable-chunked-prefill",
            "--enable-expert-parallel",
            "--no-scheduler-reserve-full-isl",
            "--enforce-eager",
            "--enable-auto-tool-choice",
            "--enable-prefix-caching",
            "--enable-prompt-tokens-details",
            "--no-enable-flashinfer-autotune",
            "--language-model-only",
            "--skip-mm-profiling",
            "--trust-remote-code",
        ]
    ),
    defaults={"host": "0.0.0.0", "port": "8000", "master_port": "29501", "world": "1", "rank": "0"},
    signs=frozenset(["--max-model-len", "--max-num-seqs"]),
    hears_term=True,
)

SGLANG = Style(
    name="sglang",
    programs=("sglang", "sglang.launch_server"),
    flags={
        **COMMON,
        "name": ("--served-model-name",),
        "world": ("--nnodes",),
        "rank": ("--node-rank",),
        "master": ("--dist-init-addr", "--nccl-init-addr"),
        "parallel": ("--max-running-requests",),
        "context": ("--context-length",),
        "chunk": ("--chunked-prefill-size",),
        "kv_tokens": ("--max-total-tokens",),
        "drafts": ("--speculative-dspark-block-size",),
        "tensors": ("--tp", "--tp-size"),
        "experts": ("--ep-size", "--ep"),
        "graphs": ("--cuda-graph-max-bs-decode",),
        "cache_report": ("--enable-cache-report",),
        "config": ("--config",),
    },
    switches=frozenset(
        [
            "--trust-remote-code",
            "--enable-metrics",
            "--enable-cache-report",
            "--enable-decoder-swa-bounded-replay",
            "--enable-deepseek-v4-fp4-indexer",
            "--sleep-on-idle",
            "--disable-cuda-graph",
            "--disable-custom-all-reduce",
            "--skip-server-warmup",
        ]
    ),
    values=frozenset(
        [
            "--load-format",
            "--attention-backend",
            "--moe-runner-backend",
            "--fp8-gemm-backend",
            "--mem-fraction-static",
            "--random-seed",
            "--tool-call-parser",
            "--reasoning-parser",
            "--speculative-algorithm",
            "--speculative-dspark-sps-table-path",
            "--speculative-dspark-confidence-sts-path",
            "--watchdog-timeout",
            "--min-free-slots-delay",
            "--prefill-decode-interval",
            "--swa-full-tokens-ratio",
        ]
    ),
    strict=True,
    defaults={"host": "127.0.0.1", "port": "30000", "master_port": "20000", "world": "1", "rank": "0"},
)

GENERIC = Style(
    name="generic",
    programs=(),
    flags={
        **COMMON,
        "name": ("--name", "--served-model-name", "--alias"),
        "world": ("--world-size", "--nnodes", "--tp"),
        "rank": ("--rank", "--node-rank"),
        "master": ("--master", "--master-addr", "--dist-init-addr"),
        "parallel": ("--parallel", "--max-num-seqs"),
        "context": ("--context", "--max-model-len"),
    },
    variables={
        "world": ("WORLD_SIZE",),
        "rank": ("RANK", "NODE_RANK"),
        "master": ("MASTER_ADDR",),
        "master_port": ("MASTER_PORT",),
    },
    defaults={"host": "127.0.0.1", "port": "8000", "master_port": "29500", "world": "1", "rank": "0"},
)

STYLES = (TENSORFOLD_NATIVE, TENSORFOLD_LANES, TENSORFOLD, VLLM, SGLANG)
COMMANDS = ("serve", "launch_server")


@dataclass(frozen=True)
class Given:
    """What a rank was told. ``facts`` are texts by name; a switch that is there is ``true``."""

    style: Style
    facts: Mapping[str, str]
    problems: tuple[str, ...] = ()

    def text(self, name: str, default: str = "") -> str:
        return self.facts.get(name, default)

    def number(self, name: str, default: int) -> int:
        try:
            return int(self.facts.get(name, default))
        except ValueError:
            return default

    @property
    def rendezvous(self) -> str:
        """Where rank 0 is met: ``host:port``."""
        master = self.text("master", "127.0.0.1")
        return master if ":" in master else f"{master}:{self.text('master_port', '29500')}"


def style_of(words: Sequence[str]) -> tuple[Style, int]:
    """The engine that is called, and where its own words begin."""
    for place, word in enumerate(words[:6]):
        name = PurePosixPath(word).name
        found = next((style for style in STYLES if name in style.programs), None)
        if found is not None:
            return found, place + 1
    known = (style for style in STYLES if style.signs and style.signs <= set(words))
    return next(known, GENERIC), 0


def parse(words: Sequence[str], environment: Mapping[str, str]) -> Given:
    """Read a rank's words and variables."""
    style, start = style_of(words)
    flags, loose, problems = _split(style, words[start:])
    facts = dict(style.defaults)
    for fact, names in style.variables.items():
        facts |= _last(fact, names, {name: text for name, text in environment.items() if text})
    loose = [word for word in loose if word not in COMMANDS]
    facts |= dict(zip(style.positional, loose, strict=False))
    for fact, names in style.flags.items():
        facts |= _last(fact, names, flags)
    return Given(style, facts, tuple(problems))


def _last(fact: str, names: Sequence[str], told: Mapping[str, str]) -> dict[str, str]:
    """The fact as the last of these names says it, if one does."""
    said = [told[name] for name in names if name in told]
    return {fact: said[-1]} if said else {}


def _split(style: Style, words: Sequence[str]) -> tuple[dict[str, str], list[str], list[str]]:
    """Flags with their values, words that are none, and what a strict engine would refuse."""
    flags: dict[str, str] = {}
    loose: list[str] = []
    problems: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            loose.append(word)
            continue
        name, equals, value = word.partition("=")
        known = name in style.single or name in style.switches
        if not known and style.strict:
            problems.append(f"unrecognized arguments: {word}")
        if name in style.switches:
            value = "true"
        elif not equals and rest and not rest[0].startswith("--"):
            value = rest.pop(0)
            while not known and rest and not rest[0].startswith("-"):  # may take several
                rest.pop(0)
        elif not equals and style.strict and known:
            problems.append(f"argument {name}: expected one argument")
        flags[name] = value
    return flags, loose, problems
