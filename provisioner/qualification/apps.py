from __future__ import annotations

from django.apps import AppConfig


class QualificationConfig(AppConfig):
    name = "provisioner.qualification"
