"""Valid shapes of values that leave rows for processes, paths, and parsers.

Each is allowed by its shape, rather than refused by what is known to harm.

tests/test_values.py lists where every value goes.
"""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import PurePosixPath

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator

from provisioner.gateways.reach import BARE_HOST, P4PORT
from provisioner.lib.cron_windows import check_windows

LONGEST_PATH_NAME = 255
# Where a worker, which may be root, has no business to write.
_OF_THE_SYSTEM = tuple(
    PurePosixPath(path)
    for path in (
        *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32"),
        *("/proc", "/sbin", "/sys", "/usr/bin", "/usr/lib", "/usr/lib32"),
        *("/usr/lib64", "/usr/libexec", "/usr/sbin", "/usr/share", "/var/spool"),
    )
)

p4port_validator = RegexValidator(
    P4PORT, "Write it as perforce:1666 or ssl:perforce:1666.", code="invalid_p4port"
)
charset_validator = RegexValidator(
    r"\A[a-z0-9]+(?:[-_][a-z0-9]+)*\Z",
    "Write none, utf8, or another name that p4 help charset lists.",
    code="invalid_charset",
)
server_id_validator = RegexValidator(
    r"\A(?!-)(?![0-9]+\Z)[A-Za-z0-9_.-]+\Z",
    "Write it as p4 serverid shows it: letters, digits, hyphens, dots and underscores.",
    code="invalid_server_id",
)
fingerprint_validator = RegexValidator(
    r"\A(?:[0-9A-Fa-f]{2}:){19}[0-9A-Fa-f]{2}\Z",
    "Write twenty pairs of hexadecimal digits between colons, as p4 trust -l shows "
    "them.",
    code="invalid_fingerprint",
)
host_validator = RegexValidator(
    BARE_HOST,
    "Write the name of a host or its IP address, without https:// and without a port.",
    code="invalid_host",
)
ontap_user_validator = RegexValidator(
    r"\A[!-9;-~]+\Z",
    "Write the name of an ONTAP account, without spaces and colons.",
    code="invalid_ontap_user",
)
ontap_name_validator = RegexValidator(
    r"\A[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.))*\Z",
    "Use letters, digits, hyphens, underscores and dots.",
    code="invalid_ontap_name",
)
client_match_validator = RegexValidator(
    r"\A(?:@[A-Za-z0-9_.-]+|\.?[A-Za-z0-9_][A-Za-z0-9_.-]*"
    r"|[0-9]{1,3}(?:\.[0-9]{1,3}){3}/[0-9.]{1,15}"
    r"|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f.]*)+(?:/[0-9]{1,3})?)\Z",
    "Write a host, a network such as 10.0.0.0/24, a .domain, or a @netgroup.",
    code="invalid_client_match",
)


def validate_windows(text: str) -> None:
    """Refuse lines that are no windows of time.

    Raises: ValidationError.
    """
    try:
        check_windows(text)
    except ValueError as error:
        raise ValidationError(str(error), code="invalid_windows") from None


def check_network(text: str) -> None:
    """Refuse anything but a network such as 10.2.0.0/16 or fd00:2::/48.

    Raises: ValidationError.
    """
    try:
        ip_network(text)
    except ValueError:
        sentence = "Write a network such as 10.2.0.0/16, without bits of a host."
        raise ValidationError(sentence, code="invalid_network") from None


def check_file_path(path: str) -> None:
    """Refuse anything but the absolute path of a file.

    Raises: ValidationError.
    """
    if not _is_plain_path(path):
        raise ValidationError("Give the absolute path of a file.", code="invalid_path")


def check_directory(path: str) -> None:
    """Refuse anything but a full path that can hold people's files.

    Perforce clients have their roots below it, so it must not contain the special
    characters of views and revisions.

    Raises: ValidationError.
    """
    if not _is_plain_path(path) or set(path) & set('"#@*%') or "..." in path:
        raise ValidationError(
            'Give the absolute path of a directory below /, without ", #, @, * and %.',
            code="invalid_path",
        )
    place = PurePosixPath(path)
    if any(place.is_relative_to(taken) for taken in _OF_THE_SYSTEM):
        raise ValidationError(
            f"{path} belongs to the system of its hosts. Give another directory.",
            code="system_path",
        )


def _is_plain_path(path: str) -> bool:
    place = PurePosixPath(path)
    return (
        path.isprintable()
        and path.startswith("/")
        and not path.startswith("//")
        and ".." not in place.parts
        and len(place.parts) > 1
        and all(len(part.encode()) <= LONGEST_PATH_NAME for part in place.parts)
    )
