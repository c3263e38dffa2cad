"""What mails say: plain text from templates, with a link and exact times."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse

from provisioner.lib import times
from provisioner.workspaces import leases
from provisioner.workspaces.models import Notice, Operation, Rescue, Workspace


@dataclass(frozen=True, kw_only=True)
class Mail:
    to: str
    subject: str
    text: str


def mail_of(notice: Notice, workspace: Workspace, *, now: dt.datetime) -> Mail:
    """Return a notice as its owner reads it, as things are now."""
    policy = leases.policy_for(workspace.template, workspace.purpose)
    deadline = leases.deadline_of(workspace, policy, now)
    operation = Operation.objects.filter(pk=notice.data.get("operation")).first()
    context = {
        "workspace": workspace,
        "deadline": deadline,
        "ends_at": _said(deadline.ends_at),
        "latest_possible": _said(deadline.latest_possible),
        "restorable_until": _said(deadline.restorable_until),
        "left": _left(deadline.ends_at, now=now),
        "operation": operation,
        "rescue": Rescue.objects.filter(operation=operation).first()
        if operation
        else None,
        "reasons": notice.data.get("reasons", []),
        "asked_by": notice.data.get("asked_by", ""),
        "link": link_to(workspace),
    }
    subject, _, text = render_to_string(f"mails/{notice.kind}.txt", context).partition(
        "\n"
    )
    return Mail(
        to=workspace.owner.email,
        subject=subject.removeprefix("Subject:").strip(),
        text=text.strip() + "\n",
    )


def link_to(workspace: Workspace) -> str:
    """Return a workspace's page as an address that works outside of it."""
    path = reverse("workspace-detail", args=[workspace.pk])
    return f"{settings.PUBLIC_URL.rstrip('/')}{path}"


def _said(moment: dt.datetime | None) -> str:
    return "" if moment is None else leases.exact(moment)


def _left(moment: dt.datetime | None, *, now: dt.datetime) -> str:
    return "" if moment is None else times.age_text(moment, now=now)
