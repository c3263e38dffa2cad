"""Addresses of the pages."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from provisioner.bisect import views as bisect_views
from provisioner.catalog.views import refresh, templates
from provisioner.dashboard.views import (
    administration,
    command_line,
    health,
    palette,
    perforce_servers,
    setup,
    slots,
)
from provisioner.dashboard.views import audit_log as audit_log_views
from provisioner.drift import views as drift_views
from provisioner.engine.views import logs, operations
from provisioner.leases.views import abandoned, leases
from provisioner.notify import views as notify_views
from provisioner.people.views import people, sign_in, tokens
from provisioner.pools import views as pool_views
from provisioner.sites.views import sites
from provisioner.transfer import views as transfer_views
from provisioner.workspaces.views import checking, sharing, workspaces

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("cli", command_line.command_line, name="command-line"),
    path("login/", sign_in.SignInView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("me/", sign_in.my_account, name="my-account"),
    path("me/password/", sign_in.my_password, name="my-password"),
    path("", workspaces.workspace_list, name="workspace-list"),
    path("welcome/", setup.welcome, name="welcome"),
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
    path("workspaces/<int:pk>/look/", checking.workspace_look, name="workspace-look"),
    path(
        "workspaces/<int:pk>/forward/",
        transfer_views.workspace_forward,
        name="workspace-forward",
    ),
    path(
        "workspaces/<int:pk>/forward/abort/",
        transfer_views.workspace_forward_abort,
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
    path("workspaces/<int:pk>/open/", sharing.workspace_open, name="workspace-open"),
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
        "templates/<int:pk>/build/stop/",
        templates.template_build_stop,
        name="template-build-stop",
    ),
    path(
        "templates/<int:pk>/refresh/",
        refresh.template_refresh,
        name="template-refresh",
    ),
    path("templates/<int:pk>/check/", templates.template_check, name="template-check"),
    path(
        "templates/<int:pk>/mails/",
        notify_views.template_subscribe,
        name="template-subscribe",
    ),
    path(
        "templates/<int:template_pk>/bisect/",
        bisect_views.bisection_create,
        name="bisection-create",
    ),
    path("bisections/", bisect_views.bisection_list, name="bisection-list"),
    path(
        "bisections/<int:pk>/", bisect_views.bisection_detail, name="bisection-detail"
    ),
    path(
        "bisections/<int:pk>/verdict/",
        bisect_views.bisection_verdict,
        name="bisection-verdict",
    ),
    path(
        "bisections/<int:pk>/stop/", bisect_views.bisection_stop, name="bisection-stop"
    ),
    path("webhooks/", notify_views.webhook_list, name="webhook-list"),
    path("webhooks/new/", notify_views.webhook_create, name="webhook-create"),
    path("webhooks/<int:pk>/", notify_views.webhook_detail, name="webhook-detail"),
    path("webhooks/<int:pk>/edit/", notify_views.webhook_edit, name="webhook-edit"),
    path(
        "webhooks/<int:pk>/switch/", notify_views.webhook_switch, name="webhook-switch"
    ),
    path("webhooks/<int:pk>/test/", notify_views.webhook_test, name="webhook-test"),
    path(
        "webhooks/<int:pk>/secret/", notify_views.webhook_secret, name="webhook-secret"
    ),
    path(
        "webhooks/<int:pk>/delete/", notify_views.webhook_delete, name="webhook-delete"
    ),
    path(
        "webhooks/<int:pk>/deliveries/<int:delivery_pk>/again/",
        notify_views.webhook_again,
        name="webhook-again",
    ),
    path("pools/", pool_views.pool_list, name="pool-list"),
    path("pools/new/", pool_views.pool_create, name="pool-create"),
    path("pools/<int:pk>/", pool_views.pool_detail, name="pool-detail"),
    path("pools/<int:pk>/edit/", pool_views.pool_edit, name="pool-edit"),
    path("pools/<int:pk>/delete/", pool_views.pool_delete, name="pool-delete"),
    path("refreshes/", refresh.refresh_list, name="refresh-list"),
    path("refreshes/pause/", refresh.refresh_pause, name="refresh-pause"),
    path("operations/", operations.operation_list, name="operation-list"),
    path("perforce/", slots.perforce_server_list, name="perforce-server-list"),
    path(
        "perforce/new/",
        perforce_servers.perforce_server_create,
        name="perforce-server-create",
    ),
    path(
        "perforce/<int:pk>/",
        perforce_servers.perforce_server_detail,
        name="perforce-server-detail",
    ),
    path(
        "perforce/<int:pk>/edit/",
        perforce_servers.perforce_server_edit,
        name="perforce-server-edit",
    ),
    path(
        "perforce/<int:pk>/test/",
        perforce_servers.perforce_server_test,
        name="perforce-server-test",
    ),
    path(
        "perforce/<int:pk>/pause/",
        slots.perforce_server_pause,
        name="perforce-server-pause",
    ),
    path(
        "perforce/<int:pk>/resume/",
        slots.perforce_server_resume,
        name="perforce-server-resume",
    ),
    path("sites/", sites.site_list, name="site-list"),
    path("sites/new/", sites.site_create, name="site-create"),
    path("sites/<int:pk>/", sites.site_detail, name="site-detail"),
    path("sites/<int:pk>/edit/", sites.site_edit, name="site-edit"),
    path("sites/<int:pk>/test/", sites.site_test, name="site-test"),
    path("sites/<int:pk>/try/", sites.site_try_out, name="site-try-out"),
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
    path("people/", people.person_list, name="person-list"),
    path("people/<int:pk>/", people.person_detail, name="person-detail"),
    path("people/<int:pk>/edit/", people.person_edit, name="person-edit"),
    path("teams/", people.team_list, name="team-list"),
    path("teams/new/", people.team_create, name="team-create"),
    path("teams/<int:pk>/edit/", people.team_edit, name="team-edit"),
    path("trail/", audit_log_views.trail, name="trail"),
    path("audit/", drift_views.audit, name="audit"),
    path("audit/run/", drift_views.audit_run, name="audit-run"),
    path("audit/adopt/", drift_views.audit_adopt, name="audit-adopt"),
    path("audit/<int:pk>/", drift_views.finding_detail, name="finding-detail"),
    path("jump/", palette.jump, name="jump"),
    path("overview/", administration.overview, name="overview"),
    path(
        "workspaces/",
        administration.admin_workspace_list,
        name="admin-workspace-list",
    ),
    path("limits/", administration.limit_list, name="limit-list"),
]
