"""Addresses of the pages."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from provisioner.web.views import (
    abandoned,
    accounts,
    administration,
    audit,
    bisections,
    command_line,
    forwarding,
    governor,
    health,
    jump,
    leases,
    logs,
    operations,
    pools,
    refreshing,
    sharing,
    templates,
    tokens,
    trail,
    webhooks,
    workspaces,
)

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("cli", command_line.command_line, name="command-line"),
    path("login/", accounts.SignInView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("me/", accounts.my_account, name="my-account"),
    path("", workspaces.workspace_list, name="workspace-list"),
    path("team/", workspaces.workspace_team_list, name="workspace-team-list"),
    path("trash/", workspaces.workspace_trash, name="workspace-trash"),
    path("retired/", workspaces.workspace_retired_list, name="workspace-retired-list"),
    path(
        "templates/<int:template_pk>/get/",
        workspaces.workspace_create,
        name="workspace-create",
    ),
    path("workspaces/<int:pk>/", workspaces.workspace_detail, name="workspace-detail"),
    path(
        "workspaces/<int:pk>/retire/",
        workspaces.workspace_retire,
        name="workspace-retire",
    ),
    path(
        "workspaces/<int:pk>/restore/",
        workspaces.workspace_restore,
        name="workspace-restore",
    ),
    path(
        "workspaces/<int:pk>/purge/", workspaces.workspace_purge, name="workspace-purge"
    ),
    path(
        "workspaces/<int:pk>/retry/", workspaces.workspace_retry, name="workspace-retry"
    ),
    path(
        "workspaces/<int:pk>/forward/",
        forwarding.workspace_forward,
        name="workspace-forward",
    ),
    path(
        "workspaces/<int:pk>/forward/look/",
        forwarding.workspace_forward_look,
        name="workspace-forward-look",
    ),
    path(
        "workspaces/<int:pk>/forward/abort/",
        forwarding.workspace_forward_abort,
        name="workspace-forward-abort",
    ),
    path(
        "workspaces/<int:pk>/extend/", leases.workspace_extend, name="workspace-extend"
    ),
    path("workspaces/<int:pk>/keep/", leases.workspace_keep, name="workspace-keep"),
    path(
        "workspaces/<int:pk>/release/",
        leases.workspace_release,
        name="workspace-release",
    ),
    path("workspaces/<int:pk>/share/", sharing.workspace_share, name="workspace-share"),
    path(
        "workspaces/<int:pk>/share/<int:share_pk>/revoke/",
        sharing.workspace_unshare,
        name="workspace-unshare",
    ),
    path("lease-policies/", leases.lease_policy_list, name="lease-policy-list"),
    path("lease-policies/edit/", leases.lease_policy_edit, name="lease-policy-edit"),
    path(
        "lease-policies/<int:pk>/remove/",
        leases.lease_policy_remove,
        name="lease-policy-remove",
    ),
    path("abandoned/", abandoned.abandoned_list, name="abandoned-list"),
    path(
        "abandoned/progress/", abandoned.abandoned_progress, name="abandoned-progress"
    ),
    path("templates/", templates.template_list, name="template-list"),
    path("templates/new/", templates.template_create, name="template-create"),
    path("templates/<int:pk>/", templates.template_detail, name="template-detail"),
    path("templates/<int:pk>/edit/", templates.template_edit, name="template-edit"),
    path("templates/<int:pk>/build/", templates.template_build, name="template-build"),
    path(
        "templates/<int:pk>/refresh/",
        refreshing.template_refresh,
        name="template-refresh",
    ),
    path("templates/<int:pk>/check/", templates.template_check, name="template-check"),
    path(
        "templates/<int:pk>/mails/",
        webhooks.template_subscribe,
        name="template-subscribe",
    ),
    path(
        "templates/<int:template_pk>/bisect/",
        bisections.bisection_create,
        name="bisection-create",
    ),
    path("bisections/", bisections.bisection_list, name="bisection-list"),
    path("bisections/<int:pk>/", bisections.bisection_detail, name="bisection-detail"),
    path(
        "bisections/<int:pk>/verdict/",
        bisections.bisection_verdict,
        name="bisection-verdict",
    ),
    path("bisections/<int:pk>/stop/", bisections.bisection_stop, name="bisection-stop"),
    path("webhooks/", webhooks.webhook_list, name="webhook-list"),
    path("webhooks/new/", webhooks.webhook_create, name="webhook-create"),
    path("webhooks/<int:pk>/", webhooks.webhook_detail, name="webhook-detail"),
    path("webhooks/<int:pk>/edit/", webhooks.webhook_edit, name="webhook-edit"),
    path("webhooks/<int:pk>/switch/", webhooks.webhook_switch, name="webhook-switch"),
    path("webhooks/<int:pk>/test/", webhooks.webhook_test, name="webhook-test"),
    path("webhooks/<int:pk>/secret/", webhooks.webhook_secret, name="webhook-secret"),
    path("webhooks/<int:pk>/delete/", webhooks.webhook_delete, name="webhook-delete"),
    path(
        "webhooks/<int:pk>/deliveries/<int:delivery_pk>/again/",
        webhooks.webhook_again,
        name="webhook-again",
    ),
    path("pools/", pools.pool_list, name="pool-list"),
    path("pools/new/", pools.pool_create, name="pool-create"),
    path("pools/<int:pk>/", pools.pool_detail, name="pool-detail"),
    path("pools/<int:pk>/edit/", pools.pool_edit, name="pool-edit"),
    path("pools/<int:pk>/delete/", pools.pool_delete, name="pool-delete"),
    path("refreshes/", refreshing.refresh_list, name="refresh-list"),
    path("refreshes/pause/", refreshing.refresh_pause, name="refresh-pause"),
    path("operations/", operations.operation_list, name="operation-list"),
    path("operations.csv", operations.operation_download, name="operation-download"),
    path("perforce/", governor.perforce_server_list, name="perforce-server-list"),
    path(
        "perforce/<int:pk>/pause/",
        governor.perforce_server_pause,
        name="perforce-server-pause",
    ),
    path(
        "perforce/<int:pk>/resume/",
        governor.perforce_server_resume,
        name="perforce-server-resume",
    ),
    path("operations/<int:pk>/", operations.operation_detail, name="operation-detail"),
    path("operations/<int:pk>/log/", logs.operation_log, name="operation-log"),
    path(
        "operations/<int:pk>/<step>/log/",
        logs.operation_step_log,
        name="operation-step-log",
    ),
    path(
        "operations/<int:pk>/<step>/log.txt",
        logs.operation_step_log_download,
        name="operation-step-log-download",
    ),
    path("tokens/", tokens.token_list, name="token-list"),
    path("tokens/everybody/", tokens.token_everybody_list, name="token-everybody-list"),
    path("tokens/<prefix>/revoke/", tokens.token_revoke, name="token-revoke"),
    path("trail/", trail.trail, name="trail"),
    path("trail.csv", trail.trail_download, name="trail-download"),
    path("audit/", audit.audit, name="audit"),
    path("audit/run/", audit.audit_run, name="audit-run"),
    path("audit/<int:pk>/", audit.finding_detail, name="finding-detail"),
    path("jump/", jump.jump, name="jump"),
    path("overview/", administration.overview, name="overview"),
    path(
        "workspaces/",
        administration.admin_workspace_list,
        name="admin-workspace-list",
    ),
    path("limits/", administration.limit_list, name="limit-list"),
]
