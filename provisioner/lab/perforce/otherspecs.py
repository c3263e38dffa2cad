"""Definitions of forms that the lab shows but does not store."""

from __future__ import annotations

from provisioner.lab.perforce.specs import define

# Source: the definitions in the published client; codes that it leaves open are absent.
OTHER_FORMS = (
    define(
        "ldap",
        """
Name 801 word rq len:32
Host 802 word rq words:1 len:128
Port 803 word rq words:1 len:5
Encryption 804 word rq len:10 val:none/ssl/tls
BindMethod 805 word rq len:10 val:simple/search/sasl
Options 816 line len:64 val:nodowncase/downcase,nogetattrs/getattrs,norealminusername/realminusername
SimplePattern 806 line len:128
SearchBaseDN 807 line len:128
SearchFilter 808 line len:128
SearchScope 809 word len:10 val:baseonly/children/subtree
SearchBindDN 810 line len:128
SearchPasswd 811 line len:128
SaslRealm 812 word words:1 len:128
GroupBaseDN 813 line len:128
GroupSearchFilter 814 line len:128
GroupSearchScope 815 word len:10 val:baseonly/children/subtree
AttributeUid 817 word len:128
AttributeName 818 line len:128
AttributeEmail 819 word len:128
""",  # noqa: E501 - one line a field
    ),
    define(
        "remote",
        """
RemoteID 851 word rq ro fmt:L len:32
Address 852 line rq len:32
Owner 853 word fmt:R len:32
RemoteUser 861 word fmt:R len:32
Options 854 line len:32 val:unlocked/locked,nocompress/compress,copyrcs/nocopyrcs
Update 855 date ro fmt:L len:20
Access 856 date ro fmt:L len:20
Description 857 text len:128
LastFetch 858 word fmt:L len:10
LastPush 859 word fmt:L len:10
DepotMap 860 wlist words:2 len:64
ArchiveLimits 862 wlist words:2 len:64
RemoteCharset 863 line opt:optional len:32
""",
    ),
    define(
        "repo",
        """
Repo 1001 word rq ro fmt:L len:128
Owner 1002 word fmt:R len:32
Created 1003 date ro fmt:L len:20
Pushed 1004 date ro fmt:R len:20
ForkedFrom 1005 word ro fmt:L len:128
Description 1006 text len:128
DefaultBranch 1007 word fmt:L len:32
MirroredFrom 1008 word fmt:R len:32
Options 1009 select len:10 val:lfs/nolfs
GconnMirrorServerId 1010 word fmt:L len:32
""",
    ),
    define(
        "server",
        """
ServerID 751 word rq ro len:32
Type 752 word rq len:32
Name 753 line len:32
Address 754 line len:32
ExternalAddress 755 line len:32
Services 756 word rq len:128
Options 764 line len:32 val:nomandatory/mandatory
ReplicatingFrom 765 line len:32
Description 757 text len:128
User 761 line len:64
AllowedAddresses 763 wlist len:64
UpdateCachedRepos 766 wlist len:64
ClientDataFilter 758 wlist len:64
RevisionDataFilter 759 wlist len:64
ArchiveDataFilter 760 wlist len:64
DistributedConfig 762 text len:128
""",
    ),
)
