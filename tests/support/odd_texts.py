"""The corpus of odd texts, and how long a parser may take for all of them."""

from __future__ import annotations

import json
from pathlib import Path

_CORPUS = Path(__file__).parents[1] / "fuzz" / "texts.json"
TEXTS: list[str] = json.loads(_CORPUS.read_text())
READ_WITHIN_SECONDS = 10.0
