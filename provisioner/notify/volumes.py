"""Mails about volumes that fill up."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.copies.models import WorkspaceCopy
from provisioner.mirrors.models import Mirror
from provisioner.notify.models import Notification
from provisioner.notify.workspaces import say
from provisioner.workspaces.models import Workspace

KIND = Notification.Kind.VOLUME_FILLS


def say_workspace_fills(
    workspace: Workspace,
    *,
    copy: WorkspaceCopy | None = None,
    sentence: str,
    now: dt.datetime,
) -> None:
    """Mail the owner of a workspace that its volume fills up, as of now.

    With `copy` it is the volume of that copy.
    """
    if workspace.is_pooled or workspace.owner.is_service:
        return
    data = {"sentence": sentence} | ({"copy": copy.pk} if copy else {})
    say(workspace, KIND, due_at=now, deadline_at=now, data=data)


def say_template_fills(
    template: Template,
    people: Iterable[User],
    *,
    mirror: Mirror | None,
    sentence: str,
    now: dt.datetime,
) -> None:
    """Mail people that a template's volume fills up, as of now. Safe to repeat.

    With `mirror` it is the volume of that mirror.
    """
    data = {"sentence": sentence} | ({"mirror": mirror.pk} if mirror else {})
    for person in people:
        if not person.is_service:
            Notification.objects.get_or_create(
                template=template,
                kind=KIND,
                recipient=person,
                deadline_at=now,
                defaults={"due_at": now, "data": data},
            )
