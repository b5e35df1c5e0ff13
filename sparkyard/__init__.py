"""sparkyard: deploys DeepSeek-V4.1-Flash on two or four NVIDIA DGX Sparks."""

__version__ = "0.1.0"
