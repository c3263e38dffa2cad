"""Defining templates and having them built."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from provisioner.accounts.models import User
from provisioner.gateways.perforce.specs import (
    SpecRefused,
    check_client_options,
    check_line_end,
    check_stream,
    check_submit_options,
    check_view,
)
from provisioner.workspaces import permissions, states
from provisioner.workspaces.actions.names import check_name
from provisioner.workspaces.admission import check_build
from provisioner.workspaces.errors import (
    InvalidRequest,
    NameTaken,
    TemplateBusy,
    TemplateInvalid,
)
from provisioner.workspaces.models import Operation, Site, Template
from provisioner.workspaces.tasks import start_operation

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


def template_create(*, by: User, site: Site, name: str, **fields: Any) -> Template:
    """Define a template. Nothing is created on ONTAP or Perforce before its build.

    Raises: NotAllowed, InvalidRequest, TemplateInvalid (a view of a whole server,
    options that hurt), NameTaken.
    """
    permissions.require(permissions.can_manage_templates(by))
    check_name(name)
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

    Raises: NotAllowed, TemplateBusy, InvalidRequest, LimitReached.
    """
    permissions.require(permissions.can_manage_templates(by))
    if change is not None and not 1 <= change <= LARGEST_CHANGE:
        raise InvalidRequest(f"A change is a number from 1 to {LARGEST_CHANGE}.")
    with transaction.atomic():
        template = (
            # Not as a key: workspaces that refer to it are being asked for meanwhile.
            Template.objects.select_for_update(of=("self",), no_key=True)
            .select_related("site__perforce_server")
            .get(pk=template.pk)
        )
        if template.state == Template.State.BUILDING:
            raise TemplateBusy(name=template.name)
        check_build(template=template)
        states.set_template_state(
            template,
            Template.State.BUILDING,
            message=f"Asked to build it at change {change}."
            if change
            else "Asked to build it at the newest change.",
            actor=by,
        )
        return start_operation(
            Operation.Kind.TEMPLATE_BUILD,
            by=by,
            template=template,
            parameters={"change": change} if change else {},
        )
