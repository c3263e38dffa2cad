"""The text of mails: plain text from templates, with a link and exact times."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.accounts.zones import zone_of
from provisioner.catalog import freshness
from provisioner.catalog.queries import default_snapshot
from provisioner.copies.models import WorkspaceCopy
from provisioner.engine.logs.excerpt import Excerpt, excerpt_of
from provisioner.engine.models import Operation
from provisioner.lib import times
from provisioner.lib.times import exact
from provisioner.mirrors.models import Mirror
from provisioner.notify import templates
from provisioner.notify.models import Notification, Subscription
from provisioner.sites.models import PerforceServer
from provisioner.workspaces.models import Rescue, Workspace
from provisioner.workspaces.queries import deadline_of, operations_since_whole

CHANGES_NAMED = 10
LINES_QUOTED = 30


@dataclass(frozen=True, kw_only=True)
class Mail:
    to: str
    subject: str
    text: str


def mail_of(notice: Notification, *, now: dt.datetime) -> Mail:
    """Return a notification as a mail, in its reader's time zone and as of now."""
    with timezone.override(zone_of(_reader_of(notice))):
        return _mail_of(notice, now=now)


def _reader_of(notice: Notification) -> User | None:
    return notice.workspace.owner if notice.workspace is not None else notice.recipient


def _mail_of(notice: Notification, *, now: dt.datetime) -> Mail:
    if notice.kind == Notification.Kind.VOLUME_FILLS:
        context = _about_volume(notice)
    elif notice.server is not None:
        context = _about_server(notice, notice.server)
    elif notice.workspace is not None:
        context = _about_workspace(notice, notice.workspace, now=now)
    else:
        context = _about_build(notice)
    subject, _, text = render_to_string(
        f"notify/mails/{notice.kind}.txt", context
    ).partition("\n")
    return Mail(
        to=address_of(notice),
        subject=subject.removeprefix("Subject:").strip(),
        text=text.strip() + "\n",
    )


def address_of(notice: Notification) -> str:
    """Return the recipient's mail address, "" if it is not known."""
    if notice.workspace is not None:
        return notice.workspace.owner.email
    return notice.recipient.email if notice.recipient else notice.address


def _about_workspace(
    notice: Notification, workspace: Workspace, *, now: dt.datetime
) -> dict[str, Any]:
    deadline = deadline_of(workspace, now=now)
    # A retried retirement builds on the work of the first attempt.
    retiring = operations_since_whole(workspace)
    began_at = retiring.values("created_at")[:1]
    discards = workspace.events.filter(kind="work_discarded", at__gte=began_at)
    return {
        "workspace": workspace,
        "deadline": deadline,
        "ends_at": _said(deadline.ends_at),
        "goes_to_trash": deadline.then == "trash",
        "latest_possible": _said(deadline.latest_possible),
        "restorable_until": _said(deadline.restorable_until),
        "left": _left(deadline.ends_at, now=now),
        "operation": notice.operation,
        "rescue": Rescue.objects.with_work().filter(operation__in=retiring).first(),
        "discarded": discards.first(),
        "reasons": notice.data.get("reasons", []),
        "asked_by": notice.data.get("asked_by", ""),
        "link": link_to(workspace),
    }


def _about_volume(notice: Notification) -> dict[str, Any]:
    workspace, template = notice.workspace, notice.template
    said = {"reader": _reader_of(notice), "sentence": notice.data["sentence"]}
    if workspace is not None:
        copies = WorkspaceCopy.with_deleted.select_related("workspace", "site")
        copy = copies.filter(pk=notice.data.get("copy")).first()
        said |= {"name": copy.name if copy else workspace.name, "copy": copy}
        return {**said, "workspace": workspace, "link": link_to(workspace)}
    if "mirror" in notice.data:
        mirrors = Mirror.with_deleted.select_related("template", "site")
        mirror = mirrors.get(pk=notice.data["mirror"])
        link = absolute(reverse("mirror-detail", args=[mirror.pk]))
        return {**said, "name": mirror.name, "mirror": mirror, "link": link}
    assert template is not None
    link = absolute(reverse("template-detail", args=[template.pk]))
    return {**said, "name": template.name, "link": link}


def _about_server(notice: Notification, server: PerforceServer) -> dict[str, Any]:
    return {
        "reader": notice.recipient,
        "server": server,
        "title": notice.data["title"],
        "sentence": notice.data["sentence"],
        "link": absolute(notice.data["path"]),
    }


def _about_build(notice: Notification) -> dict[str, Any]:
    build = notice.operation
    assert build is not None
    suspects = list(templates.suspects_of(build)[: CHANGES_NAMED + 1])
    name = notice.recipient.perforce_name if notice.recipient else notice.p4_user
    return {
        "name": notice.recipient.get_username() if notice.recipient else name,
        "template": build.subject.template,
        "build": build,
        "failed_its_tests": templates.failed_its_tests(build),
        "change": freshness.change_of(build),
        "good": templates.last_good_snapshot(build),
        "default": default_snapshot(build.subject.template),
        "suspects": suspects[:CHANGES_NAMED],
        "has_more_suspects": len(suspects) > CHANGES_NAMED,
        "is_submitter": any(change.user == name for change in suspects),
        "is_subscriber": notice.recipient is not None
        and Subscription.objects.filter(
            template=build.subject.template, user=notice.recipient
        ).exists(),
        # Its first line. The mail quotes the log separately.
        "reason": build.status_message.partition("\n")[0],
        "log": quoted_log_of(build),
        "link": absolute(reverse("template-detail", args=[build.subject.template.pk])),
        "log_link": absolute(reverse("operation-log", args=[build.pk])),
    }


def quoted_log_of(build: Operation) -> Excerpt:
    """Return the lines to quote from the failed step's log."""
    step = templates.failed_step(build)
    if step is None:
        return Excerpt(lines=())
    return excerpt_of(step, last_lines=LINES_QUOTED)


def absolute(path: str) -> str:
    """Return the full URL of a page's path."""
    return f"{settings.PUBLIC_URL.rstrip('/')}{path}"


def link_to(workspace: Workspace) -> str:
    """Return the full URL of a workspace's page."""
    return absolute(reverse("workspace-detail", args=[workspace.pk]))


def _said(moment: dt.datetime | None) -> str:
    return "" if moment is None else exact(moment)


def _left(moment: dt.datetime | None, *, now: dt.datetime) -> str:
    return "" if moment is None else times.age_text(moment, now=now)
