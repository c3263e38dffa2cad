"""Examples of webhooks for the schema."""

from __future__ import annotations

import json
from typing import Any

from provisioner.api.examples import answer, refusal, request_body
from provisioner.notify.refusals import WebhookOff

_WEBHOOK: dict[str, Any] = {
    "id": 14,
    "owner": "ci",
    "template": None,
    "for_all": False,
    "url": "https://hooks.example.com/cloneyard",
    "format": "cloneyard",
    "events": ["workspace.ready", "workspace.failed"],
    "enabled": True,
    "disabled_reason": "",
    "failing_since": None,
    "created_at": "2026-11-24T09:00:00Z",
}
_WITH_SECRET = {"secret": "whsec_5f2b9c0d7e1a4f68", **_WEBHOOK}
_MESSAGE = "3b1d6c1e-8f0a-4c57-9d1b-0b8c2f5a7e64"
_WAITING: dict[str, Any] = {
    "id": 2207,
    "message_id": _MESSAGE,
    "event": "test",
    "state": "waiting",
    "body": json.dumps(
        {
            "id": _MESSAGE,
            "event": "test",
            "at": "2026-11-24T09:30:06+00:00",
            "message": "This is a test.",
        }
    ),
    "attempts": 0,
    "created_at": "2026-11-24T09:30:06Z",
    "tried_at": None,
    "next_try_at": "2026-11-24T09:30:06Z",
    "ended_at": None,
    "response_code": None,
    "response_text": "",
    "error": "",
    "duration_ms": None,
}
_DELIVERED = {
    **_WAITING,
    "state": "delivered",
    "attempts": 1,
    "tried_at": "2026-11-24T09:30:07Z",
    "next_try_at": None,
    "ended_at": "2026-11-24T09:30:07Z",
    "response_code": 204,
    "duration_ms": 38,
}
_IS_OFF = refusal("Turned off", WebhookOff(reason="The webhook is turned off."))

LIST = [answer("Yours", _WEBHOOK)]
GET = [answer("On", _WEBHOOK)]
CREATE = [
    request_body(
        "For a CI server",
        {
            "url": "https://hooks.example.com/cloneyard",
            "events": ["workspace.ready", "workspace.failed"],
        },
    ),
    request_body(
        "A template's builds, in Slack",
        {
            "url": "https://hooks.slack.com/services/T0/B0/abc",
            "format": "slack",
            "template": "main",
            "events": ["template.failed", "template.recovered"],
        },
    ),
    answer("Created", _WITH_SECRET, status=201),
]
CHANGE = [
    request_body("Turn it off", {"enabled": False}),
    answer("Changed", {**_WEBHOOK, "enabled": False}),
]
SECRET = [answer("Replaced", _WITH_SECRET)]
TEST = [answer("Queued", _WAITING, status=202)]
DELIVERIES = [answer("Delivered", _DELIVERED)]
AGAIN = [answer("Queued", {**_WAITING, "id": 2208}, status=202), _IS_OFF]
