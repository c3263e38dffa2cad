"""The client library, made before a test module that imports it is read."""

from __future__ import annotations

import importlib

from provisioner.api_client.generate import ensure_library

LIBRARY = ensure_library()
# Python has looked there already, and remembers that there was nothing.
importlib.invalidate_caches()
