"""The ensure_* steps: check, act if needed, check again. Each is safe to repeat."""
