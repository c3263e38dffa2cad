"""What Slack and Teams document about messages that are posted to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
from slack_sdk.models.blocks import Block

CARD = json.loads(Path(__file__).with_name("adaptive-card-1.5.0.json").read_text())


def check_slack(payload: dict[str, Any]) -> None:
    """Ensure that a payload keeps the limits of docs.slack.dev."""
    assert set(payload) == {"text", "blocks"}
    assert 0 < len(payload["text"]) <= 3000
    assert len(payload["blocks"]) <= 50
    for block in Block.parse_all(payload["blocks"]):
        block.validate_json()
    for block in payload["blocks"]:
        texts = [block.get("text"), *block.get("fields", ())]
        limit = {"header": 150}.get(block["type"], 3000)
        assert all(0 < len(each["text"]) <= limit for each in texts if each)
        assert len(block.get("fields", ())) <= 10
        assert all(len(each["text"]) <= 2000 for each in block.get("fields", ()))


def check_teams(payload: dict[str, Any]) -> None:
    """Ensure that a payload is what a workflow takes, with a card of the schema."""
    [attachment] = payload["attachments"]
    assert payload["type"] == "message"
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    jsonschema.Draft6Validator(CARD).validate(attachment["content"])
    assert len(json.dumps(payload, ensure_ascii=False).encode()) <= 28 * 1024
