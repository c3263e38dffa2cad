"""What the array does: checks at the request, and the verbs that jobs run."""

from __future__ import annotations
