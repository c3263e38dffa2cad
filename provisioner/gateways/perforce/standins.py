"""Clients of ours that stand in for a workspace's own for a while: whose they are.

Everybody can see a client's name and description, and can make one like it. So the
names of stand-ins are new each time, nobody can foretell them, and they prove
themselves: only who knows the workspace's secret can make one up. What does not prove
itself is a stranger's, is never touched, and stands in nobody's way.
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
    """What a stand-in is for."""

    COMPARE = "compare"
    TRANSFER = "transfer"
    TRIAL = "trial"


_NONCE = 8
_PROOF = 16
SUFFIX = rf"-(?:{'|'.join(Purpose)})-[0-9a-f]{{{_NONCE + _PROOF}}}"
"""How the names of stand-ins end, as a pattern."""

_NAME = re.compile(
    rf"-(?P<purpose>{'|'.join(Purpose)})-(?P<nonce>[0-9a-f]{{{_NONCE}}})"
    rf"(?P<proof>[0-9a-f]{{{_PROOF}}})"
)


@dataclass(frozen=True, kw_only=True)
class StandIns:
    """Those of one workspace. Their names begin with `client`; `tag` is in each one's
    description, and `secret` is known to nobody else.
    """

    client: str
    tag: str
    secret: str

    def new_name(self, purpose: Purpose) -> str:
        """Return a name that nobody has used and nobody can foretell."""
        nonce = secrets.token_hex(_NONCE // 2)
        return f"{self.client}-{purpose}-{nonce}{self._proof(purpose, nonce)}"

    def has_made(self, name: str) -> bool:
        """Return whether `new_name` has made up this name."""
        match = _NAME.fullmatch(name.removeprefix(self.client))
        if match is None or not name.startswith(self.client):
            return False
        proof = self._proof(match["purpose"], match["nonce"])
        return hmac.compare_digest(proof, match["proof"])

    def is_ours(self, client: ClientSpec) -> bool:
        """Return whether a client is one of them, by its name and its description."""
        return self.has_made(client.name) and self.tag in client.description

    def find_all(
        self, gateway: PerforceGateway, *purposes: Purpose
    ) -> list[ClientSpec]:
        """Return those that are there, for these purposes, or for any."""
        for_these = [f"{self.client}-{purpose}-*" for purpose in purposes]
        return [
            client
            for name_filter in for_these or [f"{self.client}-*"]
            for client in gateway.clients.find_all(name_filter=name_filter)
            if self.is_ours(client)
        ]

    def remove_all(self, gateway: PerforceGateway, *purposes: Purpose) -> None:
        """Have none of them, nor anything opened or shelved in them. Safe to repeat."""
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
