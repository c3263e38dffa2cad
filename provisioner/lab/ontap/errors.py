"""The refusals of the lab's ONTAP, as data: error code, HTTP status and sentence.

Source: the error tables of the ONTAP REST API reference (volumes, snapshots, export
policies, SnapMirror, jobs). If NetApp documents no HTTP status for a code, the usual
one of its class of errors is used.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ErrorKind:
    """One row of the table; ``message`` is a template for ``str.format``."""

    status: int
    message: str


ERRORS: dict[str, ErrorKind] = {
    # --- any resource
    "1": ErrorKind(409, "duplicate entry"),
    "2": ErrorKind(400, 'An invalid value was entered for "{field}": {value}.'),
    "3": ErrorKind(404, "API not found"),
    "4": ErrorKind(404, "entry doesn't exist"),
    "6": ErrorKind(403, "not authorized for that command"),
    "8": ErrorKind(409, "entry is in use"),
    "262179": ErrorKind(400, 'Unexpected argument "{field}".'),
    "262180": ErrorKind(400, "The request body is not valid JSON: {reason}"),
    "262188": ErrorKind(400, 'Field "{field}" was specified twice.'),
    "262194": ErrorKind(400, 'The value for field "{field}" is missing.'),
    "262196": ErrorKind(400, 'Field "{field}" cannot be set in this operation.'),
    "262197": ErrorKind(400, 'The value "{value}" is invalid for field "{field}".'),
    "262198": ErrorKind(405, "{method} is not supported by {path}."),
    "262199": ErrorKind(413, "The request body is larger than {limit} bytes."),
    "262204": ErrorKind(400, "Specify at least one query field to select records."),
    "393271": ErrorKind(500, "The lab failed in a way it should not have: {reason}"),
    "6691623": ErrorKind(401, "User is not authorized"),
    "1179817": ErrorKind(503, "The service is busy. Try again later."),
    # --- SVMs and aggregates
    "2621462": ErrorKind(404, 'The target SVM "{svm}" does not exist.'),
    "2621706": ErrorKind(
        400, "The specified svm.uuid and svm.name do not refer to the same SVM."
    ),
    "2621707": ErrorKind(
        400,
        'No SVM was specified. Either "svm.name" or "svm.uuid" must be supplied.',
    ),
    "787140": ErrorKind(400, 'Exactly one of "aggregates" must be specified.'),
    "787141": ErrorKind(
        400, "The aggregate uuid and name do not refer to the same aggregate."
    ),
    "917508": ErrorKind(400, 'The target aggregate "{aggregate}" could not be found.'),
    "918242": ErrorKind(400, '"aggregates" must be specified for a FlexVol volume.'),
    # --- consistency groups
    "53411865": ErrorKind(
        400, 'Volume "{volume}" is already in the consistency group "{group}".'
    ),
    "917927": ErrorKind(404, 'The volume "{volume}" was not found.'),
    # --- volumes: names and values
    "917526": ErrorKind(
        409, 'Duplicate volume name: "{name}" is already used in SVM "{svm}".'
    ),
    "13107405": ErrorKind(
        409,
        'Another volume is currently being created with the name "{name}" in SVM '
        '"{svm}".',
    ),
    "917886": ErrorKind(400, "A volume name must be 203 characters or less."),
    "917887": ErrorKind(
        400, 'Volume name "{name}" must start with a letter or an underscore.'
    ),
    "917888": ErrorKind(
        400,
        'Volume name "{name}" is invalid: only "_" and alphanumeric characters are '
        "allowed.",
    ),
    "917534": ErrorKind(400, 'The value for "-size" is too small: {size}.'),
    "917537": ErrorKind(400, 'The value for "-size" is too large: {size}.'),
    "917829": ErrorKind(
        400, "The grow threshold must be greater than the shrink threshold."
    ),
    "917831": ErrorKind(
        400, "The minimum autosize must not be greater than the maximum autosize."
    ),
    "918521": ErrorKind(
        400,
        "The maximum autosize must not be greater than the largest volume size, "
        "{largest} bytes.",
    ),
    "917835": ErrorKind(
        400, "The snapshot reserve must be between 0 and 90 percent at creation."
    ),
    "917551": ErrorKind(400, 'Specified snapshot policy "{policy}" not found.'),
    "918252": ErrorKind(400, '"nas.path" is invalid: {reason}'),
    "918271": ErrorKind(400, 'Failed to get valid export policy "{policy}".'),
    "918652": ErrorKind(400, '"{value}" is an invalid value for field "-state".'),
    "918701": ErrorKind(400, "{feature} is not supported on this platform."),
    # --- volumes: clones
    "524601": ErrorKind(404, 'Parent volume "{name}" not found.'),
    "918236": ErrorKind(
        400,
        '"clone.parent_volume.uuid" and "clone.parent_volume.name" do not refer to '
        "the same volume.",
    ),
    "918243": ErrorKind(
        400, "The snapshot UUID is not correct for the specified snapshot name."
    ),
    "918244": ErrorKind(400, 'Invalid "volume.type" for clone volume.'),
    "918247": ErrorKind(
        400,
        'Specifying a value for "{field}" is not valid for a volume FlexClone '
        "creation.",
    ),
    "918248": ErrorKind(
        400,
        'Specifying a value for "{field}" is not valid for initiating volume '
        "FlexClone split operation.",
    ),
    "918265": ErrorKind(400, 'The volume is already in aggregate "{aggregate}".'),
    "918266": ErrorKind(
        400, '"movement.state" cannot be given with a destination aggregate.'
    ),
    "918267": ErrorKind(400, 'Aggregate "{aggregate}" does not exist.'),
    "918786": ErrorKind(400, 'No move of volume "{name}" is in progress.'),
    "918251": ErrorKind(
        400, 'Specifying a value for "{field}" is not valid for a snapshot restore.'
    ),
    "918183": ErrorKind(400, "Tiering policies are supported only with FabricPools."),
    "918235": ErrorKind(400, 'Volume "{name}" is not a FlexClone volume.'),
    "1638400": ErrorKind(
        400, 'Failed to retrieve snapshot information for "{snapshot}".'
    ),
    "1520442": ErrorKind(
        400, '"nas.path" cannot be specified for a clone of a volume of another SVM.'
    ),
    "13565983": ErrorKind(
        400, 'A value of zero is not supported for "-uid" or "-gid".'
    ),
    "917775": ErrorKind(400, 'Volume "{svm}:{name}" is not online.'),
    "9437885": ErrorKind(400, 'Volume "{svm}:{name}" is not online.'),
    "524597": ErrorKind(500, "Failed to create the clone volume: {reason}"),
    # --- volumes: delete, busy, wrapped
    "524615": ErrorKind(
        409,
        'Failed to delete volume "{name}" in SVM "{svm}" because it has one or more '
        "clones.",
    ),
    "917531": ErrorKind(
        409, 'Volume "{name}" is the root volume of SVM "{svm}" and cannot be deleted.'
    ),
    "524486": ErrorKind(409, 'Volume "{name}" is busy. Try again.'),
    "917536": ErrorKind(400, "Job completed with specified error. {reason}"),
    "460770": ErrorKind(500, "[Job] Job failed. {reason}"),
    # --- snapshots
    "525059": ErrorKind(
        409, 'A snapshot with the name "{name}" already exists on the volume.'
    ),
    "525062": ErrorKind(
        409, 'Cannot exceed maximum number of snapshots on volume "{volume}".'
    ),
    "524479": ErrorKind(
        409,
        'Volume "{volume}" is not online or does not have enough space to create a '
        "snapshot.",
    ),
    "1638461": ErrorKind(
        400, "Snapshots can only be created on read/write (RW) volumes."
    ),
    "1638477": ErrorKind(
        400, 'Snapshot name cannot begin with the reserved prefix "{prefix}".'
    ),
    "1638518": ErrorKind(400, 'The specified snapshot name "{name}" is invalid.'),
    "1638521": ErrorKind(
        400, "Snapshots can only be deleted on read/write (RW) volumes."
    ),
    "1638522": ErrorKind(
        400, "Snapshots can only be renamed on read/write (RW) volumes."
    ),
    "1638555": ErrorKind(
        409,
        'Snapshot copy "{snapshot}" of volume "{volume}" on Vserver "{svm}" has not '
        'expired or is locked. Use "volume snapshot show -fields owners, expiry-time" '
        "to see why.",
    ),
    "1638600": ErrorKind(404, "The snapshot does not exist."),
    "524511": ErrorKind(409, 'Failed to restore snapshot "{snapshot}": {reason}'),
    # --- snapshot policies
    "1638407": ErrorKind(
        400,
        "When adding schedule to a snapshot policy, the count for that schedule must "
        "be specified.",
    ),
    "1638408": ErrorKind(
        400,
        "When adding schedule to a snapshot policy, the schedule name must be "
        "specified.",
    ),
    "1638410": ErrorKind(
        409, 'Schedule "{schedule}" already exists in snapshot policy "{policy}".'
    ),
    "1638411": ErrorKind(400, "A snapshot policy must have at least one schedule."),
    "1638412": ErrorKind(404, "Schedule does not exist in snapshot policy."),
    "1638413": ErrorKind(400, 'Schedule "{schedule}" not found.'),
    "1638415": ErrorKind(
        409, "Cannot delete policy. Reason: Policy is in use by at least one volume."
    ),
    "1638417": ErrorKind(400, 'Snapshot policy name "{policy}" is invalid.'),
    "1638431": ErrorKind(409, "Cannot delete built-in policy."),
    "1638451": ErrorKind(
        400,
        "This operation would result in total snapshot count for the policy to exceed "
        "maximum supported count {limit}.",
    ),
    "1638508": ErrorKind(
        400, 'Another schedule has the same prefix "{prefix}" within this policy.'
    ),
    "1638527": ErrorKind(409, 'Snapshot policy "{policy}" already exists.'),
    "918253": ErrorKind(
        400,
        'Incorrect format for the retention period "{period}", duration must be in '
        "the ISO-8601 format.",
    ),
    # --- SVM peers
    "26345575": ErrorKind(
        400, "The specified peer cluster name and peer cluster UUID do not match."
    ),
    "26345576": ErrorKind(
        400, 'The peering cannot go from state "{old}" to "{new}" here.'
    ),
    "26345577": ErrorKind(
        400, "One of the following is required: applications, state, or name."
    ),
    "26345579": ErrorKind(400, 'The specified field "{field}" is invalid: {reason}'),
    "26345580": ErrorKind(400, "SVM name or SVM UUID must be provided."),
    "26345581": ErrorKind(
        400, 'Peer cluster name "{cluster}" could not be retrieved or validated.'
    ),
    # --- export policies
    "1703945": ErrorKind(409, "Ruleset is in use by a volume: {name}."),
    "1703947": ErrorKind(409, "Cannot delete default ruleset."),
    "1703952": ErrorKind(400, "Invalid ruleset name: {name!r}. No spaces are allowed."),
    "1703954": ErrorKind(404, "Export policy does not exist"),
    "1704047": ErrorKind(400, "Ruleset name is longer than 256 characters."),
    "1704036": ErrorKind(400, 'Invalid clientmatch: "{match}".'),
    "1704050": ErrorKind(400, 'Invalid clientmatch: duplicate match "{match}".'),
    "1704070": ErrorKind(
        409,
        "Export policy rule already exists. The export policy rule was not created "
        "because an export policy rule with the same values already exists.",
    ),
    "1704071": ErrorKind(
        409,
        "The export policy was not created because of duplicate export policy rules "
        "present in the request",
    ),
    "3277162": ErrorKind(400, "Rule index 0 is not allowed."),
    # --- volumes: efficiency
    "6881332": ErrorKind(400, 'Efficiency is not enabled on volume "{volume}".'),
    "6881341": ErrorKind(404, 'Schedule "{schedule}" does not exist.'),
    "6881346": ErrorKind(409, 'Policy "{policy}" is in use by volume "{volume}".'),
    "6881431": ErrorKind(400, 'Policy "{policy}" is predefined and stays.'),
    "6881438": ErrorKind(400, 'Policy "{policy}" cannot be modified.'),
    "6881612": ErrorKind(
        400, "Inline deduplication is only supported on all-flash and hybrid systems."
    ),
    "6881640": ErrorKind(400, '"efficiency.state" cannot be set on this platform.'),
    "6881661": ErrorKind(
        400, 'Volume "{volume}" has an inline-only policy, which has no scanner.'
    ),
    # --- SnapMirror
    "6619441": ErrorKind(400, "The source and the destination are the same."),
    "6619546": ErrorKind(400, 'Destination "{path}" must be a data-protection volume.'),
    "6619637": ErrorKind(
        409,
        'Relationship with specified destination volume "{path}" already exists.',
    ),
    "6619699": ErrorKind(400, 'Schedule "{schedule}" not found.'),
    "6619715": ErrorKind(409, "A transfer is in progress. Try again."),
    "6621060": ErrorKind(409, 'SnapMirror policy "{policy}" already exists.'),
    "13303812": ErrorKind(400, "The relationship could not be initialized: {reason}"),
    "13303818": ErrorKind(
        400, 'The relationship cannot go from state "{old}" to "{new}".'
    ),
    "13303819": ErrorKind(400, 'SnapMirror policy "{policy}" not found.'),
    "13303832": ErrorKind(400, "The relationship is already initialized."),
    "13303844": ErrorKind(400, "The relationship could not be updated: {reason}"),
    "13303852": ErrorKind(400, 'Path "{path}" is not of the form "svm:volume".'),
    "13303873": ErrorKind(
        400, '"state" can only be given together with "create_destination".'
    ),
    "13303939": ErrorKind(400, 'SVM "{svm}" is not peered with SVM "{peer}".'),
    # --- QoS policies
    "8454277": ErrorKind(409, 'The name "{name}" is already in use.'),
    # --- jobs
    "458762": ErrorKind(400, "The job has already ended."),
    "458771": ErrorKind(400, "The job cannot be paused."),
    "458776": ErrorKind(400, "The job cannot be cancelled."),
    "458783": ErrorKind(400, "The job is not paused and cannot be resumed."),
}


class OntapError(Exception):
    """A request or a job was refused as ONTAP refuses it."""

    def __init__(
        self, code: str, *, target: str | None = None, **values: object
    ) -> None:
        """Use the sentence and status of `code`, filled in with `values`."""
        kind = ERRORS[code]
        self.code = code
        self.status = kind.status
        self.target = target
        self.message = kind.message.format(**values)
        super().__init__(f"{code}: {self.message}")

    def body(self) -> dict[str, object]:
        """Return the JSON body of an HTTP error; its code is a string of digits."""
        error: dict[str, object] = {"message": self.message, "code": self.code}
        if self.target is not None:
            error["target"] = self.target
        return {"error": error}
