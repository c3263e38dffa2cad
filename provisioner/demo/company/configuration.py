"""How the studio's Perforce servers are set up, as last read."""

from __future__ import annotations

from provisioner.demo.company.places import Places
from provisioner.demo.company.studio import Studio
from provisioner.insight.models import (
    ServerConfiguration,
    ServerFilesystem,
    ServerSetting,
)

GIB = 2**30
CONFIGURE, DEFAULT = "configure", "default"
# The releases are fixed, and so what the rules say of them changes with the years.
COMMIT_VERSION = "P4D/LINUX26X86_64/2025.1/2761706 (2025/04/29)"
REPLICA_VERSION = "P4D/LINUX26X86_64/2022.2/2369846 (2022/11/14)"
USERS, FILES = 640, 41_300_000

# Each with its value and where that comes from. Good, unless a line says why not.
COMMIT_SETTINGS = {
    "client.readonly.dir": ("/p4/1/ro", CONFIGURE),
    "db.monitor.interval": ("30", CONFIGURE),
    "db.peeking": ("2", DEFAULT),
    "filesys.bufsize": ("64K", DEFAULT),
    "monitor": ("2", CONFIGURE),
    "net.autotune": ("1", DEFAULT),
    "net.maxwait": ("3600", CONFIGURE),  # a large flush would be cut off
    "net.parallel.max": ("16", CONFIGURE),
    "net.parallel.threads": ("4", CONFIGURE),
    "net.tcpsize": ("512K", DEFAULT),
    "server": ("3", CONFIGURE),
    "server.locks.sync": ("1", CONFIGURE),  # advised against
    "server.maxcommands": ("0", DEFAULT),  # no limit
    "track": ("1", CONFIGURE),
}
# It sees few people: nobody has looked at it for years.
REPLICA_SETTINGS = {
    **COMMIT_SETTINGS,
    "client.readonly.dir": ("", DEFAULT),
    "monitor": ("1", CONFIGURE),
    "net.maxwait": ("0", DEFAULT),
    "net.parallel.max": ("0", DEFAULT),
    "net.parallel.threads": ("0", DEFAULT),
    "server": ("1", CONFIGURE),
    "server.locks.sync": ("0", DEFAULT),
    "track": ("0", DEFAULT),
}

LOCAL = "rw,noatime"
# Seen by a worker on the server's host. Archives are on the array.
COMMIT_PLACES = (
    ("P4ROOT", "xfs", "/p4/metadata", 61, LOCAL),
    ("P4JOURNAL", "xfs", "/p4/logs", 34, LOCAL),
    ("P4LOG", "xfs", "/p4/logs", 34, LOCAL),
    ("TEMP", "xfs", "/p4/metadata", 61, LOCAL),
    ("depot", "nfs", "/p4/depots", 93, "rw,vers=3,hard"),  # nearly full
)
# No worker runs on the replica's host, so its mount options are not known.
REPLICA_PLACES = (
    ("P4ROOT", "nfs", "/p4", 72, ""),
    ("P4JOURNAL", "nfs", "/p4", 72, ""),
    ("P4LOG", "nfs", "/p4", 72, ""),
    ("TEMP", "xfs", "/scratch", 12, ""),
    ("depot", "nfs", "/p4", 72, ""),
)


def configure(studio: Studio, places: Places) -> None:
    """Add one server that somebody looks after, and one that nobody does."""
    commit = studio.rows.add(
        ServerConfiguration(
            server=places.home.perforce_server,
            read_at=studio.calendar.ago(hours=2),
            version=COMMIT_VERSION,
            users=USERS,
            files=FILES,
            protection_lines=212,
            wide_protections=2,
            wide_paths=["//.../*.pem", "//depot/.../secret/..."],
            host="p4d-01",
            host_read_at=studio.calendar.ago(hours=2),
            memory_bytes=128 * GIB,
        )
    )
    replica = studio.rows.add(
        ServerConfiguration(
            server=places.builds,
            read_at=studio.calendar.ago(hours=3),
            version=REPLICA_VERSION,
            users=USERS,
            files=FILES,
        )
    )
    for read, settings, filesystems in (
        (commit, COMMIT_SETTINGS, COMMIT_PLACES),
        (replica, REPLICA_SETTINGS, REPLICA_PLACES),
    ):
        for name, (value, source) in settings.items():
            studio.rows.add(
                ServerSetting(configuration=read, name=name, value=value, source=source)
            )
        for name, fs_type, mount_point, percent_used, mount_options in filesystems:
            studio.rows.add(
                ServerFilesystem(
                    configuration=read,
                    name=name,
                    fs_type=fs_type,
                    mount_point=mount_point,
                    percent_used=percent_used,
                    mount_options=mount_options,
                )
            )
