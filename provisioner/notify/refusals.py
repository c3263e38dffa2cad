"""Why something about webhooks is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class WebhookOff(ActionRefused):
    """{reason} Nothing is sent until that has changed."""

    code = "webhook_off"
