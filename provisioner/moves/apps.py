from __future__ import annotations

from django.apps import AppConfig


class MovesConfig(AppConfig):
    name = "provisioner.moves"
