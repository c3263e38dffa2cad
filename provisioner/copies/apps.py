from __future__ import annotations

from django.apps import AppConfig


class CopiesConfig(AppConfig):
    name = "provisioner.copies"
