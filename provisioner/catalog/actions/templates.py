"""Define and build templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.catalog import checks
from provisioner.catalog.events import before_building
from provisioner.catalog.models import (
    MOVING_TEMPLATES,
    BuildParameters,
    PinnedTemplate,
    Snapshot,
    Template,
    TemplateOperation,
    VolumeOperation,
)
from provisioner.catalog.queries import reference_snapshot
from provisioner.catalog.refusals import (
    NothingToRefresh,
    NothingToStop,
    TemplateBusy,
    TemplateInvalid,
    require_not_archived,
)
from provisioner.catalog.states import set_template_state
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.engine.starting import start_operation
from provisioner.gateways.perforce.depot_view import DepotView
from provisioner.gateways.perforce.specs import (
    SpecRefused,
    check_client_options,
    check_line_end,
    check_stream,
    check_submit_options,
    check_view,
    parse_client_spec,
)
from provisioner.lib.databases import refusing_taken
from provisioner.lib.names import check_name
from provisioner.lib.refusals import InvalidRequest, TooMany
from provisioner.lib.sizes import size_text
from provisioner.routing.kinds import Purpose
from provisioner.routing.queries import route_for
from provisioner.sites.models import Site
from provisioner.sites.queries import aggregate_for_new

LARGEST_CHANGE = 2**31 - 1
MOST_PINNED = 24
MOST_PATHS = 100
# What ld.so(8) and shells read from their environment before they run anything.
OF_THE_LOADER = ("LD_", "GLIBC_TUNABLES", "BASH_ENV", "BASH_FUNC_")
_DEPOT_PATH = re.compile(r"//[^/@#*\x00-\x1f\"]+(?:/[^/@#*\x00-\x1f\"]+)+")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
SECRET = frozenset({"build_environment"})
# What a template is made from. The rest is for good, or is written by its builds.
DEFINITION = (
    *("description", "view", "stream", "line_end", "client_options", "submit_options"),
    *("build_command", "build_environment", "bisection_environment"),
    *("commands_have_network", "build_timeout_seconds"),
    *("test_command", "test_timeout_seconds", "wanted_quality"),
    *("ignore_patterns", "error_patterns", "volume_size_bytes", "snapshots_to_keep"),
)


def template_create(
    *, by: User, site: Site, name: str, aggregate: str = "", **fields: Any
) -> Template:
    """Define a template. Nothing is created on ONTAP or Perforce before its build.

    `aggregate` is where its volume will be; "" leaves that to the site.

    Raises: NotAllowed, InvalidRequest, TemplateInvalid (such as a view of a whole
    server), NameTaken.
    """
    permissions.require(permissions.can_manage_templates(by))
    check_name(name)
    if aggregate:
        check_aggregate(site, aggregate)
    template = Template(site=site, name=name, owner=by, aggregate=aggregate, **fields)
    check_definition(template)
    unique = "template_name_unique_in_site"
    with refusing_taken(name, constraint=unique), transaction.atomic():
        template.save()
        record_event(template, kind="template_defined", message="Defined.", actor=by)
        checks.check_later(template)
    return template


def check_aggregate(site: Site, aggregate: str) -> None:
    """Refuse an aggregate that the SVM was not seen to have. Raises: InvalidRequest."""
    measured = site.aggregates.order_by("name").values_list("name", flat=True)
    known = sorted({site.aggregate, *measured})
    if aggregate not in known:
        raise InvalidRequest.at(
            "aggregate",
            f"The SVM {site.svm} is not known to have it. Choose one of: "
            f"{', '.join(known)}.",
        )


def template_update(*, by: User, template: Template, **fields: Any) -> Template:
    """Change a template's definition, which applies from the next build on.

    Only a new size is given to the volume at once, by an operation.

    Raises: NotAllowed, InvalidRequest, TemplateInvalid, TemplateBusy.
    """
    permissions.require(permissions.can_manage_templates(by))
    if for_good := sorted(fields.keys() - DEFINITION):
        raise InvalidRequest(f"{for_good[0]}: this cannot be changed later.")
    for field, value in fields.items():
        setattr(template, field, value)
    _check_new_size(template)
    check_definition(template)
    with transaction.atomic():
        before = Template.objects.values(*fields).get(pk=template.pk)
        saved = Template.objects.filter(pk=template.pk).exclude(
            state__in=MOVING_TEMPLATES
        )
        if not saved.update(**fields):
            raise TemplateBusy(name=template.name)
        data = changes_between(before, fields, secret=SECRET)
        record_event(
            template,
            kind="template_changed",
            message=f"Changed {', '.join(data) or 'nothing'}.",
            actor=by,
            data=data,
        )
        checks.check_later(template)
        if template.volume_uuid and "volume_size_bytes" in data:
            if is_settling(template):
                raise TemplateBusy(name=template.name)
            start_operation(VolumeOperation.CHANGE, by=by, about=template)
    return template


def _check_new_size(template: Template) -> None:
    """Refuse another size that is below what the template's volume holds.

    ONTAP may have grown the volume beyond its definition, which can be changed.

    Raises: InvalidRequest.
    """
    used, reserve = template.used_bytes or 0, template.snapshot_reserve_percent or 0
    least = used * 100 // (100 - reserve)  # the reserve is not for files
    if template.volume_size_bytes >= least:
        return
    saved = Template.objects.values_list("volume_size_bytes", flat=True)
    if saved.get(pk=template.pk) != template.volume_size_bytes:
        raise InvalidRequest.at(
            "volume_size_bytes",
            f"Its volume holds {size_text(used)}. Give it at least {size_text(least)}, "
            "or narrow its view and build it clean first.",
        )


def check_definition(template: Template) -> None:
    """Refuse a definition that cannot be built.

    Raises: TemplateInvalid, InvalidRequest.
    """
    if bool(template.view_lines) == bool(template.stream):
        raise TemplateInvalid("Give either view lines or a stream.")
    try:
        if template.view_lines:
            check_view(template.view_lines)
        else:
            check_stream(template.stream)
        check_client_options(template.client_options)
        check_submit_options(template.submit_options)
        check_line_end(template.line_end)
    except SpecRefused as error:
        raise TemplateInvalid(error.sentence) from error
    try:
        template.clean_fields()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidRequest.at(field, messages[0]) from error
    for field in sorted(DEFINITION):
        if _NO_TEXT.search(str(getattr(template, field))):
            raise InvalidRequest.at(
                field, "NUL and invalid characters are not allowed."
            )
    wants_test = template.wanted_quality == Template.WantedQuality.TESTED
    if wants_test and not template.test_command.strip():
        raise TemplateInvalid(
            "A template without a test command cannot require tested snapshots."
        )
    for field in ("build_environment", "bisection_environment"):
        _check_environment(field, getattr(template, field))


def _check_environment(field: str, variables: Any) -> None:
    """Refuse an environment that no command could be started with."""
    if not isinstance(variables, dict):
        raise InvalidRequest.at(field, "Give names with their values.")
    for name, value in variables.items():
        if not (name.isascii() and name.isidentifier()):
            raise InvalidRequest.at(field, f"“{name}” is not a valid variable name.")
        if name.startswith(OF_THE_LOADER):
            raise InvalidRequest.at(
                field,
                f"{name} would change the programs that start the command. "
                "Export it in the command itself.",
            )
        if not isinstance(value, str) or "\0" in value:
            raise InvalidRequest.at(field, f"The value of {name} is no text.")


def template_build(
    *,
    by: User,
    template: Template,
    change: int | None = None,
    is_clean: bool = False,
    paths: Sequence[str] = (),
) -> Operation:
    """Request a build of a template at a submitted change, by default the newest.

    The build continues from the last one; with `is_clean` everything that is not in
    Perforce is removed first. With `paths`, depot paths in the view, only these are
    updated, and the snapshot never becomes the default.

    Raises: NotAllowed, TemplateArchived, TemplateBusy, InvalidRequest,
    NothingToRefresh, LimitReached.
    """
    permissions.require(permissions.can_manage_templates(by))
    if change is not None and not 1 <= change <= LARGEST_CHANGE:
        raise InvalidRequest(f"A change is a number from 1 to {LARGEST_CHANGE}.")
    asked = BuildParameters(
        change=change,
        clean=is_clean,
        paths=_checked_paths(template, paths, is_clean=is_clean) if paths else (),
    )
    with transaction.atomic():
        template = (
            # Not as a key: workspaces that refer to it are being asked for meanwhile.
            Template.objects.select_for_update(of=("self",), no_key=True)
            .select_related("site__perforce_server", "routed_to", "owner")
            .get(pk=template.pk)
        )
        require_not_archived(template)
        if template.state == Template.State.BUILDING or is_settling(template):
            raise TemplateBusy(name=template.name)
        is_spread = template.site.spreads_templates and not template.aggregate
        if is_spread and not template.volume_uuid:
            asked = replace(asked, aggregate=aggregate_for_new(template.site))
        before_building.send(Template, template=template)
        if not asked.paths and _is_moved(template):
            asked = replace(asked, clean=True)
        set_template_state(
            template,
            Template.State.BUILDING,
            message=_told(asked),
            actor=by,
        )
        build = start_operation(
            TemplateOperation.BUILD,
            by=by,
            about=template,
            parameters=asked,
        )
        if not asked.paths:
            # What is refreshed in part says nothing about the whole.
            template.last_build = build
            if asked.clean:
                template.clean_build_at = build.created_at
            template.save(update_fields=["last_build", "clean_build_at"])
    return build


def _is_moved(template: Template) -> bool:
    """Route a locked template; return whether its client has to be made again.

    Its have list stays at the server that the client was bound to.
    """
    before = template.perforce_server
    route = route_for(template.site, purpose=Purpose.TEMPLATE, owner=template.owner)
    for name, value in route.columns.items():
        setattr(template, name, value)
    template.save(update_fields=list(route.columns))
    last = template.last_build
    if last is None:
        return False
    if template.perforce_server == before:
        was_moving = template.routed_to is not None and BuildParameters.of(last).clean
        return (
            was_moving
            and not last.steps.filter(name="clean", state=Step.State.DONE).exists()
        )
    servers = (before.served_by, template.perforce_server.served_by)
    return any(server.what.binds_clients for server in servers)


def template_build_stop(*, by: User, template: Template) -> Operation:
    """Stop the running build. It publishes nothing; published snapshots stay.

    Its files stay in the volume for the next build, which waits until the running step
    has settled.

    Raises: NotAllowed, NothingToStop.
    """
    permissions.require(permissions.can_manage_templates(by))
    with transaction.atomic():
        # As its jobs do it: the operation first, then what it is of.
        build = (
            template.operations.select_for_update(of=("self",))
            .filter(kind=TemplateOperation.BUILD, state=Operation.State.RUNNING)
            .first()
        )
        if build is None or _is_publishing(build):
            raise NothingToStop(name=template.name)
        template = Template.objects.select_for_update(of=("self",), no_key=True).get(
            pk=template.pk
        )
        message = f"{by} stopped the build. Nothing of it was published."
        engine_states.cancel_operation(build, message=message)
        has_snapshots = Snapshot.objects.available().filter(template=template).exists()
        set_template_state(
            template,
            Template.State.READY if has_snapshots else Template.State.FAILED,
            code="" if has_snapshots else "canceled",
            message=message,
            actor=by,
        )
    return build


def _is_publishing(build: Operation) -> bool:
    """Return whether its commit point has started; if not, keep it from starting."""
    points = build.steps.select_for_update(no_key=True).filter(is_commit_point=True)
    return any(step.attempt > 0 for step in points)


def is_settling(template: Template) -> bool:
    """Return whether a step of a stopped build is still running, or an operation that
    leaves the template's state as it is, such as a move.
    """
    is_at_work = Step.objects.filter(
        operation__subject__template=template, state=Step.State.RUNNING
    ).exists()
    beside = template.operations.filter(state=Operation.State.RUNNING).exclude(
        kind__in=TemplateOperation.values
    )
    return is_at_work or beside.exists()


def _told(asked: BuildParameters) -> str:
    """Return the audit log's message about a request."""
    what = " clean" if asked.clean else ""
    at = f"change {asked.change}" if asked.change else "the newest change"
    only = f", of {', '.join(asked.paths)} alone" if asked.paths else ""
    return f"Asked to build it{what} at {at}{only}."


def _checked_paths(
    template: Template, paths: Sequence[str], *, is_clean: bool
) -> list[str]:
    """Return depot paths that a build can be limited to.

    Raises: InvalidRequest, NothingToRefresh.
    """
    if is_clean:
        raise InvalidRequest(
            "A clean build always covers the whole view. Leave paths out."
        )
    rest = reference_snapshot(template)
    if rest is None:
        raise NothingToRefresh(template=template.name)
    view = DepotView(
        template.view_lines or parse_client_spec(rest.client_spec).view,
    )
    checked = list(dict.fromkeys(path.strip() for path in paths))
    if len(checked) > MOST_PATHS:
        raise InvalidRequest(f"At most {MOST_PATHS} paths can be given.")
    for path in checked:
        if not _DEPOT_PATH.fullmatch(path) or "%%" in path:
            raise InvalidRequest(
                f"“{path}” is not a depot path such as //depot/main/src/... — without "
                "@ and #, which stand for revisions."
            )
        if not view.overlaps(path):
            raise InvalidRequest(f"“{path}” is not in the view of this template.")
    return checked


def template_pin(*, by: User, template: Template) -> None:
    """Keep a template at the top of a person's home page. Safe to repeat.

    Raises: NotAllowed (a scoped token), TooMany.
    """
    permissions.require(permissions.can_be_told(by))
    others = PinnedTemplate.objects.filter(person=by).exclude(template=template)
    if others.count() >= MOST_PINNED:
        raise TooMany(
            most=MOST_PINNED,
            things="pinned templates",
            instead="Unpin one of them first.",
        )
    PinnedTemplate.objects.get_or_create(person=by, template=template)


def template_unpin(*, by: User, template: Template) -> None:
    """Remove a template from the top of the home page. Safe to repeat.

    Raises: NotAllowed (a scoped token).
    """
    permissions.require(permissions.can_be_told(by))
    PinnedTemplate.objects.filter(person=by, template=template).delete()
