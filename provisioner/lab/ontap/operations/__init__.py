"""What the array does: checks of requests, and the verbs that jobs run."""

from __future__ import annotations
