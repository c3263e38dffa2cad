from __future__ import annotations

from django.apps import AppConfig


class CloningConfig(AppConfig):
    name = "provisioner.cloning"
