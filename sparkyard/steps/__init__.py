"""Pure builders of steps, one module a noun. Nothing here connects, reads a clock or imports what does."""
