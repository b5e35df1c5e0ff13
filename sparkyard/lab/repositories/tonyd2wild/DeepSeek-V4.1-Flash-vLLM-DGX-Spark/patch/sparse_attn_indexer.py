"""The lab's stand-in for a module of an engine's own tree: model_executor/layers/sparse_attn_indexer.py."""

MOUNTED_OVER = "model_executor/layers/sparse_attn_indexer.py"
