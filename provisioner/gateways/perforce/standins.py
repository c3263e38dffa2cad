"""Temporary clients that stand in for a workspace's own, and how we know them.

Anyone can read a client's name and description, and create a client like it. So each
stand-in gets a new, unpredictable name that contains a proof: only a holder of the
workspace's secret can compute it. A client without a valid proof is somebody else's. It
is never touched, and cannot collide with ours.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import ClientSpec


class Purpose(StrEnum):
    """The purpose of a temporary client."""

    COMPARE = "compare"
    TRANSFER = "transfer"
    BISECTION_STEP = "bisect"


_NONCE = 8
_PROOF = 16
SUFFIX = rf"-(?:{'|'.join(Purpose)})-[0-9a-f]{{{_NONCE + _PROOF}}}"
"""The end of a stand-in's name, as a pattern."""

_NAME = re.compile(
    rf"-(?P<purpose>{'|'.join(Purpose)})-(?P<nonce>[0-9a-f]{{{_NONCE}}})"
    rf"(?P<proof>[0-9a-f]{{{_PROOF}}})"
)


@dataclass(frozen=True, kw_only=True)
class StandIns:
    """The stand-ins of one workspace.

    Their names begin with `client`, their descriptions contain `tag`, and only we know
    `secret`.
    """

    client: str
    tag: str
    secret: str

    def new_name(self, purpose: Purpose) -> str:
        """Return a new name that nobody can predict."""
        nonce = secrets.token_hex(_NONCE // 2)
        return f"{self.client}-{purpose}-{nonce}{self._proof(purpose, nonce)}"

    def has_made(self, name: str) -> bool:
        """Return whether this name came from `new_name`."""
        match = _NAME.fullmatch(name.removeprefix(self.client))
        if match is None or not name.startswith(self.client):
            return False
        proof = self._proof(match["purpose"], match["nonce"])
        return hmac.compare_digest(proof, match["proof"])

    def is_ours(self, client: ClientSpec) -> bool:
        """Return whether a client is a stand-in, by its name and description."""
        return self.has_made(client.name) and self.tag in client.description

    def find_all(
        self, gateway: PerforceGateway, *purposes: Purpose
    ) -> list[ClientSpec]:
        """Return existing stand-ins for these purposes, or for any."""
        for_these = [f"{self.client}-{purpose}-*" for purpose in purposes]
        return [
            client
            for name_filter in for_these or [f"{self.client}-*"]
            for client in gateway.clients.find_all(name_filter=name_filter)
            if self.is_ours(client)
        ]

    def remove_all(self, gateway: PerforceGateway, *purposes: Purpose) -> None:
        """Delete all of them, with anything opened or shelved there. Safe to repeat."""
        for client in self.find_all(gateway, *purposes):
            if gateway.changes.list_opened(client.name):
                gateway.changes.revert_server_side(client.name)
            for change in gateway.changes.list_pending(client.name):
                gateway.changes.delete_pending(
                    change.change, delete_shelf=change.is_shelved
                )
            gateway.clients.delete(client.name)

    def _proof(self, purpose: str, nonce: str) -> str:
        text = f"{self.client}-{purpose}-{nonce}".encode()
        digest = hmac.new(self.secret.encode(), text, hashlib.sha256).hexdigest()
        return digest[:_PROOF]
