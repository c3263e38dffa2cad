"""Which NFS mount options a site may use for workspaces.

Source: nfs(5) and mount(8) of Linux; NetApp's technical report on Perforce for the two
options that are refused.
"""

from __future__ import annotations

import re

_TWO_HOSTS = (
    "two hosts may use the same workspace, and each would trust its own cache. That "
    "can corrupt files. It is meant for a Perforce server's own volumes, not for "
    "workspaces"
)
_LOSES_WRITES = (
    "when storage does not answer for a while, writes are lost that programs believe "
    "done. That can truncate files. Use hard, the default, which waits"
)
REFUSED = {
    "nocto": f"nocto turns off close-to-open consistency, but {_TWO_HOSTS}.",
    "soft": f"soft gives up, and {_LOSES_WRITES}.",
    "softerr": f"softerr gives up, and {_LOSES_WRITES}.",
    "nolock": f"nolock keeps locks on one host, but {_TWO_HOSTS}.",
    "local_lock=all": f"local_lock=all keeps locks on one host, but {_TWO_HOSTS}.",
}

_NUMBER = r"[0-9]+"
_FLAVOR = r"(?:none|sys|krb5|krb5i|krb5p)"
_WITH_VALUE = {
    "vers": r"(?:3|4|4\.[012])",
    "nfsvers": r"(?:3|4|4\.[012])",
    "minorversion": r"[012]",
    "proto": r"(?:tcp6?|udp6?|rdma6?)",
    "mountproto": r"(?:tcp6?|udp6?)",
    "sec": rf"{_FLAVOR}(?::{_FLAVOR})*",
    "lookupcache": r"(?:all|none|pos|positive)",
    "local_lock": r"(?:none|flock|posix)",
    "xprtsec": r"(?:none|tls|mtls)",
    "clientaddr": r"[0-9A-Fa-f.:]+",
    "mounthost": r"[A-Za-z0-9.:-]+",
    "nconnect": r"(?:[1-9]|1[0-6])",
    "max_connect": r"(?:[1-9]|1[0-6])",
    **dict.fromkeys(
        (
            "timeo",
            "retrans",
            "retry",
            "rsize",
            "wsize",
            "port",
            "mountport",
            "mountvers",
            "namlen",
            "bsize",
            "acregmin",
            "acregmax",
            "acdirmin",
            "acdirmax",
            "actimeo",
        ),
        _NUMBER,
    ),
}
# A mount can have only one option of each set.
_EXCLUSIVE = (
    {"hard", "soft", "softerr"},
    {"ro", "rw"},
    {"ac", "noac"},
    {"cto"},
    {"bg", "fg"},
    {"acl", "noacl"},
    {"lock", "nolock"},
    {"intr", "nointr"},
    {"rdirplus", "nordirplus"},
    {"sharecache", "nosharecache"},
    {"resvport", "noresvport"},
    {"fsc", "nofsc"},
    {"migration", "nomigration"},
    {"suid", "nosuid"},
    {"dev", "nodev"},
    {"exec", "noexec"},
    {"atime", "noatime", "relatime", "norelatime", "strictatime"},
    {"diratime", "nodiratime"},
    {"auto", "noauto"},
    {"user", "nouser"},
    {"sync", "async"},
    {"tcp", "udp", "rdma"},
    {"_netdev"},
    {"defaults"},
    {"nofail"},
)
_WORDS = frozenset().union(*_EXCLUSIVE)


class MountOptionRefused(ValueError):
    """A mount option that is harmful or unknown.

    `code` is stable; `sentence` gives the reason and what to do.
    """

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


def check_mount_options(text: str) -> list[str]:
    """Return the options of a comma-separated list, in order.

    Raises: MountOptionRefused.
    """
    options = [option.strip() for option in text.split(",") if option.strip()]
    seen: set[str] = set()
    for option in options:
        _check_one(option)
        name = option.partition("=")[0]
        if name in seen:
            raise MountOptionRefused(
                "mount_option_twice", f"The mount option {name} is given twice."
            )
        seen.add(name)
    for alternatives in _EXCLUSIVE:
        clash = sorted(alternatives & seen)
        if len(clash) > 1:
            raise MountOptionRefused(
                "mount_options_contradict",
                f"The mount options {' and '.join(clash)} contradict each other. Keep "
                "only one of them.",
            )
    return options


def _check_one(option: str) -> None:
    if option in REFUSED:
        raise MountOptionRefused(
            "mount_option_unsafe", f"{REFUSED[option]} Leave it out."
        )
    name, is_assigned, value = option.partition("=")
    if is_assigned and name in _WITH_VALUE:
        if re.fullmatch(_WITH_VALUE[name], value):
            return
        raise MountOptionRefused(
            "mount_option_value",
            f"{value!r} is not valid for the mount option {name}; see nfs(5).",
        )
    if not is_assigned and name in _WORDS:
        return
    raise MountOptionRefused(
        "mount_option_unknown",
        f"{option!r} is not an NFS mount option known to nfs(5). Correct it or leave "
        "it out.",
    )
