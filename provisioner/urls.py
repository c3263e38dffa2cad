"""Every address: those of each feature, under /api/ and beside it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.urls import URLPattern, URLResolver, include, path
from django.views import defaults

from provisioner.advice import urls as advice_urls
from provisioner.api import errors as api_errors
from provisioner.api.routes import addresses
from provisioner.audit_log import urls as audit_log_urls
from provisioner.bisect import urls as bisect_urls
from provisioner.catalog import urls as catalog_urls
from provisioner.cloning import urls as cloning_urls
from provisioner.copies import urls as copy_urls
from provisioner.dashboard import urls as dashboard_urls
from provisioner.directory import urls as directory_urls
from provisioner.drift import urls as drift_urls
from provisioner.drills import urls as drill_urls
from provisioner.efficiency import urls as efficiency_urls
from provisioner.engine import urls as engine_urls
from provisioner.help import urls as help_urls
from provisioner.insight import urls as insight_urls
from provisioner.leases import urls as lease_urls
from provisioner.lib.databases import DATABASE_WENT_AWAY
from provisioner.limits import urls as limit_urls
from provisioner.maintenance import urls as maintenance_urls
from provisioner.metrics import urls as metrics_urls
from provisioner.mirrors import urls as mirror_urls
from provisioner.moves import urls as moves_urls
from provisioner.notify import urls as notify_urls
from provisioner.people import urls as people_urls
from provisioner.pools import urls as pool_urls
from provisioner.probes import urls as probe_urls
from provisioner.qualification import urls as qualification_urls
from provisioner.recipes import urls as recipe_urls
from provisioner.recovery import urls as recovery_urls
from provisioner.rescues import urls as rescue_urls
from provisioner.routing import urls as routing_urls
from provisioner.sandboxes import urls as sandbox_urls
from provisioner.server_log import urls as server_log_urls
from provisioner.single_sign_on import urls as single_sign_on_urls
from provisioner.sites import urls as site_urls
from provisioner.storage import urls as storage_urls
from provisioner.transfer import urls as transfer_urls
from provisioner.web import urls as web_urls
from provisioner.workspace_requests import urls as workspace_requests_urls
from provisioner.workspace_snapshots import urls as workspace_snapshot_urls
from provisioner.workspaces import urls as workspace_urls

# As long as a database takes to come up again, more or less.
RETRY_AFTER_SECONDS = 5

FEATURES = (
    audit_log_urls,
    bisect_urls,
    catalog_urls,
    dashboard_urls,
    drift_urls,
    engine_urls,
    help_urls,
    lease_urls,
    limit_urls,
    maintenance_urls,
    metrics_urls,
    mirror_urls,
    copy_urls,
    workspace_snapshot_urls,
    recovery_urls,
    cloning_urls,
    notify_urls,
    directory_urls,
    people_urls,
    pool_urls,
    rescue_urls,
    routing_urls,
    sandbox_urls,
    recipe_urls,
    drill_urls,
    qualification_urls,
    single_sign_on_urls,
    site_urls,
    storage_urls,
    moves_urls,
    efficiency_urls,
    insight_urls,
    probe_urls,
    advice_urls,
    server_log_urls,
    transfer_urls,
    web_urls,
    workspace_requests_urls,
    workspace_urls,
)
"""Each has its pages in `urlpatterns`, and in `api_routes` what scripts use."""


def patterns_of(features: Iterable[ModuleType]) -> list[URLPattern | URLResolver]:
    """Return the addresses of these features, of the API and of the database pages."""
    features = tuple(features)
    routes = [route for urls in features for route in getattr(urls, "api_routes", ())]
    return [
        path("", include([page for urls in features for page in urls.urlpatterns])),
        path("api/", include((addresses(routes), "api"))),
        path("admin/", admin.site.urls),
    ]


urlpatterns = patterns_of(FEATURES)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer for a bug of ours, or for a database that is away: 500 or 503.

    JSON to a script, a page to a person. What was raised is still being handled here.
    """
    is_api = request.path.startswith("/api/")
    if not isinstance(sys.exception(), DATABASE_WENT_AWAY):
        ours = api_errors.server_error if is_api else defaults.server_error
        return ours(request)
    if is_api:
        answer: HttpResponse = api_errors.database_away()
    else:
        answer = HttpResponse(loader.get_template("503.html").render(), status=503)
    answer["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return answer


handler500 = server_error
