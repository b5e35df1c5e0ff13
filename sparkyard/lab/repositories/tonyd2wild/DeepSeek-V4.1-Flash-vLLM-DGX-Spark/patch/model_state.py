"""The lab's stand-in for a module of an engine's own tree: models/deepseek_v4_1/nvidia/model_state.py."""

MOUNTED_OVER = "models/deepseek_v4_1/nvidia/model_state.py"
