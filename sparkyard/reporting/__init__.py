"""The parts of ``sparkyard.report``: words first (pure), then the terminal."""
