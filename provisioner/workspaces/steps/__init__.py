"""The ensure_* steps: look, act if needed, look again. Each is safe to repeat."""
