"""The NFS mount options a site may ask for, and why some are refused."""

from __future__ import annotations

import re
from collections.abc import Callable

from provisioner.gateways.errors import Refused

Check = Callable[[str], bool]


class MountOptionRefused(Refused):
    """A mount option that is unknown, malformed, contradictory or unsafe here."""

    def __init__(self, sentence: str, *, code: str) -> None:
        super().__init__(
            sentence, system="host", operation="check mount options", remote_code=code
        )
        self.code = code


def _number(lowest: int, highest: int) -> Check:
    return lambda value: (
        bool(re.fullmatch(r"[0-9]{1,10}", value)) and lowest <= int(value) <= highest
    )


def _one_of(*values: str) -> Check:
    return lambda value: value in values


def _address(value: str) -> bool:
    return bool(re.fullmatch(r"[0-9A-Za-z.:%-]{1,255}", value))


_SECONDS = _number(0, 86_400)
_PORT = _number(0, 65_535)
_BYTES = _number(1024, 1_048_576)
_VERSION = _one_of("3", "4", "4.0", "4.1", "4.2")
_PROTOCOL = _one_of("tcp", "tcp6", "udp", "udp6", "rdma", "rdma6")
_SECURITY = _one_of("none", "sys", "krb5", "krb5i", "krb5p")

VALUED: dict[str, Check] = {
    "acdirmax": _SECONDS,
    "acdirmin": _SECONDS,
    "acregmax": _SECONDS,
    "acregmin": _SECONDS,
    "actimeo": _SECONDS,
    "clientaddr": _address,
    "local_lock": _one_of("none", "flock", "posix", "all"),
    "lookupcache": _one_of("all", "none", "pos", "positive"),
    "max_connect": _number(1, 16),
    "minorversion": _number(0, 2),
    "mountaddr": _address,
    "mounthost": _address,
    "mountport": _PORT,
    "mountproto": _PROTOCOL,
    "mountvers": _number(1, 3),
    "namlen": _number(1, 255),
    "nconnect": _number(1, 16),
    "port": _PORT,
    "proto": _PROTOCOL,
    "retrans": _number(0, 1000),
    "retry": _number(0, 100_000),
    "rsize": _BYTES,
    "sec": lambda value: all(_SECURITY(flavor) for flavor in value.split(":")),
    "timeo": _number(1, 6000),
    "vers": _VERSION,
    "write": _one_of("lazy", "eager", "wait"),
    "wsize": _BYTES,
    "xprtsec": _one_of("none", "tls", "mtls"),
}
"""Options with a value. Source: nfs(5)."""

ALIASES = {
    "nfsvers": "vers",
    "writes": "write",
    "tcp": "proto=tcp",
    "udp": "proto=udp",
    "rdma": "proto=rdma",
    "v3": "vers=3",
    "v4": "vers=4",
    "v4.0": "vers=4.0",
    "v4.1": "vers=4.1",
    "v4.2": "vers=4.2",
}
"""Other spellings, and what they are kept as."""

EITHER_OR = (
    ("hard", "soft", "softerr"),
    ("ac", "noac"),
    ("acl", "noacl"),
    ("async", "sync"),
    ("atime", "noatime"),
    ("auto", "noauto"),
    ("bg", "fg"),
    ("cto", "nocto"),
    ("dev", "nodev"),
    ("diratime", "nodiratime"),
    ("exec", "noexec"),
    ("fsc", "nofsc"),
    ("intr", "nointr"),
    ("lock", "nolock"),
    ("migration", "nomigration"),
    ("rdirplus", "nordirplus"),
    ("relatime", "norelatime"),
    ("resvport", "noresvport"),
    ("ro", "rw"),
    ("sharecache", "nosharecache"),
    ("strictatime", "nostrictatime"),
    ("suid", "nosuid"),
    ("trunkdiscovery", "notrunkdiscovery"),
)
"""Options without a value of which one excludes the others. Source: nfs(5), mount(8)."""

SINGLE = ("_netdev", "defaults", "lazytime", "nofail")

_GROUP_OF = {name: group for group in EITHER_OR for name in group}
_GROUP_OF |= {name: (name,) for name in SINGLE}

_TWO_HOSTS = (
    "two hosts may touch the files of one workspace at the same time (the one that "
    "provisions it and the one its owner works on), and with this option one of them "
    "can overwrite what the other has just written."
)

REFUSED = {
    "nocto": f"nocto is for a server's own volumes, not for workspaces: {_TWO_HOSTS}",
    "local_lock=all": "local_lock=all is for a server's own volumes, not for "
    f"workspaces: {_TWO_HOSTS}",
    "nolock": f"nolock keeps locks on the one host: {_TWO_HOSTS}",
}


def check_mount_options(text: str) -> list[str]:
    """Return the options of a comma-separated text, in order and in one spelling.

    Empty text is no options at all.

    Raises: MountOptionRefused with the code "unknown_mount_option",
    "bad_mount_option_value", "duplicate_mount_option", "contradictory_mount_options"
    or "unsafe_mount_option".
    """
    options = [_normal(part.strip()) for part in text.split(",") if part.strip()]
    kept: dict[str, str] = {}
    for option in options:
        name = option.partition("=")[0]
        key = "/".join(_GROUP_OF.get(name, (name,)))
        if kept.get(key) == option:
            raise MountOptionRefused(
                f"The mount option {option} is there twice.",
                code="duplicate_mount_option",
            )
        if key in kept:
            raise MountOptionRefused(
                f"The mount options {kept[key]} and {option} contradict each other.",
                code="contradictory_mount_options",
            )
        kept[key] = option
        if option in REFUSED:
            raise MountOptionRefused(
                f"Refused: {REFUSED[option]}", code="unsafe_mount_option"
            )
    return options


def _normal(option: str) -> str:
    """Return the one spelling of a known option whose value makes sense."""
    name, equals, value = option.partition("=")
    name = ALIASES.get(name, name)
    if "=" in name and not equals:
        return name
    if not equals and name in _GROUP_OF:
        return name
    if name == "rdirplus" and value in ("none", "force"):
        return option
    if name not in VALUED and name not in _GROUP_OF:
        raise MountOptionRefused(
            f"{name!r} is not a mount option of NFS (see nfs(5) and mount(8)).",
            code="unknown_mount_option",
        )
    if name not in VALUED:
        raise MountOptionRefused(
            f"The mount option {name} takes no value.", code="bad_mount_option_value"
        )
    if not VALUED[name](value):
        raise MountOptionRefused(
            f"{value!r} is not a value for the mount option {name}.",
            code="bad_mount_option_value",
        )
    return f"{name}={value}"
