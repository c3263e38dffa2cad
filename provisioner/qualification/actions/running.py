"""Measure a server, and try again what failed."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.refusals import require_complete
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template
from provisioner.engine.starting import start_operation
from provisioner.lib.refusals import InvalidRequest
from provisioner.qualification import refusals
from provisioner.qualification.actions.batches import remove
from provisioner.qualification.models import (
    BOUNDS,
    UNDER_WAY,
    USUAL,
    QualificationOperation,
    QualificationRun,
)
from provisioner.qualification.profiles import BY_CODE, LEVELS, Target
from provisioner.qualification.queries import workspaces_of
from provisioner.qualification.states import set_run_state
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.queries import can_change_sandbox
from provisioner.sites.models import PerforceServer, Site
from provisioner.workspaces.actions.making import choose_snapshot

S = QualificationRun.State
_LOOPBACK = ("127.", "::1", "localhost")


def run_start(
    *,
    by: User,
    profile: str,
    sandbox: Sandbox | None = None,
    server: PerforceServer | None = None,
    template: Template | None = None,
    is_cold: bool = False,
    note: str = "",
    **given: int | None,
) -> QualificationRun:
    """Measure a sandbox, a server that is marked as scratch, or workspaces of a
    template.

    `given` are parameters; those left out, or None, are the profile's usual ones.

    Raises: NotAllowed, InvalidRequest, and the refusals of this feature.
    """
    require_profile(profile)
    _require_fitting(profile, sandbox=sandbox, server=server, template=template)
    numbers = parameters_of(profile, given)
    with transaction.atomic():
        if template is not None:
            site = _of_template(by, template, is_cold=is_cold)
            server = site.perforce_server
        elif sandbox is not None:
            site, server = _of_sandbox(by, sandbox, hosts=numbers["hosts"])
        else:
            assert server is not None
            site = _of_server(by, server, is_cold=is_cold)
            if BY_CODE[profile].target == Target.SANDBOX:
                raise refusals.ProfileNeedsASandbox(
                    profile=BY_CODE[profile].title, server=server.name
                )
        _require_quiet(sandbox, server)
        run = insert_run(
            name=f"{profile} at {(template or sandbox or server).name}",
            profile=profile,
            perforce_server=server,
            sandbox=sandbox,
            template=template,
            site=site,
            owner=by,
            state=S.RUNNING if template is None else S.WAITING,
            is_cold=is_cold,
            note=note,
            **numbers,
        )
        if template is None:
            start_operation(QualificationOperation.RUN, about=run, by=by)
    return run


def require_profile(profile: str) -> None:
    """Refuse a profile that there is not. Raises: InvalidRequest."""
    if profile not in BY_CODE:
        raise InvalidRequest.at("profile", f"Choose one of {', '.join(BY_CODE)}.")


def insert_run(**fields: Any) -> QualificationRun:
    """Write the row of a run. Raises: InvalidRequest."""
    run = QualificationRun(**fields)
    try:
        run.clean_fields(exclude=["subject"])
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidRequest.at(field, " ".join(messages)) from error
    run.save()
    caches = "" if run.template else f", {'cold' if run.is_cold else 'warm'}"
    record_event(
        run,
        kind="qualification_requested",
        message=f"Requested run {run.pk} at {run.measured_at}: {run.repeats} "
        f"times{caches}.",
        actor=run.owner,
    )
    return run


def _require_fitting(
    profile: str,
    *,
    sandbox: Sandbox | None,
    server: PerforceServer | None,
    template: Template | None,
) -> None:
    """Refuse what a profile does not measure. Raises: InvalidRequest."""
    wants_template = BY_CODE[profile].target == Target.TEMPLATE
    if wants_template and template is None:
        raise InvalidRequest.at("template", "Choose the template to clone.")
    if template is not None and not wants_template:
        raise InvalidRequest.at(
            "template", "Only the profile “Workspaces” is measured with a template."
        )
    if sum(each is not None for each in (sandbox, server, template)) != 1:
        raise InvalidRequest.at("server", "Choose either a sandbox or a server.")


def parameters_of(profile: str, given: dict[str, int | None]) -> dict[str, int]:
    """Return every parameter. Raises: InvalidRequest, OneHostAlone, TypeError."""
    usual = USUAL | BY_CODE[profile].usual
    if unknown := set(given) - set(BOUNDS):
        raise TypeError(f"no parameters: {unknown}")
    found: dict[str, int] = {}
    for name, (low, high) in BOUNDS.items():
        value = given.get(name)
        found[name] = usual[name] if value is None else value
        if not low <= found[name] <= high:
            raise InvalidRequest.at(name, f"Choose {low:,} to {high:,}.")
    if BY_CODE[profile].target == Target.TEMPLATE and found["children"] not in LEVELS:
        raise InvalidRequest.at(
            "children", f"Choose one of {', '.join(map(str, LEVELS))}."
        )
    if found["hosts"] > 1 and "hosts" not in BY_CODE[profile].usual:
        raise refusals.OneHostAlone(profile=BY_CODE[profile].title)
    return found


def _of_sandbox(
    by: User, sandbox: Sandbox, *, hosts: int
) -> tuple[Site, PerforceServer]:
    """Return site and original of a sandbox that may be measured."""
    permissions.require(can_change_sandbox(by, sandbox))
    locked = Sandbox.with_retired.select_for_update(of=("self",), no_key=True)
    sandbox = locked.select_related("host").get(pk=sandbox.pk)
    if sandbox.state != Sandbox.State.READY:
        raise refusals.SandboxNotReady(
            name=sandbox.name, state=sandbox.get_state_display().lower()
        )
    require_within_reach(sandbox, hosts=hosts)
    return sandbox.site, sandbox.perforce_server


def require_within_reach(sandbox: Sandbox, *, hosts: int) -> None:
    """Refuse several hosts where only its own sees a sandbox.

    Raises: SandboxOutOfReach.
    """
    if hosts > 1 and sandbox.host.address.startswith(_LOOPBACK):
        raise refusals.SandboxOutOfReach(
            name=sandbox.name, address=sandbox.host.address
        )


def _of_server(by: User, server: PerforceServer, *, is_cold: bool) -> Site:
    """Return the site whose hosts measure a server that is marked as scratch."""
    permissions.require(permissions.can_administer(by))
    server = PerforceServer.objects.select_for_update(no_key=True).get(pk=server.pk)
    if not server.is_scratch:
        raise refusals.NotScratch(server=server.name)
    if is_cold:
        raise refusals.ColdNeedsASandbox(server=server.name)
    site = Site.objects.filter(perforce_server=server).order_by("name").first()
    if site is None:
        raise refusals.ServerWithoutSite(server=server.name)
    return site


def _of_template(by: User, template: Template, *, is_cold: bool) -> Site:
    """Return the site at which workspaces of a template are measured."""
    permissions.require(permissions.can_administer(by))
    require_complete(by)
    if is_cold:
        raise refusals.ColdNeedsASandbox(server=template.name)
    choose_snapshot(template, None, site=template.site)
    site: Site = template.site
    return site


def _require_quiet(sandbox: Sandbox | None, server: PerforceServer) -> None:
    """Refuse a second run at a time. Raises: AlreadyMeasured."""
    running = QualificationRun.objects.filter(
        state__in=UNDER_WAY, sandbox=sandbox, perforce_server=server
    ).first()
    if running is not None:
        raise refusals.AlreadyMeasured(
            target=running.measured_at, number=str(running.pk)
        )


def run_retry(*, by: User, run: QualificationRun) -> QualificationRun:
    """Go on with a run that failed; repeats that are complete are kept.

    Raises: NotAllowed, RunNotFailed, and what `run_start` raises.
    """
    with transaction.atomic():
        locked = QualificationRun.objects.select_for_update(of=("self",), no_key=True)
        run = locked.select_related(
            "sandbox__host", "perforce_server", "template__site", "owner"
        ).get(pk=run.pk)
        permissions.require(by.is_administrator or run.owner_id == by.pk)
        if run.state != S.FAILED:
            raise refusals.RunNotFailed(
                number=str(run.pk), state=run.get_state_display().lower()
            )
        if run.template is not None:
            _of_template(by, run.template, is_cold=run.is_cold)
        elif run.sandbox is not None:
            _of_sandbox(by, run.sandbox, hosts=run.hosts)
        else:
            _of_server(by, run.perforce_server, is_cold=run.is_cold)
        _require_quiet(run.sandbox, run.perforce_server)
        QualificationRun.objects.filter(pk=run.pk).update(attempt=F("attempt") + 1)
        to = S.RUNNING if run.template is None else S.WAITING
        set_run_state(run, to, message="Goes on.", actor=by)
        if run.template is None:
            start_operation(QualificationOperation.RUN, about=run, by=by)
        else:
            remove(run, workspaces_of(run))
    return run
