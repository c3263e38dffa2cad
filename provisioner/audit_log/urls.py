"""URLs of the audit log."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.audit_log.api import EventViewSet
from provisioner.audit_log.lists import AUDIT_LOG
from provisioner.web.http import administrators_only
from provisioner.web.lists.answers import list_page
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Audit log",
        section=Section.ACTIVITY,
        url_name="audit-log",
        rank=20,
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [
    path(
        "audit-log/",
        administrators_only(list_page(AUDIT_LOG, "audit_log/list.html")),
        name="audit-log",
    ),
]

api_routes = [Route("v1/events", EventViewSet, "event")]
