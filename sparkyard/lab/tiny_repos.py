"""Tiny repositories for the lab's hub: the names, files, indexes and safetensors headers of real ones, in a few megabytes.

Everything is made from the names alone, so every lab has the same bytes and the same commits.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from sparkyard.lab.hub_files import LFS_ENDINGS, blob_id, commit_id, pointer

Files = Mapping[str, bytes]
"""POSIX path in the repository → content."""

LAYERS = 43
ENGRAM_LAYERS = (1, 14)
INDEX = "model.safetensors.index.json"
TENSOR_BYTES = 768
KIT_FILES = 356
"""As many as the manifest of TensorFold's kernel kit for four nodes has."""

CONFIG = {
    "architectures": ["DeepseekV4ForCausalLM"],
    "model_type": "deepseek_v4",
    "num_hidden_layers": LAYERS,
    "max_position_embeddings": 1048576,
    "engram_layer_ids": list(ENGRAM_LAYERS),
    "engram_vocab_size": 16,
    "engram_max_ngram_size": 4,
    "engram_n_heads": 8,
    "engram_num_embeddings": [1552, 4488],
    "stand_in": "a tiny repository of sparkyard's lab; its tensors mean nothing",
}
EXL3 = {"quantization_config": {"quant_method": "exl3", "bits": 2.9}}
TOKENIZER = {"version": "1.0", "model": {"type": "BPE", "vocab": {"<|lab|>": 0}, "merges": []}}
TOKENIZER_CONFIG = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|lab|>"}
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}\n"
ENCODING = '''"""The lab's stand-in for a checkpoint's encoder: it joins what was said, and proves nothing."""


def encode_messages(messages, thinking_mode="chat", **kwargs):
    return "".join(str(message.get("content") or "") for message in messages)
'''


def content(name: str, size: int) -> bytes:
    """Bytes that follow from a name."""
    return hashlib.shake_256(name.encode()).digest(size)


def safetensors(names: Sequence[str], release: str, size: int = TENSOR_BYTES) -> bytes:
    """A whole file: the length of its header, the header, and ``size`` bytes of each tensor, ending where the header says."""
    spans = {
        name: {"dtype": "U8", "shape": [size], "data_offsets": [number * size, (number + 1) * size]}
        for number, name in enumerate(names)
    }
    header = json.dumps({"__metadata__": {"format": "pt"}, **spans}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return (
        struct.pack("<Q", len(header))
        + header
        + b"".join(content(f"{release} {name}", size) for name in names)
    )


def shard(number: int, count: int) -> str:
    """``model-00047-of-00048.safetensors``."""
    return f"model-{number:05}-of-{count:05}.safetensors"


def _spread(names: Sequence[str], count: int) -> Iterator[tuple[str, list[str]]]:
    """The tensors over so many shards, each with one at least."""
    for number in range(count):
        yield shard(number + 1, count), list(names[number::count])


def _weights(shards: Mapping[str, Sequence[str]], release: str) -> dict[str, bytes]:
    """The shards and their index."""
    files = {name: safetensors(tensors, release) for name, tensors in shards.items()}
    placed = {tensor: name for name, tensors in shards.items() for tensor in tensors}
    total = sum(TENSOR_BYTES for _ in placed)
    return {**files, INDEX: _json({"metadata": {"total_size": total}, "weight_map": placed})}


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def _tensors(kinds: Sequence[str]) -> list[str]:
    named = [f"layers.{layer}.{kind}" for layer in range(LAYERS) for kind in kinds]
    return ["embed.weight", *named, "norm.weight", "head.weight"]


def _text(config: Mapping[str, object]) -> dict[str, bytes]:
    return {
        "config.json": _json(config),
        "tokenizer.json": _json(TOKENIZER),
        "tokenizer_config.json": _json(TOKENIZER_CONFIG),
    }


def quantized(release: str, *, whole: bool) -> Files:
    """An EXL3 pack: 39 shards without Engram tables; 43 files, or with all that surrounds them (``whole``) 48."""
    shards = dict(_spread(_tensors(["attn.wq.trellis", "ffn.experts.trellis"]), 39))
    files = {
        **_weights(shards, release),
        **_text({**CONFIG, **EXL3}),
        "chat_template.jinja": TEMPLATE.encode(),
    }
    if not whole:
        del files["tokenizer.json"]
    else:
        files |= {
            "quantization_config.json": _json(EXL3["quantization_config"]),
            "generation_config.json": _json({"temperature": 1.0, "top_p": 0.95}),
            "README.md": b"# A tiny repository of sparkyard's lab\n",
            ".gitattributes": b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n",
        }
    return files


def original(release: str) -> Files:
    """DeepSeek's own release: 46 shards of weights, one Engram table in each of 47 and 48, and its encoder."""
    shards = dict(_spread(_tensors(["attn.wq.weight", "ffn.experts.weight", "ffn.gate.bias_vl"]), 48))
    moved = [tensor for name in list(shards)[46:] for tensor in shards[name]]
    shards[shard(1, 48)] += moved
    for number, layer in zip((47, 48), ENGRAM_LAYERS, strict=True):
        shards[shard(number, 48)] = [f"layers.{layer}.engram.embed.{part}" for part in ("weight", "scale")]
    encoder = {"encoding/encoding.py": ENCODING.encode(), "encoding/README.md": b"# The lab's encoder\n"}
    return {**_weights(shards, release), **_text(CONFIG), **encoder}


def kernel_kit() -> Files:
    """A kernel kit with its manifest (sha256, bytes, origin, two-node flag, path), of as many files as the real one."""
    names = ["aot/aot.json", "engram.json", "rope.json", "vision/gate_bias_vl.safetensors"]
    names += [f"rope-{kind}-{part}.f32" for kind in ("plain", "compressed") for part in ("cos", "sin")]
    names += [
        f"aot/cubins/{content(f'cubin {number}', 32).hex()}.cubin" for number in range(KIT_FILES - len(names))
    ]
    files = {name: content(f"kit {name}", 64) for name in names}
    files["vision/gate_bias_vl.safetensors"] = safetensors(["layers.0.ffn.gate.bias_vl"], "kit")
    rows = (
        f"{hashlib.sha256(data).hexdigest()} {len(data):11}  git  -  {name}"
        for name, data in sorted(files.items())
    )
    manifest = "".join(f"{line}\n" for line in ("# the lab's kernel kit", *rows))
    return {
        "README.md": b"# The lab's kernel kit\n",
        **{f"kit/{name}": data for name, data in files.items()},
        "kit/MANIFEST": manifest.encode(),
    }


REPOSITORIES: Mapping[str, Callable[[], Files]] = {
    "LibertAIDAI/DeepSeek-V4.1-Flash-1017-EXL3-2.9bpw": lambda: quantized("1017", whole=False),
    "Mia-AiLab/DeepSeek-V4.1-Flash-EXL3-2.9bpw": lambda: quantized("first", whole=True),
    "deepseek-ai/DeepSeek-V4.1-Flash-1017": lambda: original("1017"),
    "deepseek-ai/DeepSeek-V4.1-Flash": lambda: original("first"),
    "bertholomus/DeepSeek-V4.1-Flash-TensorFold-TP4-4xGB10": kernel_kit,
}
"""What the lab's hub serves in place of each real repository."""


def commit(name: str, files: Files) -> str:
    """The commit that the lab's hub gives a repository of these files."""
    ordered = sorted(files, key=PurePosixPath)
    return commit_id(name, ((path, len(files[path]), _oid(path, files[path])) for path in ordered))


def _oid(path: str, data: bytes) -> str:
    if path.endswith(LFS_ENDINGS):
        return blob_id(pointer(hashlib.sha256(data).hexdigest(), len(data)))
    return blob_id(data)


def write(folder: Path) -> None:
    """Put every repository below a folder of the hub; files that are right already are not touched, others are taken away."""
    for name, make in REPOSITORIES.items():
        files = {folder / name / path: data for path, data in make().items()}
        for path, data in files.items():
            _keep(path, data)
        for path in (folder / name).rglob("*"):
            if path.is_file() and path not in files:
                path.unlink()


def _keep(path: Path, data: bytes) -> None:
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
