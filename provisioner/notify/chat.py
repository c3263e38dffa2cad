"""Messages for people, in the format of each kind of webhook."""

from __future__ import annotations

import json
from typing import Any

from provisioner.gateways.webhooks import slack, teams
from provisioner.gateways.webhooks.messages import Message, Refusal
from provisioner.gateways.webhooks.sending import Answer
from provisioner.notify.models import WebhookEvent, WebhookFormat

CHANGES_NAMED = 5
PAYLOADS = {WebhookFormat.SLACK: slack.payload, WebhookFormat.TEAMS: teams.payload}
REFUSALS: dict[WebhookFormat, dict[int, Refusal]] = {
    WebhookFormat.SLACK: slack.REFUSALS,
    WebhookFormat.TEAMS: teams.REFUSALS,
}
"""Final refusals by format and HTTP code. Any other answer is worth a retry."""

TITLES = {
    WebhookEvent.TEMPLATE_BUILT: "{name} was built",
    WebhookEvent.TEMPLATE_FAILED: "{name} failed",
    WebhookEvent.TEMPLATE_RECOVERED: "{name} recovered",
    WebhookEvent.SNAPSHOT_WITHDRAWN: "A snapshot of {name} was withdrawn",
    WebhookEvent.VOLUME_FILLS: "The volume of {name} fills up",
    WebhookEvent.SERVER_TROUBLE: "{name} needs an administrator",
    WebhookEvent.WORKSPACE_READY: "{name} is ready",
    WebhookEvent.WORKSPACE_FAILED: "{name} failed",
    WebhookEvent.WORKSPACE_TRASHED: "{name} is in the trash",
    WebhookEvent.WORKSPACE_RETIRED: "{name} was purged",
}


def body_in(format: WebhookFormat, said: dict[str, Any]) -> str:
    """Return the body to post for a message of `notify/webhooks.py`."""
    if format in PAYLOADS:
        said = PAYLOADS[format](message_of(said))
    return json.dumps(said, ensure_ascii=False)


def refusal_in(format: WebhookFormat, answer: Answer) -> Refusal | None:
    """Return what an answer says if a retry cannot help, else None."""
    return REFUSALS.get(format, {}).get(answer.code or 0)


def message_of(said: dict[str, Any]) -> Message:
    """Return a message for people, with links."""
    workspace, template = said.get("workspace"), said.get("template")
    build, snapshot = said.get("build", {}), said.get("snapshot", {})
    facts: list[tuple[str, Any]] = []
    links: list[tuple[str, str]] = []
    if workspace:
        facts += [(each.capitalize(), workspace[each]) for each in _OF_WORKSPACES]
        links.append(("Open the workspace", workspace["url"]))
    mirror = said.get("mirror")
    if mirror:
        facts.append(("Volume", mirror["volume"]))
        links.append(("Open the mirror", mirror["url"]))
    if template:
        facts.append(("Site", (mirror or template)["site"]))
        links.append(("Open the template", template["url"]))
    server = said.get("server")
    if server:
        links.append(("Open the page", server["url"]))
    facts.append(("Snapshot", snapshot.get("name") or build.get("snapshot")))
    facts.append(("Reason", snapshot.get("withdraw_reason")))
    facts.append(("Change", build.get("change")))
    for each in build.get("suspects", ())[:CHANGES_NAMED]:
        facts.append((f"Change {each['change']}", f"{each['user']}: {each['title']}"))
    if build:
        links.append(("Read the log", build["log_url"]))
    name = (workspace or mirror or template or server or {}).get("name", "")
    title = TITLES.get(said["event"], "Cloneyard").format(name=name)
    return Message(
        title=server["title"] if server else title,
        text=said["message"] or "…",
        facts=tuple((each, str(value)) for each, value in facts if value),
        links=tuple(links),
        lines=tuple(build.get("log_tail", ())),
    )


_OF_WORKSPACES = ("owner", "template", "change", "path", "client")
