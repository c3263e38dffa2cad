"""Django's admin for sites and Perforce servers.

Everything with a lifecycle can only be viewed here; actions change it.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from provisioner.audit_log.models import Event
from provisioner.catalog.models import ServerWatch, Snapshot, Template
from provisioner.engine.models import Operation
from provisioner.lib.fields import NamesField
from provisioner.sites.models import PerforceServer, Site
from provisioner.workspaces.models import Workspace


@admin.register(Site)
class SiteAdmin(admin.ModelAdmin[Site]):
    list_display = ("name", "title", "ontap_host", "svm", "perforce_server")


@admin.register(PerforceServer)
class PerforceServerAdmin(admin.ModelAdmin[PerforceServer]):
    list_display = ("name", "p4port", "p4user", "flush_limit")


@admin.register(ServerWatch)
class ServerWatchAdmin(admin.ModelAdmin[ServerWatch]):
    """The poll interval of a server; its other fields are measured or have a page."""

    list_display = ("server", "interval_seconds", "newest_change", "polled_at")
    fields = ("server", "interval_seconds")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Any | None = None
    ) -> bool:
        return False

    def get_readonly_fields(
        self, request: HttpRequest, obj: Any | None = None
    ) -> tuple[str, ...]:
        return ("server",)

    def save_model(
        self, request: HttpRequest, obj: ServerWatch, form: Any, change: Any
    ) -> None:
        # A poll may have written its own fields since the page was shown.
        obj.save(update_fields=["interval_seconds"])


class ReadOnlyAdmin(admin.ModelAdmin[Any]):
    """Read-only: other pages make the changes."""

    def get_exclude(self, request: HttpRequest, obj: Any | None = None) -> list[str]:
        """Leave out fields that pages cannot edit, such as names of arbitrary bytes."""
        columns = self.opts.get_fields()
        return [field.name for field in columns if isinstance(field, NamesField)]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Any | None = None
    ) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Any | None = None
    ) -> bool:
        return False


@admin.register(Template)
class TemplateAdmin(ReadOnlyAdmin):
    list_display = ("name", "site", "state", "volume_name")


@admin.register(Snapshot)
class SnapshotAdmin(ReadOnlyAdmin):
    list_display = ("name", "template", "change", "have_count", "created_at")


@admin.register(Workspace)
class WorkspaceAdmin(ReadOnlyAdmin):
    list_display = ("name", "owner", "template", "state", "created_at")


@admin.register(Operation)
class OperationAdmin(ReadOnlyAdmin):
    list_display = ("kind", "subject", "state", "created_at")


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("at", "kind", "workspace", "template", "actor", "message")
