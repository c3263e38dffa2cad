"""What the scores and rules go by, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Source:
    """A text that scores and rules go by; `year` is "" where it is kept current."""

    code: str
    title: str
    url: str
    year: str = ""
    says: str

    @property
    def named(self) -> str:
        return f"{self.title} ({self.year})" if self.year else self.title


PLANNING = Source(
    code="planning",
    title="Perforce, Planning Your Perforce Installation",
    url="https://issuu.com/eswlab/docs/serverplan",
    says="Database: best on direct-attached RAID 10, good on direct-attached disks, "
    "fair on SAN, bad or unsupported on NAS. Journal: the same. Archives: best on "
    "separate direct-attached disks, good on SAN, fair on NAS.",
)
FILESYSTEM = Source(
    code="filesystem",
    title="P4 Server Administration Documentation, Filesystem",
    url="https://help.perforce.com/helix-core/server-apps/p4sag/current/Content/P4SAG/install.filesystem.html",
    says="Supported over NFS that implements flock. Under Linux, locks over NFS are "
    "slow, and a journal over NFS slows all operations. Recommended: local disks, or "
    "a SAN of low latency. Workspaces may be on NFS.",
)
LOCATION = Source(
    code="location",
    title="P4 Server Administration Documentation, Location of db.* files, journal, "
    "and depot files",
    url="https://help.perforce.com/helix-core/server-apps/p4sag/current/Content/P4SAG/performance.journal_location.html",
    says="A filesystem each for database, journal and archives. Little latency to the "
    "database, which usually takes SSDs. The live journal is on another device.",
)
REQUIREMENTS = Source(
    code="requirements",
    title="P4 Server Administration Documentation, System requirements",
    url="https://help.perforce.com/helix-core/server-apps/p4sag/current/Content/P4SAG/install.system.reqs.html",
    says="64 MB of memory for each licensed user, and 1.5 KB for each file. What is in "
    "the filesystem cache is not read from storage.",
)
SHARED_ARCHIVES = Source(
    code="shared_archives",
    title="P4 Server Administration Documentation, Shared archives",
    url="https://help.perforce.com/helix-core/server-apps/p4sag/current/Content/P4SAG/replication-shared-archives.html",
    says="A replica can share the archives of its target: on the same machine, or over "
    "shared network storage.",
)
MULTI_SITE = Source(
    code="multi_site",
    title="S. Stanford (NetApp), Multi-Site Perforce at NetApp",
    url="https://www.slideshare.net/slideshow/multisite-perforce-at-netapp/39170729",
    year="2014",
    says="4.1 million commands a day, 3,722 users, a database of 1.2 TB. SAN (Fibre "
    "Channel, redundant fabrics) for database, journal and log of each large site, "
    "which has an edge server; NFS over 10 GbE beside it.",
)
GEIGER = Source(
    code="geiger",
    title="R. Geiger (Perforce), Perforce with Network Appliance Storage",
    url="http://www.perforce.com/perforce/conf2001/geiger/wprmg.html",
    year="2001",
    says="Database and archives ran over NFS. No local locking for the database, and "
    "the journal on a local filesystem.",
)
LAYOUT = Source(
    code="layout",
    title="Perforce, The Server Deployment Package",
    url="https://www.perforce.com/blog/perforce-server-deployment-package-now-available-workshop",
    year="2015",
    says="Three volumes: metadata, archives with checkpoints, logs with the journal. "
    "Only the one with archives has to be backed up.",
)
TR = Source(
    code="tr",
    title="NetApp, TR-4164, Perforce on clustered Data ONTAP",
    url="https://www.netapp.com/us/media/tr-4164.pdf",
    says="We had no copy. What was noted from it: over NFSv3, nocto and local_lock=all "
    "brought a measured run from 732 to 406 seconds. They are for a server's own "
    "volumes, and never for workspaces. Its tables that compare protocols are not "
    "quoted.",
)
NFS5 = Source(
    code="nfs5",
    title="nfs(5) of Linux",
    url="https://man7.org/linux/man-pages/man5/nfs.5.html",
    says="local_lock and nolock are options of NFSv3. Locks of NFSv4 are part of the "
    "protocol, with leases, and need no other services.",
)
ID_MAPPING = Source(
    code="id_mapping",
    title="Oracle, NFSv4 on Exalogic, Overview",
    url="https://docs.oracle.com/cd/E18476_01/doc.220/e18478/GUID-8D52DB09-1FD4-4033-9182-843881653B86.htm",
    says="NFSv4 needs a naming service for the mapping of IDs. NFSv3 locks by another "
    "protocol (NLM), which has known limitations.",
)
GROUPS = Source(
    code="groups",
    title="ONTAP documentation, Protect consistency groups",
    url="https://docs.netapp.com/us-en/ontap/consistency-groups/protect-task.html",
    says="Snapshots of several volumes at one moment, for SAN, NAS and NVMe.",
)
NVME_HOSTS = Source(
    code="nvme_hosts",
    title="ONTAP SAN Host Utilities, ONTAP support and features for RHEL hosts",
    url="https://docs.netapp.com/us-en/ontap-sanhost/nvme-rhel-supported-features.html",
    says="NVMe/TCP takes ONTAP 9.10.1 and RHEL 9.0, and in-band authentication more. "
    "Multipath of NVMe and of SCSI differ.",
)
LARGE_VOLUMES = Source(
    code="large_volumes",
    title="ONTAP EMS reference, wafl.no.large.vvol.size.set",
    url="https://docs.netapp.com/us-en/ontap-ems/wafl-no-events.html",
    says="A volume of more than 100 TB has to be made for it (large_size_enabled).",
)
OURS = Source(
    code="ours",
    title="Cloneyard",
    url="",
    says="Workspaces, sandboxes and checkpoints are FlexClones of volumes, which hosts "
    "mount over NFS. It clones no LUNs and no namespaces.",
)

SOURCES = (
    *(PLANNING, FILESYSTEM, LOCATION, REQUIREMENTS, SHARED_ARCHIVES, MULTI_SITE),
    *(GEIGER, LAYOUT, TR, NFS5, ID_MAPPING, GROUPS, NVME_HOSTS, LARGE_VOLUMES, OURS),
)
