"""Words that may stand in a trace as they are: of ONTAP, of Perforce, and of ours.

A word that is not here is replaced, whatever it is. So a name of a customer can only
appear if it is one of these public words.

Source: paths and enumerations of the ONTAP REST reference; fields, options and types of
the Perforce command reference.
"""

from __future__ import annotations

_ONTAP = """
application async auto autosize certificate clone cloneyard cluster consistency-groups
csrf
created daily data dedupe default delta deleting disabled disconnected dp efficiency
enabled error expired export-policies failed failure false files flexclone flexgroup
flexvol footprint full grow grow_shrink hourly http https idle in_sync inline interfaces
ip jobs json krb5 krb5i krb5p licenses licensing local mixed move moves network never
nfs nfs3 nfs4 nodes none normal ntfs null off offline on online out_of_sync p4 paused
peered peers pending policies private cli protocols qos queued quota ready
recovery-queue relationships reports restoring rules running rw san schedules security
snapmirror snapmirrored snapshot snapshot-policies snapshots storage success svm svms
sync sys template transfers transferring true unix uninitialized unknown up v3 v4 v4.1
volume volume-efficiency-policies volumes vserver warning weekly workspace
aggregates restricted unrestricted use_export_policy ignore fail broken_off
cancelled cutover cutover_pending
XDP DP Asynchronous MirrorAllSnapshots any superuser api 65534
"""
_PERFORCE = """
Access Added AltRoots Backup Change ChangeView Client Date Depot Description
Email Files FullName Group Host Identity ImportedBy Job Jobs JobStatus JobView Label
LineEnd Map MaxLockTime MaxOpenFiles MaxResults MaxScanRows Name Options Owner Owners
Parent Password PasswordTimeout Paths Protections Public Reviews Revision Root
ServerID Status Stream StreamAtChange StreamDepth Subgroups SubmitOptions Suffix
Timeout Triggers Type TypeMap Update User Users Value View
add allwrite altsync archive auto binary branch by bytes change clobber closed commit
commit-server compress configure created default delete deleted depot distributed edge
edge-server edit enabled exclude group import integrate leaveunchanged list local locked
mac modtime move/add move/delete new noallwrite noaltsync noclobber nocompress
nomodtime none normal normdir open opened operator owner partitioned partitioned-jnl
pending private protect public purge read readonly ref remote reopen replica review
revertunchanged rmdir saved sensitive insensitive service share shelved spec standard
stream submitted submitunchanged super symlink text unicode unload unlocked unset
update updated user utf8 win world write writeable xbinary xtext ktext
action actionOwner adminPassword brokerAddress brokerVersion caseHandling clientAddress
clientCase clientCwd clientFile clientHost clientLock clientName clientRoot
clientStream desc depotFile depotTime digest
extra fileCount fileSize haveRev headAction headChange headModTime headRev headTime
headType isMapped isOwner isGroup level monitor otherAction otherChange otherLock
otherOpen ourLock password passwordChange path perm permMax replyTo rev security server
serverAddress serverCertExpires serverDate serverEncryption serverID serverLicense
serverName serverRoot serverServices serverUptime serverVersion services srev
submittedChange time type unmap userName workRev totalFileCount totalFileSize
"""
WORDS = frozenset([*_ONTAP.split(), *_PERFORCE.split()])
