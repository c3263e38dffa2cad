"""URLs of operations and their logs."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.engine import views
from provisioner.engine.api.operations import OperationViewSet
from provisioner.engine.api.workers import WorkerViewSet
from provisioner.engine.lists import OPERATIONS
from provisioner.web.lists.answers import list_page
from provisioner.web.navigation import Place, Section, register

register(
    Place(
        title="Operations",
        section=Section.ACTIVITY,
        url_name="operation-list",
        covers=("operation-",),
        rank=10,
    )
)

urlpatterns: list[URLPattern] = [
    path(
        "operations/", list_page(OPERATIONS, "engine/list.html"), name="operation-list"
    ),
    path("operations/<int:pk>/", views.operation_detail, name="operation-detail"),
    path("operations/<int:pk>/log/", views.operation_log, name="operation-log"),
    path(
        "operations/<int:pk>/<step>/log/",
        views.operation_step_log,
        name="operation-step-log",
    ),
    path(
        "operations/<int:pk>/<step>/log/error/",
        views.operation_step_log_error,
        name="operation-step-log-error",
    ),
    path(
        "operations/<int:pk>/<step>/log.txt",
        views.operation_step_log_download,
        name="operation-step-log-download",
    ),
]

api_routes = [
    Route("v1/operations", OperationViewSet, "operation"),
    Route("v1/workers", WorkerViewSet, "worker"),
]
