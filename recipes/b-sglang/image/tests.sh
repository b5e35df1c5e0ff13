#!/bin/sh
# Runs the tests that the kit's own Dockerfile.canary-roce runs while it builds; the first that fails ends the build.
set -eu
cd /opt/dsv41/tests
PYTHONPATH=/opt/dsv41/adapter
CUDA_VISIBLE_DEVICES=
BV_TEST_N=60000 # draws of the two statistical tests, as published
VC_TEST_N=60000
export PYTHONPATH CUDA_VISIBLE_DEVICES BV_TEST_N VC_TEST_N
for name in \
    thinking_alias max_new_tokens loop_abort fast_load_pacing fast_load_tp_slice prefill_sp fast_load_slab moe_b12x_next_cpu \
    wo_a_w8 draft_tau folded_fence draft_head_fp8 block_verify autotune_keep replicated_split compact_gather verify_cap roce_ring
do
    echo "test_$name"
    python3 "test_$name.py"
done
python3 test_indexer_chunked_v3.py /sgl-workspace/sglang/python/sglang/srt/layers/attention/deepseek_v4_backend.py
