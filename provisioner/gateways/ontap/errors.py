"""What ONTAP's error codes mean to us, as tables, and their lookup.

A refusal is looked up from the most to the least specific: ONTAP's code, words in its
message, a generic code, the HTTP status. Codes are text here, although a finished ONTAP
job reports a number. An unknown refusal is Refused: we do not repeat a request that
failed for an unknown reason.

Source: the error tables of each operation in the ONTAP REST API reference,
https://docs.netapp.com/us-en/ontap-restapi/.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeVar

from provisioner.gateways.errors import (
    AlreadyExists,
    AuthFailed,
    Busy,
    GatewayError,
    InUse,
    LimitReached,
    NotFound,
    OutOfSpace,
    Refused,
)

SYSTEM = "ontap"

_Error = TypeVar("_Error", bound=GatewayError)


class Meaning(NamedTuple):
    """The error to raise, and the sentence that people read."""

    error: type[GatewayError]
    sentence: str


_NO_RIGHT = Meaning(Refused, "Our ONTAP account is not permitted to do this.")
_LOGIN_REFUSED = Meaning(AuthFailed, "ONTAP does not accept our user and password.")
_NAME_TAKEN = Meaning(AlreadyExists, "A volume of that name already exists.")
_BAD_VOLUME_NAME = Meaning(Refused, "ONTAP does not allow that volume name.")
_BAD_SNAPSHOT_NAME = Meaning(Refused, "ONTAP does not allow that snapshot name.")
_BAD_POLICY_NAME = Meaning(Refused, "ONTAP does not allow that export policy name.")
_BAD_VALUE = Meaning(Refused, "ONTAP does not accept a value in the request.")
_UNKNOWN_FIELD = Meaning(Refused, "This ONTAP release does not know a requested field.")
_BAD_CLIENT = Meaning(Refused, "ONTAP does not accept an export rule's client.")
_DUPLICATE_RULE = Meaning(Refused, "The export policy already has this rule.")
_NO_SNAPSHOT = Meaning(NotFound, "The snapshot does not exist.")
_SNAPSHOT_IN_USE = Meaning(
    InUse, "The snapshot is in use: a clone depends on it, or it is locked."
)
_NO_SVM = Meaning(NotFound, "The SVM does not exist.")
_QOS_NAME_TAKEN = Meaning(AlreadyExists, "A QoS policy of that name exists.")
_NO_AGGREGATE = Meaning(NotFound, "The aggregate does not exist.")
_NO_EXPORT_POLICY = Meaning(NotFound, "The export policy does not exist.")
_READ_ONLY_VOLUME = Meaning(
    Refused, "The volume is read-only (a SnapMirror destination)."
)
_NOT_ONLINE = Meaning(Refused, "The volume is not online.")
_SYSTEM_VOLUME = Meaning(Refused, "This is a system volume of ONTAP.")
_MIRRORED = Meaning(InUse, "SnapMirror relationships depend on the volume.")
_NO_SPACE = Meaning(OutOfSpace, "The aggregate has too little free space.")
_LIMIT = Meaning(LimitReached, "An ONTAP limit is reached.")
_CLONE_ENGINE = Meaning(Busy, "ONTAP could not create the clone at the moment.")
_NO_MIRROR_POLICY = Meaning(NotFound, "The SnapMirror policy does not exist.")
_NOT_PEERED = Meaning(Refused, "The two SVMs are not peered.")
_WRONG_MIRROR_STATE = Meaning(
    Refused, "The state of the SnapMirror relationship does not allow this."
)
_TRANSFER_RUNS = Meaning(Busy, "A SnapMirror transfer is running.")
_TRANSFER_FAILED = Meaning(Refused, "SnapMirror could not transfer the snapshot.")
_UNAVAILABLE = Meaning(Busy, "ONTAP cannot answer at the moment.")

CODES: dict[str, Meaning] = {
    # temporary
    "13107405": Meaning(Busy, "A volume of that name is being created."),
    "524486": Meaning(Busy, "The volume is busy."),
    "524481": Meaning(Busy, "The volume is temporarily locked."),
    "8454210": Meaning(Busy, "The volume's QoS workload is busy."),
    "111415208": Meaning(
        Busy, "The parent volume's file system analytics are still starting."
    ),
    # account
    "6691623": _LOGIN_REFUSED,
    # volumes: names and places
    "917526": _NAME_TAKEN,
    "917886": _BAD_VOLUME_NAME,
    "917887": _BAD_VOLUME_NAME,
    "917888": _BAD_VOLUME_NAME,
    "917508": _NO_AGGREGATE,
    "2621462": _NO_SVM,
    "917505": _NO_SVM,
    "917551": Meaning(NotFound, "The snapshot policy does not exist."),
    "918271": _NO_EXPORT_POLICY,
    "918252": Meaning(
        Refused, "The junction path is taken, invalid, or its parent does not exist."
    ),
    "918265": Meaning(Refused, "The volume is in that aggregate already."),
    "918267": _NO_AGGREGATE,
    "918786": Meaning(Refused, "No move of the volume is in progress."),
    "917534": Meaning(Refused, "The volume size is below ONTAP's minimum of 20 MB."),
    "917775": _NOT_ONLINE,
    "9437885": _NOT_ONLINE,
    "917531": _SYSTEM_VOLUME,
    "918667": _SYSTEM_VOLUME,
    "918693": _SYSTEM_VOLUME,
    "524615": Meaning(InUse, "The volume has clones (or deleted ones in recovery)."),
    # clones
    "524601": Meaning(NotFound, "The parent volume does not exist."),
    "1638400": Meaning(NotFound, "The parent volume has no such snapshot."),
    "918235": Meaning(Refused, "The volume is not a clone."),
    "918247": Meaning(Refused, "ONTAP does not accept one of the values for a clone."),
    "13565983": Meaning(Refused, "ONTAP cannot give a clone to uid or gid 0."),
    # snapshots
    "1638527": Meaning(AlreadyExists, "A snapshot policy of that name exists."),
    "525059": Meaning(AlreadyExists, "A snapshot of that name already exists."),
    "525062": Meaning(LimitReached, "The volume has the maximum number of snapshots."),
    "524479": Meaning(
        Refused, "The volume is not online or has no space for a snapshot."
    ),
    "1638461": _READ_ONLY_VOLUME,
    "1638521": _READ_ONLY_VOLUME,
    "1638477": _BAD_SNAPSHOT_NAME,
    "1638518": _BAD_SNAPSHOT_NAME,
    "1638503": _NO_SNAPSHOT,
    "1638600": _NO_SNAPSHOT,
    "1638543": _SNAPSHOT_IN_USE,
    "1638555": _SNAPSHOT_IN_USE,
    # mirrors
    "6619637": Meaning(
        AlreadyExists, "The volume already has a SnapMirror relationship."
    ),
    "6621060": Meaning(AlreadyExists, "A SnapMirror policy of that name exists."),
    "6619441": Meaning(Refused, "A volume cannot be mirrored to itself."),
    "6619546": Meaning(Refused, "The volume is not one to mirror to."),
    "13303819": _NO_MIRROR_POLICY,
    "13303821": _NO_MIRROR_POLICY,
    "13303939": _NOT_PEERED,
    "13303886": _NOT_PEERED,
    "13303818": _WRONG_MIRROR_STATE,
    "13303833": _WRONG_MIRROR_STATE,
    "6619715": _TRANSFER_RUNS,
    "6619720": _TRANSFER_RUNS,
    "13303816": _TRANSFER_RUNS,
    "13303822": _TRANSFER_RUNS,
    "13304159": _TRANSFER_RUNS,
    # export policies
    "1703954": _NO_EXPORT_POLICY,
    "1703952": _BAD_POLICY_NAME,
    "1704047": _BAD_POLICY_NAME,
    **{str(code): _BAD_CLIENT for code in range(1704036, 1704046)},
    "1704054": _BAD_CLIENT,
    "1704064": _BAD_CLIENT,
    "1704065": _BAD_CLIENT,
    "1704050": _DUPLICATE_RULE,
    "1704070": _DUPLICATE_RULE,
    "1704071": _DUPLICATE_RULE,
    # QoS policies
    "8454277": _QOS_NAME_TAKEN,
    "8454278": _QOS_NAME_TAKEN,
    "8454379": _QOS_NAME_TAKEN,
    "8454380": _QOS_NAME_TAKEN,
    "8454147": Meaning(LimitReached, "The cluster has the most QoS policies."),
    # jobs
    "458762": Meaning(Refused, "The ONTAP job has already ended."),
    "458776": Meaning(
        Refused, "ONTAP can no longer cancel the job. It continues until it ends."
    ),
    # requests of the wrong form
    "262179": _UNKNOWN_FIELD,
    "262188": _BAD_VALUE,
    "262194": _BAD_VALUE,
    "262196": _BAD_VALUE,
    "262197": _BAD_VALUE,
    "262203": _BAD_VALUE,
    "918701": Meaning(Refused, "This ONTAP platform cannot do this."),
    "9241607": Meaning(Refused, "The ONTAP cluster is not set up yet."),
}

# Some failures have no code of their own, only a generic one; the text decides.
TEXTS: tuple[tuple[re.Pattern[str], Meaning], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), meaning)
    for pattern, meaning in (
        (
            r"temporarily locked",
            Meaning(Busy, "ONTAP has temporarily locked this."),
        ),
        (r"source endpoint of one or more SnapMirror relationships", _MIRRORED),
        (r"must delete the SnapMirror relationships before", _MIRRORED),
        (r"transfer is in progress", _TRANSFER_RUNS),
        (r"not enough (free )?space|insufficient space|no space left", _NO_SPACE),
        (r"maximum number of|limit .*(reached|exceeded)|exceed.* limit", _LIMIT),
        (
            r"snapmirror.*licen[cs]e|licen[cs]e.*snapmirror",
            Meaning(Refused, "ONTAP has no SnapMirror license."),
        ),
        (r"licen[cs]e", Meaning(Refused, "ONTAP has no FlexClone license.")),
        (
            r"junction.*(already|in use)",
            Meaning(Refused, "The junction path is taken."),
        ),
        (
            r"(junction|parent (path|directory)).*(does not exist|not found)",
            Meaning(Refused, "The junction path's parent does not exist."),
        ),
    )
)

GENERIC_CODES: dict[str, Meaning] = {
    "1": Meaning(AlreadyExists, "The name is taken in ONTAP."),
    "2": _BAD_VALUE,
    "3": Meaning(Refused, "This ONTAP release does not support the request."),
    "4": Meaning(NotFound, "The requested object does not exist in ONTAP."),
    "6": _NO_RIGHT,
    "8": Meaning(InUse, "Another object in ONTAP depends on it."),
    "524597": _CLONE_ENGINE,
    "524819": _CLONE_ENGINE,
    "13303812": _TRANSFER_FAILED,
    "13303844": _TRANSFER_FAILED,
    "460770": Meaning(Refused, "ONTAP's job failed."),
    "917536": Meaning(Refused, "ONTAP's job failed."),
}

# 404 is missing on purpose. Without ONTAP's code it may come from anything that listens
# at that address, and must never be mistaken for "already gone".
STATUSES: dict[int, Meaning] = {
    401: _LOGIN_REFUSED,
    403: _NO_RIGHT,
    429: Meaning(Busy, "ONTAP is handling too many requests."),
    500: Meaning(Busy, "ONTAP had an internal error."),
    502: _UNAVAILABLE,
    503: _UNAVAILABLE,
    504: _UNAVAILABLE,
}

_UNKNOWN = Meaning(Refused, "ONTAP refused the request.")


def refusal(
    operation: str, *, code: str, message: str, http_status: int | None = None
) -> GatewayError:
    """Return the error for a failed request or a failed ONTAP job.

    `code` is "" if ONTAP gave none; `http_status` is None for an ONTAP job.
    """
    meaning = (
        CODES.get(code)
        or _by_text(message)
        or GENERIC_CODES.get(code)
        or STATUSES.get(http_status or 0)
        or _UNKNOWN
    )
    sentence = meaning.sentence
    if message:
        sentence = f"{sentence} ONTAP says: {message}"
    remote_code = code or (f"HTTP {http_status}" if http_status else "")
    return problem(
        meaning.error, sentence, operation=operation, remote_code=remote_code
    )


def problem(
    error: type[_Error],
    sentence: str,
    *,
    operation: str = "read",
    remote_code: str = "",
) -> _Error:
    """Return an error of this class about ONTAP; `operation` is the request's."""
    return error(sentence, system=SYSTEM, operation=operation, remote_code=remote_code)


def _by_text(message: str) -> Meaning | None:
    for pattern, meaning in TEXTS:
        if pattern.search(message):
            return meaning
    return None
