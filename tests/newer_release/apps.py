from __future__ import annotations

from django.apps import AppConfig


class NewerReleaseConfig(AppConfig):
    name = "tests.newer_release"
