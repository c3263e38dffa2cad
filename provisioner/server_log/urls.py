"""URLs of the logs of Perforce servers."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.server_log import views
from provisioner.server_log.api.views import (
    CheckpointViewSet,
    LockWaitViewSet,
    LogCommandViewSet,
    LogMessageViewSet,
    LogUploadViewSet,
    PollingViewSet,
    ServerLoadViewSet,
    ServerLockViewSet,
    ServerLogViewSet,
    TableUseViewSet,
)
from provisioner.web.navigation import Group, Place, Section, administrators, register

register(
    Place(
        title="Server load",
        section=Section.PERFORCE,
        group=Group.LOAD,
        url_name="server-load",
        covers=("server-load-", "server-table-use-"),
        rank=62,
        is_for=administrators,
    ),
    Place(
        title="Server commands",
        section=Section.PERFORCE,
        group=Group.LOAD,
        url_name="server-command-list",
        covers=("server-command-",),
        rank=63,
        is_for=administrators,
    ),
    Place(
        title="Server messages",
        section=Section.PERFORCE,
        group=Group.LOAD,
        url_name="server-message-list",
        rank=64,
        is_for=administrators,
    ),
    Place(
        title="Server logs",
        section=Section.PERFORCE,
        group=Group.LOAD,
        url_name="server-log-list",
        covers=("server-log-",),
        rank=65,
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [
    path("perforce/load/", views.server_load, name="server-load"),
    path("perforce/load/waits/", views.lock_waits, name="server-load-waits"),
    path("perforce/load/locks/", views.server_locks, name="server-load-locks"),
    path("perforce/load/lapses/", views.server_lapses, name="server-load-lapses"),
    path("perforce/load/polling/", views.server_polling, name="server-load-polling"),
    path("perforce/load/uses/", views.table_use_list, name="server-table-use-list"),
    path("perforce/commands/", views.command_list, name="server-command-list"),
    path(
        "perforce/commands/<int:pk>/",
        views.command_detail,
        name="server-command-detail",
    ),
    path("perforce/messages/", views.message_list, name="server-message-list"),
    path("perforce/logs/", views.server_log_list, name="server-log-list"),
    path("perforce/logs/<int:pk>/", views.server_log_edit, name="server-log-edit"),
    path(
        "perforce/logs/<int:pk>/upload/",
        views.server_log_upload,
        name="server-log-upload",
    ),
]

api_routes = [
    Route("v1/server-logs", ServerLogViewSet, "server-log"),
    Route("v1/server-load", ServerLoadViewSet, "server-load"),
    Route("v1/server-locks", ServerLockViewSet, "server-lock"),
    Route("v1/server-polling", PollingViewSet, "server-polling"),
    Route("v1/server-checkpoints", CheckpointViewSet, "server-checkpoint"),
    Route("v1/server-table-uses", TableUseViewSet, "server-table-use"),
    Route("v1/server-lock-waits", LockWaitViewSet, "server-lock-wait"),
    Route("v1/server-commands", LogCommandViewSet, "server-command"),
    Route("v1/server-messages", LogMessageViewSet, "server-message"),
    Route("v1/server-log-uploads", LogUploadViewSet, "server-log-upload"),
]
