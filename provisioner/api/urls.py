"""Addresses under /api/: version 1, its schema, and a page to read it."""

from __future__ import annotations

from django.urls import path, re_path
from django.views.generic import TemplateView
from rest_framework.routers import SimpleRouter

from provisioner.api.schema import SchemaView
from provisioner.api.viewsets import NothingHere
from provisioner.bisect.api import views as bisections
from provisioner.catalog.api import checks
from provisioner.catalog.api.templates import SnapshotViewSet, TemplateViewSet
from provisioner.dashboard.api import audit_log as audit_log_api
from provisioner.dashboard.api import perforce_servers
from provisioner.drift import api as drift_api
from provisioner.engine.api.operations import OperationViewSet
from provisioner.leases.api import abandoned, leases
from provisioner.limits import api as limit_api
from provisioner.notify import api as notify_api
from provisioner.people import api as people_api
from provisioner.pools import api as pool_api
from provisioner.sites.api import sites
from provisioner.transfer.api import views as forwarding
from provisioner.workspace_requests import api as workspace_requests_api
from provisioner.workspaces.api import shares

app_name = "api"

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("v1/tokens", people_api.TokenViewSet, basename="token")
router.register("v1/templates", TemplateViewSet, basename="template")
router.register("v1/snapshots", SnapshotViewSet, basename="snapshot")
router.register(
    "v1/workspaces", workspace_requests_api.WorkspaceViewSet, basename="workspace"
)
router.register(
    "v1/workspaces", forwarding.WorkspaceCarryViewSet, basename="workspace-carry"
)
router.register(
    "v1/workspaces", leases.WorkspaceLeaseViewSet, basename="workspace-lease"
)
router.register("v1/workspaces", shares.WorkspaceOpenViewSet, basename="workspace-root")
router.register(
    "v1/workspaces/<int:workspace_pk>/shares",
    shares.WorkspaceShareViewSet,
    basename="workspace-share",
)
router.register("v1/lease-policies", leases.LeasePolicyViewSet, basename="lease-policy")
router.register("v1/pools", pool_api.PoolViewSet, basename="pool")
router.register("v1/abandoned", abandoned.AbandonedViewSet, basename="abandoned")
router.register("v1/bisections", bisections.BisectionViewSet, basename="bisection")
router.register("v1/operations", OperationViewSet, basename="operation")
router.register("v1/limits", limit_api.LimitViewSet, basename="limit")
router.register(
    "v1/perforce-servers",
    perforce_servers.PerforceServerViewSet,
    basename="perforce-server",
)
router.register("v1/sites", sites.SiteViewSet, basename="site")
router.register("v1/events", audit_log_api.EventViewSet, basename="event")
router.register("v1/findings", drift_api.FindingViewSet, basename="finding")
router.register("v1/templates", checks.TemplateCheckViewSet, basename="template-sanity")
router.register(
    "v1/templates", notify_api.SubscriptionViewSet, basename="template-mails"
)
router.register("v1/webhooks", notify_api.WebhookViewSet, basename="webhook")
router.register(
    "v1/webhooks/<int:webhook_pk>/deliveries",
    notify_api.DeliveryViewSet,
    basename="webhook-delivery",
)

urlpatterns = [
    *router.urls,
    path("schema/", SchemaView.as_view(), name="schema"),
    path("docs/", TemplateView.as_view(template_name="api/docs.html"), name="docs"),
    re_path("", NothingHere.as_view()),
]
