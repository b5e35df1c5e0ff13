"""What a recipe says."""

from __future__ import annotations

from dataclasses import dataclass

from ignition.sampling import SamplingDefaults


@dataclass(frozen=True)
class Recipe:
    """A model and how it is prepared."""

    name: str
    tensor_parallel: tuple[int, ...]
    sampling_defaults: SamplingDefaults
    prefill_chunk: int
