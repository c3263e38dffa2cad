"""These tests are for an installation that has the feature."""

from __future__ import annotations

from django.apps import apps

HAS_THE_FEATURE = apps.is_installed("tests.example_feature")
collect_ignore_glob = [] if HAS_THE_FEATURE else ["*.py"]
