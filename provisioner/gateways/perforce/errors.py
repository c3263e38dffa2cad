"""What the messages of a Perforce server mean to us.

The number of a message is the same in every release and language, its wording is not.
So the number decides first, then the generic code. The wording is only displayed.

Source: P4.Message in the P4Python guide,
https://help.perforce.com/helix-core/apis/p4python/current/Content/P4Python/python.p4_message.html
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from provisioner.gateways.errors import (
    AuthFailed,
    Busy,
    GatewayError,
    InUse,
    NotFound,
    Refused,
    Unreachable,
)

CANT_CLOBBER = 8196
NO_SUCH_CHANGE = 6170
NO_SUCH_CLIENT = 6178
CHANGE_NOT_SHELVED = 6931
NO_SHELF_TO_DELETE = 7579
PROTECTIONS_EMPTY = 6600
CLIENT_HAS_OPENED_FILES = 6215
CLIENT_HAS_PENDING_CHANGES = 6591
NO_PERMISSION = 6185
PROCESS_IS_YOUNG = 6553
NO_SUCH_USER = 7205
NO_CONFIGURABLES = 7634
BY_PASSWORD = 7495  # authenticated by password not ticket
SECOND_FACTOR = frozenset({8059, 8079, 8080})
# The password was right, and another one has to be set first.
PASSWORD_IS_DUE = frozenset({7475, 7489, 7623})
NO_ACCESS = frozenset({6267, 6715})
WRONG_PASSWORD = frozenset(
    {7189, 7205, 7206, 7480, 7486, 7490, 7526, 7857, 7858, 7902, 7996}
)
NO_LOG = 7557
UNICODE_SERVER = 7190
UNICODE_CLIENT = 7191
PROGRAM_REJECTED = 8111
VERIFY_FOUND = 6874
SERVER_KEY_UNKNOWN = 3120
SERVER_KEY_CHANGED = 3121

# Not logged in, or not any more: `p4 login` may help.
NEEDS_LOGIN = frozenset({7189, 7480, 7486, 7490})

# The server does not call these errors, but the command did not do its work.
_FAILED_ANYWAY = frozenset(
    {
        6346,  # change has open files and can't be deleted
        6347,  # change has fixes and can't be deleted
        6348,  # change has files and can't be deleted
        6513,  # no permission for operation on file(s)
        6514,  # protected namespace - access denied
    }
)

# A sync with one of these messages left a file at another revision than requested.
LEFT_BEHIND_BY_SYNC = frozenset(
    {
        6487,  # is opened and can't be deleted
        6488,  # is opened and can't be replaced
        6491,  # is opened and not being changed
        6495,  # must resolve before submitting
        6748,  # can't update modified file
    }
)


class ClientHasOpenedFiles(InUse):
    """The client has opened files: rescue or revert them first."""


class ClientHasPendingChanges(InUse):
    """The client has pending changes, possibly empty ones: delete them first."""


class ClientHasShelves(InUse):
    """The client has shelved changes: they can be kept once they are recorded."""


class ClientIsLocked(Refused):
    """The owner has locked the client; an administrator may override the lock."""


class ClientOfOtherServer(Refused):
    """The client is bound to an edge server: name that server, or connect to it."""


class ClientTypeMissing(Refused):
    """The server does not support this client type: client.readonly.dir is not set."""


class NotPermitted(Refused):
    """Our account is not permitted to do this."""


_SEVERITY_FAILED = 3
_GENERIC_COMMUNICATION = 38

_MOVE = (
    "{text} To move it, an administrator of Perforce runs "
    "p4 -p NEW-SERVER reload -f -c CLIENT -p OLD-SERVER."
)

_BY_MESSAGE: dict[int, tuple[type[GatewayError], str]] = {
    # -- accounts: in our words, as theirs address a person at a shell
    7189: (AuthFailed, "The password or ticket of {user} is not valid."),
    7206: (AuthFailed, "The password of {user} is not valid."),
    7480: (AuthFailed, "The ticket of {user} has expired; give Cloneyard a new one."),
    7486: (
        AuthFailed,
        "The ticket of {user} was logged out; give Cloneyard a new one.",
    ),
    7490: (AuthFailed, "The server requires a ticket from {user}; login did not help."),
    7623: (AuthFailed, "The password of {user} has expired."),
    7475: (AuthFailed, "A password must be set for {user} first."),
    7489: (AuthFailed, "The server requires {user} to set a new password."),
    7205: (AuthFailed, "The server has no user {user}."),
    7526: (AuthFailed, "The single sign-on of the server does not let {user} in."),
    # by a directory of the server
    7857: (AuthFailed, "The password of {user} is not valid."),
    7858: (AuthFailed, "The password of {user} is not valid."),
    7902: (AuthFailed, "The password of {user} is not valid."),
    7996: (AuthFailed, "The password of {user} is not valid."),
    8059: (AuthFailed, "The server asks {user} for a second factor."),
    8079: (AuthFailed, "The server asks {user} for a second factor."),
    8080: (AuthFailed, "The server asks {user} for a second factor."),
    6267: (AuthFailed, "The protections of the server deny {user} access."),
    6715: (AuthFailed, "{user} is a service user, which may not run commands."),
    UNICODE_SERVER: (
        Refused,
        "The server is in Unicode mode; set a charset such as utf8.",
    ),
    UNICODE_CLIENT: (
        Refused,
        "The server is not in Unicode mode; set the charset to none.",
    ),
    # -- not found
    6170: (NotFound, ""),  # change
    6176: (NotFound, ""),  # depot
    6177: (NotFound, ""),
    6178: (NotFound, ""),  # client, label
    6179: (NotFound, ""),
    6243: (NotFound, ""),  # must create client to access local files
    6244: (NotFound, ""),  # path must refer to client or a depot
    6245: (NotFound, ""),  # change, client, label of a revision specifier
    6502: (NotFound, ""),  # user
    7306: (NotFound, ""),  # session
    # -- work in progress
    6215: (ClientHasOpenedFiles, ""),
    6346: (InUse, ""),
    6347: (InUse, ""),
    6348: (InUse, ""),
    6591: (ClientHasPendingChanges, ""),
    6661: (InUse, ""),  # change has shelved files
    6668: (ClientHasShelves, ""),
    6887: (InUse, ""),  # client has files opened from a task stream
    7102: (InUse, ""),  # client type cannot change when files are open
    # -- come back later
    4129: (Busy, ""),  # request too large for server memory (try later?)
    4158: (Busy, ""),  # command canceled
    6597: (  # mostly the wait for somebody else's lock
        Busy,
        "{text} If this persists, ask for a higher MaxLockTime of {user}'s group.",
    ),
    7500: (Busy, ""),  # command terminated by p4 monitor terminate
    7805: (Busy, ""),  # server.maxcommands
    7975: (Busy, ""),
    8121: (Busy, ""),  # failover under way
    # -- a rule, a limit, a missing right
    4128: (Refused, "{text} Ask for a higher MaxResults of {user}'s group."),
    4157: (Refused, "{text} Ask for a higher MaxScanRows of {user}'s group."),
    7030: (ClientTypeMissing, ""),
    7588: (Refused, "{text} Name a commit or edge server in P4PORT."),
    7784: (ClientOfOtherServer, _MOVE),
    7826: (ClientOfOtherServer, _MOVE),  # a label, a branch, a client
    PROGRAM_REJECTED: (
        Refused,
        "{text} An entry of the server's rejectList names this program, or a version, "
        "build or platform that it says.",
    ),
    6185: (NotPermitted, "{user} has no permission for this operation."),
    6212: (ClientIsLocked, ""),  # spec cannot be changed
    6214: (ClientIsLocked, ""),  # spec cannot be deleted
    6238: (ClientIsLocked, ""),  # cannot be used
    6816: (ClientOfOtherServer, _MOVE),
    6905: (ClientOfOtherServer, ""),
    7305: (
        Refused,
        "{text} A super user of Perforce switches it on: p4 configure set monitor=1.",
    ),
    NO_LOG: (Refused, "The server writes no log file. Set P4LOG there."),
    6513: (Refused, ""),
    6514: (Refused, ""),
}

_BY_GENERIC: dict[int, type[GatewayError]] = {
    2: NotFound,  # unknown entity
    17: NotFound,  # empty
    33: Busy,  # an inexplicable fault of the server
}
_OPERATING_SYSTEM_IDS = range(1024)  # a file could not be opened, written, renamed


@dataclass(frozen=True, kw_only=True)
class ServerMessage:
    """One message of a command. `severity`: 1 info, 2 warning, 3 failed, 4 fatal.

    `file` is the local path that it names, "" if none.
    """

    id: int
    severity: int
    generic: int
    text: str
    file: str = ""


def failures(
    messages: Iterable[ServerMessage],
    *,
    accepted: Collection[int] = (),
    also: Collection[int] = (),
) -> list[ServerMessage]:
    """Return the messages that mean the command failed, in order.

    `accepted` are numbers to ignore; `also` are further numbers that mean failure.
    """
    return [
        message
        for message in messages
        if message.id not in accepted
        and (
            message.severity >= _SEVERITY_FAILED
            or message.id in _FAILED_ANYWAY
            or message.id in also
        )
    ]


def translate(
    failed: list[ServerMessage], *, operation: str, user: str
) -> GatewayError:
    """Return the error for the failed messages of a command, of which there is one.

    The first message with an entry of its own decides; else a lost connection; else the
    first message. If several files failed, up to ten are named.
    """
    speaker = _speaker(failed)
    error, sentence = _BY_MESSAGE.get(speaker.id, (_fallback(speaker), ""))
    text = _one_line(speaker.text)
    if not sentence and len(failed) > 1:
        text = _several(failed)
    return error(
        (sentence or "{text}").format(text=text, user=user),
        system="perforce",
        operation=operation,
        remote_code=str(speaker.id),
    )


def _speaker(failed: list[ServerMessage]) -> ServerMessage:
    for message in failed:
        if message.id in _BY_MESSAGE:
            return message
    for message in failed:
        if message.generic == _GENERIC_COMMUNICATION:
            return message
    return failed[0]


def _fallback(message: ServerMessage) -> type[GatewayError]:
    if message.generic == _GENERIC_COMMUNICATION:
        return Unreachable
    if message.id in _OPERATING_SYSTEM_IDS:
        return Refused
    return _BY_GENERIC.get(message.generic, Refused)


def _several(failed: list[ServerMessage]) -> str:
    texts = list(dict.fromkeys(_one_line(message.text) for message in failed))
    shown = "; ".join(texts[:10])
    more = len(texts) - 10
    return f"{shown}; and {more} more." if more > 0 else shown


def _one_line(text: str) -> str:
    return " ".join(text.split())
