from __future__ import annotations

from django.apps import AppConfig


class DirectoryConfig(AppConfig):
    name = "provisioner.directory"
