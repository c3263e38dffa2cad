"""What a person may ask for: checks, rows, events and jobs, in one transaction.

Each action takes `by` first: who asks. It raises an ActionRefused and leaves nothing
behind, or returns the row whose work has been queued.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from provisioner.accounts.models import User
from provisioner.gateways.hosts.mount_options import (
    MountOptionRefused,
    check_mount_options,
)
from provisioner.gateways.perforce.specs import (
    SpecRefused,
    check_client_options,
    check_line_end,
    check_stream,
    check_submit_options,
    check_view,
)
from provisioner.workspaces import permissions, states, tasks, workflow
from provisioner.workspaces.errors import (
    AccountIncomplete,
    InvalidRequest,
    NameTaken,
    NoSnapshot,
    NothingToRetry,
    RequestKeyReused,
    SnapshotGone,
    TemplateBusy,
    TemplateInvalid,
    WorkspaceNotReady,
    WorkspaceRetired,
)
from provisioner.workspaces.models import (
    Operation,
    Site,
    Snapshot,
    Step,
    Template,
    Workspace,
    name_validator,
)
from provisioner.workspaces.queries import default_snapshot

SUGGESTIONS_TRIED = 1000
LARGEST_CHANGE = 2**31 - 1
# What a template is made from. The rest is for good, or is written by its builds.
DEFINITION = frozenset(
    {
        "description",
        "view",
        "stream",
        "line_end",
        "client_options",
        "submit_options",
        "build_command",
        "build_environment",
        "build_timeout_seconds",
        "ignore_patterns",
        "volume_size_bytes",
        "snapshots_to_keep",
    }
)


def workspace_create(
    *,
    by: User,
    template: Template,
    name: str = "",
    purpose: str = Workspace.Purpose.DEVELOPMENT,
    snapshot: Snapshot | None = None,
    wants_reconcile: bool = False,
    request_key: str = "",
) -> Workspace:
    """Ask for a workspace of a template's snapshot; the newest where none is named.

    Without a name one is made from the owner's and the template's. Asking again with
    the same `request_key` answers with the first request's workspace.

    Raises: InvalidRequest, AccountIncomplete, NoSnapshot, SnapshotGone, NameTaken,
    RequestKeyReused.
    """
    if by.uid is None or by.gid is None:
        raise AccountIncomplete(username=by.username)
    if purpose not in Workspace.Purpose.values:
        raise InvalidRequest(f"There is no purpose “{purpose}”.")
    if name:
        _check_name(name)
    with transaction.atomic():
        _one_request_at_a_time(by)
        earlier = _same_request(
            by=by,
            template=template,
            name=name,
            purpose=purpose,
            snapshot=snapshot,
            wants_reconcile=wants_reconcile,
            key=request_key,
        )
        if earlier is not None:
            return earlier
        snapshot = _snapshot_to_clone(template, snapshot)
        workspace = _insert_workspace(
            owner=by,
            site=template.site,
            template=template,
            snapshot=snapshot,
            name=name or _free_name(owner=by, template=template),
            purpose=purpose,
            wants_reconcile=wants_reconcile,
            request_key=request_key,
            uid=by.uid,
            gid=by.gid,
            p4_user=by.perforce_name,
        )
        states.record_event(
            workspace,
            kind="workspace_requested",
            message=f"Asked for a clone of {template.name} at change "
            f"{snapshot.change}.",
            actor=by,
        )
        _start(Operation.Kind.PROVISION, by=by, workspace=workspace)
    return workspace


def _check_name(name: str) -> None:
    try:
        name_validator(name)
    except ValidationError as error:
        raise InvalidRequest(f"“{name}” is not a name: {error.message}") from error


def _snapshot_to_clone(template: Template, snapshot: Snapshot | None) -> Snapshot:
    if snapshot is None:
        snapshot = default_snapshot(template)
        if snapshot is None:
            raise NoSnapshot(template=template.name)
    if snapshot.template_id != template.pk:
        raise InvalidRequest("This snapshot is not one of that template.")
    # Held until our row is there: pruning takes only what no row refers to.
    snapshot = Snapshot.objects.select_for_update(no_key=True).get(pk=snapshot.pk)
    if snapshot.deleted_at is not None:
        raise SnapshotGone(snapshot=snapshot.name)
    return snapshot


def _one_request_at_a_time(owner: User) -> None:
    """Let requests of one person pass one by one until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtext('workspace_create'), %s)", [owner.pk]
        )


def _same_request(
    *,
    by: User,
    template: Template,
    name: str,
    purpose: str,
    snapshot: Snapshot | None,
    wants_reconcile: bool,
    key: str,
) -> Workspace | None:
    """Return the workspace that an earlier, identical request made, or None.

    Identical is: the same key; or, where neither a key nor a name tells two requests
    of a person apart (a second click), the same template, snapshot and comparison
    while the first is still being made. Machines ask for many alike, so build-only
    requests need a key.
    """
    mine = Workspace.objects.select_related("site", "template").filter(owner=by)
    if key:
        earlier = mine.filter(request_key=key).first()
        if earlier is None:
            return None
        is_same = (
            earlier.template_id == template.pk
            and earlier.purpose == purpose
            and (not name or earlier.name == name)
            and (snapshot is None or earlier.snapshot_id == snapshot.pk)
        )
        if not is_same:
            raise RequestKeyReused
        return earlier
    if name or purpose != Workspace.Purpose.DEVELOPMENT:
        return None
    return mine.filter(
        template=template,
        snapshot=snapshot or default_snapshot(template),
        purpose=purpose,
        wants_reconcile=wants_reconcile,
        state=Workspace.State.PROVISIONING,
        request_key="",
    ).first()


def _free_name(*, owner: User, template: Template) -> str:
    """Return owner-template, with the first number that makes it free."""
    base = _as_name(f"{owner.username}-{template.name}")
    taken = set(
        Workspace.objects.filter(site=template.site, name__startswith=base)
        .exclude(state=Workspace.State.RETIRED)
        .values_list("name", flat=True)
    )
    candidates = (base, *(f"{base}-{n}" for n in range(2, SUGGESTIONS_TRIED)))
    for candidate in candidates:
        if candidate not in taken:
            return candidate
    raise NameTaken(name=base)


def _as_name(text: str) -> str:
    """Return text as a name: what the rule does not allow becomes a hyphen."""
    allowed = "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower())
    words = [word for word in allowed.split("-") if word]
    name = "-".join(words)
    if not name[:1].isalpha():
        name = f"w-{name}".rstrip("-")
    return name[:34].rstrip("-")


def _insert_workspace(**fields: Any) -> Workspace:
    try:
        with transaction.atomic():
            return Workspace.objects.create(**fields)
    except IntegrityError as error:
        if "workspace_name_unique_in_site" in str(error):
            raise NameTaken(name=fields["name"]) from error
        raise


def _start(
    kind: Operation.Kind,
    *,
    by: User,
    workspace: Workspace | None = None,
    template: Template | None = None,
    parameters: dict[str, Any] | None = None,
) -> Operation:
    """Write an operation with its steps and queue the first ones."""
    operation = Operation.objects.create(
        kind=kind,
        workspace=workspace,
        template=template,
        requested_by=by,
        parameters=parameters or {},
    )
    Step.objects.bulk_create(
        Step(operation=operation, name=spec.name, position=position)
        for position, spec in enumerate(workflow.specs_of(operation))
    )
    tasks.advance(operation)
    return operation


def workspace_retire(
    *, by: User, workspace: Workspace, discard: bool = False
) -> Operation:
    """Ask to take a workspace back; with `discard`, unsaved work and all.

    Asking again while it is being retired answers with the operation under way.

    Raises: NotAllowed, WorkspaceRetired.
    """
    permissions.require(permissions.can_change_workspace(by, workspace))
    with transaction.atomic():
        workspace = Workspace.objects.select_for_update(of=("self",)).get(
            pk=workspace.pk
        )
        if workspace.state == Workspace.State.RETIRED:
            raise WorkspaceRetired(name=workspace.name)
        running = workspace.operations.filter(state=Operation.State.RUNNING).first()
        if running is not None:
            if running.kind == Operation.Kind.RETIRE:
                return running
            states.end_operation(
                running,
                Operation.State.CANCELLED,
                code="retired",
                message=f"{by} retired the workspace.",
            )
            states.skip_waiting_steps(running)
        states.set_workspace_state(
            workspace,
            Workspace.State.RETIRING,
            message="Asked to retire it, and to discard what is not submitted."
            if discard
            else "Asked to retire it.",
            actor=by,
        )
        return _start(
            Operation.Kind.RETIRE,
            by=by,
            workspace=workspace,
            parameters={"discard": discard},
        )


def workspace_retry(*, by: User, workspace: Workspace) -> Operation:
    """Ask to go on with a workspace that failed while it was being made.

    Raises: NotAllowed, NothingToRetry, WorkspaceNotReady.
    """
    permissions.require(permissions.can_change_workspace(by, workspace))
    with transaction.atomic():
        workspace = Workspace.objects.select_for_update(of=("self",)).get(
            pk=workspace.pk
        )
        if workspace.state in (
            Workspace.State.PROVISIONING,
            Workspace.State.RETIRING,
        ):
            raise WorkspaceNotReady(
                name=workspace.name, state=workspace.get_state_display().lower()
            )
        if workspace.state != Workspace.State.FAILED:
            raise NothingToRetry(name=workspace.name)
        last = workspace.operations.first()
        if last is not None and last.kind == Operation.Kind.RETIRE:
            discard = bool(last.parameters.get("discard"))
            return workspace_retire(by=by, workspace=workspace, discard=discard)
        states.set_workspace_state(
            workspace,
            Workspace.State.PROVISIONING,
            message="Asked to try again.",
            actor=by,
        )
        return _start(Operation.Kind.PROVISION, by=by, workspace=workspace)


def template_create(*, by: User, site: Site, name: str, **fields: Any) -> Template:
    """Define a template. Nothing is created on ONTAP or Perforce before its build.

    Raises: NotAllowed, InvalidRequest, TemplateInvalid (a view of a whole server,
    options that hurt), NameTaken.
    """
    permissions.require(permissions.can_manage_templates(by))
    _check_name(name)
    template = Template(site=site, name=name, created_by=by, **fields)
    _check_template(template)
    try:
        with transaction.atomic():
            template.save()
            states.record_event(
                template, kind="template_defined", message="Defined.", actor=by
            )
    except IntegrityError as error:
        if "template_name_unique_in_site" in str(error):
            raise NameTaken(name=name) from error
        raise
    return template


def template_update(*, by: User, template: Template, **fields: Any) -> Template:
    """Change a template's definition; it counts from the next build on.

    Raises: NotAllowed, InvalidRequest, TemplateInvalid, TemplateBusy.
    """
    permissions.require(permissions.can_manage_templates(by))
    if for_good := sorted(fields.keys() - DEFINITION):
        raise InvalidRequest(f"{for_good[0]}: this cannot be changed later.")
    for field, value in fields.items():
        setattr(template, field, value)
    _check_template(template)
    with transaction.atomic():
        saved = Template.objects.filter(pk=template.pk).exclude(
            state=Template.State.BUILDING
        )
        if not saved.update(**fields):
            raise TemplateBusy(name=template.name)
        states.record_event(
            template,
            kind="template_changed",
            message=f"Changed {', '.join(sorted(fields))}.",
            actor=by,
        )
    return template


def _check_template(template: Template) -> None:
    if bool(template.view_lines) == bool(template.stream):
        raise TemplateInvalid("Give view lines or a stream, one of the two.")
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
        raise InvalidRequest(f"{field}: {messages[0]}") from error
    for field in sorted(DEFINITION):
        if "\0" in str(getattr(template, field)):
            raise InvalidRequest(f"{field}: null characters are not allowed.")
    _check_environment(template.build_environment)


def _check_environment(variables: Any) -> None:
    """Refuse what is not names with texts: the build could not be started."""
    if not isinstance(variables, dict):
        raise InvalidRequest("build_environment: give names with their values.")
    for name, value in variables.items():
        if not (name.isascii() and name.isidentifier()):
            raise InvalidRequest(f"build_environment: “{name}” names no variable.")
        if not isinstance(value, str) or "\0" in value:
            raise InvalidRequest(f"build_environment: the value of {name} is no text.")


def template_build(
    *, by: User, template: Template, change: int | None = None
) -> Operation:
    """Ask to build a template at a submitted change, the newest where none is named.

    Raises: NotAllowed, TemplateBusy, InvalidRequest.
    """
    permissions.require(permissions.can_manage_templates(by))
    if change is not None and not 1 <= change <= LARGEST_CHANGE:
        raise InvalidRequest(f"A change is a number from 1 to {LARGEST_CHANGE}.")
    with transaction.atomic():
        template = (
            Template.objects.select_for_update(of=("self",))
            .select_related("site__perforce_server")
            .get(pk=template.pk)
        )
        if template.state == Template.State.BUILDING:
            raise TemplateBusy(name=template.name)
        states.set_template_state(
            template,
            Template.State.BUILDING,
            message=f"Asked to build it at change {change}."
            if change
            else "Asked to build it at the newest change.",
            actor=by,
        )
        return _start(
            Operation.Kind.TEMPLATE_BUILD,
            by=by,
            template=template,
            parameters={"change": change} if change else {},
        )


def site_save(*, by: User, site: Site) -> Site:
    """Create or change a site after checking what would hurt its workspaces.

    Raises: NotAllowed, InvalidRequest (mount options, and what the fields refuse).
    """
    permissions.require(by.is_administrator)
    try:
        check_mount_options(site.mount_options)
    except MountOptionRefused as error:
        raise InvalidRequest(error.sentence) from error
    try:
        site.full_clean()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidRequest(f"{field}: {messages[0]}") from error
    site.save()
    return site
