"""The lab's stand-in for a module of an engine's own tree: models/deepseek_v4_1/common/engram.py."""

MOUNTED_OVER = "models/deepseek_v4_1/common/engram.py"
