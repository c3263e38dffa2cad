"""Every page that the address configuration knows, with an example of what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.test import Client
from django.urls import URLResolver, get_resolver, reverse

from tests.e2e.furnished import Furnished

# Not pages: they end a session, lead on, or are read by programs and other pages.
LEFT_OUT = {
    "logout",
    "login",
    "password-forgotten",
    "password-new",
    "workspace-check",
    "healthz",
    "readyz",
    "metrics",
    "single-sign-on",
    "single-sign-on-callback",
    "command-line",
    "mirror-progress",
    "sandbox-progress",
    "qualification-progress",
    "qualification-csv",
    "qualification-log",
    "operation-step-log-download",
    "operation-step-log-error",
    "workspace-rescue-download",
    "workspace-share-names",
}

Arguments = list[tuple[object, ...]]


def examples(rows: Furnished) -> dict[str, Arguments]:
    """Return what addresses are about, by name of the address."""
    template, workspace = rows.template.pk, rows.workspace.pk
    snapshot = rows.snapshots[0].pk
    in_every_state = (
        *(rows.workspace, rows.making, rows.waiting, rows.failed, rows.refused),
        *(rows.trashed, rows.retired, rows.made_by_transfer, rows.shared, rows.mates),
    )
    operations = [one.operations.latest("pk") for one in (rows.making, rows.failed)]
    return {
        "workspace-create": [(template,)],
        "help-page": [("glossary",), ("architecture",)],
        "workspace-detail": [(one.pk,) for one in in_every_state],
        "workspace-rescue": [(rows.trashed.pk, rows.trashed.rescues.latest("pk").pk)],
        "workspace-transfer": [(rows.old.pk,)],
        "workspace-keep": [(workspace,)],
        "workspace-split": [(workspace,)],
        "split-policy-edit": [(rows.site.pk,)],
        "ceiling-edit": [(rows.site.pk, "builds")],
        "volume-policy-edit": [(rows.site.pk,)],
        "volume-policy-template": [(rows.template.pk,)],
        "template-move": [(rows.template.pk,)],
        "dedupe-plan-edit": [(rows.site.pk,)],
        "server-log-edit": [(rows.server.pk,)],
        "server-log-upload": [(rows.server.pk,)],
        "server-command-detail": [(rows.logged.pk,)],
        "workspace-extend": [(workspace,)],
        "workspace-clone": [(workspace,)],
        "workspace-snapshot": [(workspace, rows.taken.pk)],
        "workspace-snapshot-restore": [(workspace, rows.taken.pk)],
        "workspace-snapshot-list": [(workspace,)],
        "workspace-copy-restore": [(workspace, rows.copy.pk)],
        "workspace-share": [(workspace,)],
        "workspace-purge": [(rows.trashed.pk,)],
        "workspace-retire": [(rows.refused.pk,), (workspace,)],
        "template-detail": [
            (one.pk,)
            for one in (
                *(rows.template, rows.building, rows.broken, rows.fresh),
                rows.archived,
            )
        ],
        "template-rename": [(rows.archived.pk,)],
        "template-owner": [(template,)],
        "template-archive": [(template,)],
        "template-delete": [(template,), (rows.archived.pk,)],
        "snapshot-hold": [(snapshot,)],
        "snapshot-withdraw": [(snapshot,)],
        "snapshot-describe": [(rows.held.pk,)],
        "template-edit": [(template,)],
        "template-build": [(template,)],
        "template-build-stop": [(rows.building.pk,)],
        "template-refresh": [(template,)],
        "template-check": [(template,)],
        "bisection-create": [(template,)],
        "bisection-detail": [(rows.bisection.pk,)],
        "webhook-detail": [(rows.webhook.pk,)],
        "webhook-edit": [(rows.webhook.pk,)],
        "webhook-delete": [(rows.webhook.pk,)],
        "pool-detail": [(rows.pool.pk,)],
        "pool-edit": [(rows.pool.pk,)],
        "pool-delete": [(rows.pool.pk,)],
        "mirror-detail": [(rows.mirror.pk,), (rows.transferring_to.pk,)],
        "mirror-edit": [(rows.mirror.pk,)],
        "sandbox-detail": [
            *((rows.sandbox.pk,), (rows.failed_sandbox.pk,)),
            (rows.stopped_sandbox.pk,),
        ],
        "qualification-detail": [
            *((rows.run.pk,), (rows.failed_run.pk,), (rows.workspaces_run.pk,)),
        ],
        "qualification-report": [(rows.run.pk,), (rows.workspaces_run.pk,)],
        "sandbox-extend": [(rows.sandbox.pk,)],
        "sandbox-retire": [(rows.sandbox.pk,)],
        "server-volumes": [(rows.server.pk,)],
        "checkpoint-plan-edit": [(rows.server.pk,)],
        "verification-plan-edit": [(rows.server.pk,)],
        "drill-plan-edit": [(rows.server.pk,)],
        "verification-detail": [(rows.verification.pk,)],
        "mirror-transfer": [(rows.mirror.pk,)],
        "mirror-delete": [(rows.mirror.pk,)],
        "mirror-copies": [(rows.mirror.pk,)],
        "mirror-promote": [(rows.mirror.pk,)],
        "mirror-reestablish": [(rows.mirror.pk,)],
        "mirror-give-up": [(rows.mirror.pk,)],
        "perforce-server-detail": [(rows.server.pk,)],
        "perforce-server-edit": [(rows.server.pk,)],
        "probe-plan-edit": [(rows.server.pk,)],
        "orphan-rule": [(rows.server.pk,)],
        "advice-rule": [(rows.server.pk,)],
        "program-release": [(rows.server.pk,)],
        "process-end": [(rows.process.pk,), (rows.pull.pk,)],
        "site-detail": [(rows.site.pk,), (rows.away.pk,)],
        "site-edit": [(rows.site.pk,)],
        "operation-detail": [
            (one.pk,) for one in (*operations, rows.failed_build, rows.build)
        ],
        "operation-log": [(rows.failed_build.pk,)],
        "operation-step-log": [(rows.failed_build.pk, "build")],
        "lease-policy-remove": [(rows.lease_policy.pk,)],
        "person-detail": [(rows.alice.pk,)],
        "person-edit": [(rows.alice.pk,)],
        "person-password": [(rows.alice.pk,)],
        "person-close": [(rows.alice.pk,)],
        "team-edit": [(rows.alice.team_id,)],
        "finding-detail": [(rows.finding.pk,), (rows.differs.pk,)],
    }


def pages() -> Iterator[tuple[str, str]]:
    """Yield the routes and names of pages: those of the API and /admin/ stand apart."""
    for entry in get_resolver().url_patterns:
        if isinstance(entry, URLResolver) and not str(entry.pattern):
            yield from _below(entry)


def _below(resolver: URLResolver, route: str = "") -> Iterator[tuple[str, str]]:
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            yield from _below(entry, f"{route}{entry.pattern}")
        else:
            yield f"{route}{entry.pattern}", entry.name or ""


def addresses_of(rows: Furnished) -> Iterator[str]:
    """Yield the address of every page; a new one needs an example of what it shows."""
    browser, known = Client(), examples(rows)
    browser.force_login(rows.admin)
    for route, name in pages():
        if name in LEFT_OUT:
            continue
        if "<" in route and name not in known:
            path = re.sub(r"<(?:int:)?\w+>", "7", route)
            assert not is_page(browser, f"/{path}"), f"There is no example of {name}."
        for arguments in known.get(name, [()]):
            if "<" not in route or arguments:
                address = reverse(name, args=arguments)
                if is_page(browser, address):
                    yield address


def is_page(browser: Client, address: str) -> bool:
    """Return whether it can be checked, without doing so."""
    answer = browser.options(address)
    return answer.status_code != 405 or "GET" in answer["Allow"]
