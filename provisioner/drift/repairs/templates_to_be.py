"""The row that adoption would write for a template missing from the database.

Its client says what is built, but nothing says by which commands, so it is not built
until somebody has completed its definition. Its clones can be adopted then.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction

from provisioner.accounts.models import User
from provisioner.accounts.system import system_user
from provisioner.audit_log.actions import record_event
from provisioner.catalog.actions.templates import check_definition
from provisioner.catalog.models import Template
from provisioner.drift.comparison.facts import tag_of_client, tag_of_volume
from provisioner.drift.repairs.evidence import CannotRepair
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import Volume
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.lib.refusals import ActionRefused
from provisioner.sites.models import Site


def template_to_be(
    volume: Volume, *, site: Site, clients: Sequence[ClientSpec]
) -> Template:
    """Return the template that a tagged volume belonged to, without its definition.

    Raises: CannotRepair with what is missing.
    """
    tag = tag_of_volume(volume)
    assert tag is not None
    name = re.fullmatch(rf"cy_(.+)_t{tag[1][:6]}", volume.name)
    if name is None:
        raise CannotRepair(
            f"The volume {volume.name} does not have a name of Cloneyard's form. "
            "Rename it as it was, then adopt it."
        )
    template = Template(
        site=site,
        name=name[1].replace("_", "-"),
        tag=uuid.UUID(tag[1]),
        volume_uuid=volume.uuid,
        volume_size_bytes=volume.size_bytes,
        state=Template.State.FAILED,
        status_code="adopted_in_part",
        status_message="It was adopted: its commands, environment and rules are not "
        "known. Complete its definition, then build it.",
    )
    if Template.objects.filter(site=site, name=template.name).exists():
        raise CannotRepair(
            f"Another template is called {template.name} here by now. Nothing of "
            f"{volume.name} is removed; copy what is needed from its clones."
        )
    described = {c.name for c in clients if tag_of_client(c) == tag}
    if template.client_name not in described:
        raise CannotRepair(
            f"The client {template.client_name} is gone: nothing says what is in the "
            f"volume {volume.name}. Nothing of it is removed."
        )
    return template


def facts_of_template(template: Template) -> dict[str, Any]:
    """Return the preview of a template's adoption."""
    return {
        "template": template.name,
        "client": template.client_name,
        "path": str(template.path),
        "state": template.get_state_display(),
    }


def write_template(template: Template, *, by: User | None) -> str:
    """Write its row with its client's view; return the result as a sentence.

    Raises: CannotRepair, GatewayError.
    """
    perforce = registry.perforce(template.site.perforce_server)
    client = perforce.clients.find(template.client_name)
    if client is None:
        raise CannotRepair(f"The client {template.client_name} is gone by now.")
    template.owner = by or system_user()
    template.stream = client.stream
    template.view = "" if client.stream else "\n".join(client.view)
    template.client_options = client.options
    template.submit_options = client.submit_options
    template.line_end = client.line_end
    try:
        check_definition(template)
        with transaction.atomic():
            template.save(force_insert=True)
            record_event(
                template,
                kind="template_adopted",
                message=f"Adopted from the volume {template.volume_name} and the "
                f"client {client.name}, which was missing from the database.",
                actor=by,
            )
    except ActionRefused as error:
        raise CannotRepair(str(error)) from error
    except IntegrityError:
        raise CannotRepair(
            f"A template {template.name} was written at the same time. Nothing was "
            "done here. Check again."
        ) from None
    return (
        f"It is the template {template.name} again. Complete its definition before it "
        "is built; its clones can be adopted."
    )
