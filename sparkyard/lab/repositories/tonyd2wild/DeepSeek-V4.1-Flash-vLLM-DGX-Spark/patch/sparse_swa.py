"""The lab's stand-in for a module of an engine's own tree: v1/attention/backends/mla/sparse_swa.py."""

MOUNTED_OVER = "v1/attention/backends/mla/sparse_swa.py"
