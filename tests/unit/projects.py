"""Small whole projects for the loader's tests: a good inventory, good recipes, and the edits that spoil them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HOSTS = "inventory/my/hosts.yml"
RECIPE = "recipes/a/recipe.yml"

FILES: Mapping[str, str] = {
    HOSTS: """\
all:
  vars:
    lane: A
    revert_to: kit
  children:
    sparks:
      hosts:
        spark-1:
          ansible_connection: local
          rank: 0
          link: {address: 10.0.0.1, interface: enp1s0f1np1, hcas: [rocep1s0f1, roceP2p1s0f1]}
        spark-2:
          ansible_host: spark-2.local
          ansible_user: spark
          rank: 1
          link: {address: 10.0.0.2, interface: enp1s0f0np0, hcas: [rocep1s0f0, roceP2p1s0f0]}
      vars:
        lanes:
          A: {context: 4096}
""",
    RECIPE: """\
lane: A
title: an engine
nodes: {at_least: 2, at_most: 4}
settings:
  context: {default: 2048, minimum: 256, maximum: 1048576, about: tokens, source: {kind: chosen, why: small}}
  mode: {default: fast, choices: [fast, exact], about: how, source: {kind: chosen, why: quick}}
  rate: {default: 0.5, minimum: 0, maximum: 1, about: share, source: {kind: chosen, why: half}}
  expose: {default: false, about: beyond loopback, source: {kind: chosen, why: safe}}
  port: {default: 8888, minimum: 1, maximum: 65535, about: of the API, source: {kind: published, cite: guide}}
  api_key: {default: null, secret: true, about: of the API, source: {kind: chosen, why: none}}
checkpoints:
  main:
    repo: org/model
    revision: 0123456789abcdef0123456789abcdef01234567
    source: {kind: published, cite: guide}
    files: ["*.safetensors"]
image:
  name: engine
  source: {kind: chosen, why: ours}
  build:
    base: "debian@sha256:00"
    dockerfile: Dockerfile
files:
  env:
    path: "{{ node.root }}/a.env"
    values: {KEY: "{{ lane.api_key }}"}
    dialect: docker-env
    secret: true
  config:
    path: "{{ node.root }}/a.json"
    template: a.json.j2
env:
  NCCL_DEBUG: WARN
services:
  engine:
    nodes: all
    options: [--network, host]
    env_files: [env]
    mounts:
      - {source: "{{ checkpoints.main.path }}", target: /models}
    words: [serve, --context, "{{ lane.context }}"]
    gate: {timeout: 60, log: "rank \\\\d+ ready"}
order: workers-first
ready:
  url: "http://127.0.0.1:{{ lane.port }}"
  model: m
  timeout: 600
  log_silence: 120
verify:
  - name: chat
    path: /v1/chat/completions
    expect:
      - {path: choices.0.message.content, matches: "[a-z]+"}
stop: {grace: 10}
limits: {memory: 103079215104, disk: 0}
rules:
  - {must: lane.context > 0, message: no context, source: here}
sources: {"*": {kind: chosen, why: a test}}
""",
    "recipes/a/Dockerfile": "ARG BASE\nFROM ${BASE}\n",
    "recipes/a/a.json.j2": '{"context": {{ lane.context }}}\n',
    "recipes/kit/recipe.yml": """\
lane: kit
title: the kit
nodes: {at_least: 2, at_most: 2}
settings:
  window: {default: 8192, about: tokens, source: {kind: published, cite: kit}}
image:
  name: kit
  source: {kind: published, cite: kit}
  pull: {repository: registry.example/kit, digest: "sha256:%s"}
services:
  engine: {nodes: all}
ready: {url: "http://127.0.0.1:8000", model: m, timeout: 600, log_silence: 120}
stop: {grace: 10}
sources: {"*": {kind: chosen, why: a test}}
"""
    % ("0" * 64),
}

Edit = tuple[str, str, str]
"""File, the text in it that goes (it must be there exactly once), and what comes instead."""


@dataclass(frozen=True, slots=True)
class Case:
    """One spoiled project and everything that is said about it.

    Attributes:
        edits: in the good project.
        files: added, or written over; ``gone`` are taken away.
        sets, environ, lane, recipes: as typed.
        says: the fault lines, in order.
    """

    name: str
    says: Sequence[str]
    edits: Sequence[Edit] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    gone: Sequence[str] = ()
    sets: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    lane: str | None = None
    recipes: Sequence[str] = ()

    @property
    def message(self) -> str:
        count = len(self.says)
        title = f"{count} fault{'' if count == 1 else 's'} in the configuration; nothing was run"
        return "\n".join([title, *(f"  {line}" for line in self.says)])


def hosts(old: str, new: str) -> Edit:
    return HOSTS, old, new


def recipe(old: str, new: str) -> Edit:
    return RECIPE, old, new


def write_project(
    folder: Path, files: Mapping[str, str] = FILES, edits: Sequence[Edit] = (), gone: Sequence[str] = ()
) -> None:
    """Write the files with the edits made. Every edit must find its text exactly once."""
    texts = {path: text for path, text in files.items() if path not in gone}
    for path, old, new in edits:
        assert texts[path].count(old) == 1, f"{old!r} is {texts[path].count(old)} times in {path}"
        texts[path] = texts[path].replace(old, new)
    for path, text in texts.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
