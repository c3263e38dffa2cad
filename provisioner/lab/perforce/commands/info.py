"""p4 info."""

from __future__ import annotations

import time

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.request import Request

_LABELS = {
    "userName": "User name",
    "clientName": "Client name",
    "clientRoot": "Client root",
    "clientLock": "Client locked to",
    "clientStream": "Client stream",
    "clientCwd": "Current directory",
    "clientHost": "Client host",
    "peerAddress": "Peer address",
    "clientAddress": "Client address",
    "serverAddress": "Server address",
    "serverRoot": "Server root",
    "serverDate": "Server date",
    "serverUptime": "Server uptime",
    "serverVersion": "Server version",
    "ServerID": "ServerID",
    "serverEncryption": "Server encryption",
    "serverCertExpires": "Server cert expires",
    "serverServices": "Server services",
    "replica": "Replica of",
    "serverLicense": "Server license",
    "caseHandling": "Case Handling",
}


def info(request: Request) -> None:
    """Answer `p4 info`."""
    state = request.state
    client = request.find_client()
    uptime = int(time.time() - state.started_at)
    record = {
        "userName": request.user,
        "clientName": client.name if client else "*unknown*",
        **({"clientRoot": client.root} if client else {}),
        **({"clientStream": client.stream} if client and client.stream else {}),
        "clientCwd": request.cwd,
        "clientHost": request.host,
        "clientCase": "sensitive",
        "peerAddress": request.peer_address,
        "clientAddress": request.peer_address,
        "serverAddress": request.server_address,
        "serverRoot": str(state.config.root),
        "serverDate": time.strftime("%Y/%m/%d %H:%M:%S %z %Z"),
        "tzoffset": str(time.localtime().tm_gmtoff),
        "serverUptime": (f"{uptime // 3600}:{uptime // 60 % 60:02}:{uptime % 60:02}"),
        "serverVersion": state.config.version,
        **({"ServerID": state.config.server_id} if state.config.server_id else {}),
        **(
            {
                "serverEncryption": "encrypted",
                "serverCertExpires": request.certificate_expires,
            }
            if request.certificate_expires
            else {}
        ),
        "serverServices": state.config.services,
        **({"replica": state.config.target} if state.config.target else {}),
        "serverLicense": "none",
        "caseHandling": "insensitive" if state.config.ignores_case else "sensitive",
        **({"unicode": "enabled"} if state.config.is_unicode else {}),
        "monitor": "enabled" if state.configurables.number("monitor") else "disabled",
        "security": str(state.security_level),
        "externalAuth": "disabled",
    }
    if request.is_tagged:
        request.record(record)
        return
    for name, label in _LABELS.items():
        if name in record:
            request.info(f"{label}: {record[name]}")


COMMANDS = (
    Command(
        names=("info",),
        most_arguments=0,
        run=info,
        usage="info [-s]",
        flags="s",
        is_open=True,
    ),
)
