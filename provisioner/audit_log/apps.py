from __future__ import annotations

from django.apps import AppConfig


class AuditLogConfig(AppConfig):
    name = "provisioner.audit_log"
