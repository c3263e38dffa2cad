"""The client library, made before a test module that imports it is read."""

from __future__ import annotations

from provisioner.api_client.generate import ensure_library

LIBRARY = ensure_library()
