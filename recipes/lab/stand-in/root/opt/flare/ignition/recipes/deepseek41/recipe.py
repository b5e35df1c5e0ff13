"""The lab's recipe of DeepSeek-V4.1: nothing but what its export reads, and no text of NVIDIA's."""
# fmt: off
# mypy: ignore-errors

from ignition.sampling import SamplingDefaults
from ignition.shape import Recipe

RECIPE = Recipe(
    name="deepseek41",
    tensor_parallel=(4,),  # no other number of ranks
    # What has no range here is built in: a request's own value is ignored.
    sampling_defaults=SamplingDefaults(temperature=1., top_p=1., top_k=-1),
    prefill_chunk=4096,
)
