"""The lab's stand-in for a module of an engine's own tree: model_executor/model_loader/weight_utils.py."""

MOUNTED_OVER = "model_executor/model_loader/weight_utils.py"
