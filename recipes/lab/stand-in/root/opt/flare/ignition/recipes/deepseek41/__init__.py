"""DeepSeek-V4.1."""
