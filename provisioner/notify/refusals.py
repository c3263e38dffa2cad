"""Refusals about notifications."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class ChannelStaysOn(ActionRefused):
    """Mails about leases, retirement and the trash stay on: they protect your work."""

    code = "channel_stays_on"


class WebhookNotSigned(ActionRefused):
    """Messages to {format} are not signed; the address itself is the secret. Create a
    new webhook in {format} and enter its address."""

    code = "webhook_not_signed"


class WebhookOff(ActionRefused):
    """{reason} Nothing is sent until that changes."""

    code = "webhook_off"
