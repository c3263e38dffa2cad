"""The message table: what the server says, by number.

`code` packs severity, argument count, generic class and the number itself; `%name%`
in a format is replaced by the client. Source: the catalogue of messages in Perforce's
published client library.
"""

# ruff: noqa: E501 - one message, one line
from __future__ import annotations

from collections.abc import Mapping

from provisioner.lab.perforce.wire import Value

INFO, WARNING, FAILED = 1, 2, 3

# fmt: off
MESSAGES: dict[int, tuple[int, str]] = {
    4128: (824381472, "Request too large (over %maxResults%); see 'p4 help maxresults'."),
    4134: (838930470, "Incompatible wildcards '%arg%' <-> '%arg2%'."),
    4135: (839061543, "Path '%path%' is not under client's root '%root%'."),
    4136: (839061544, "Path '%path%' is not under client '%client%'."),
    4157: (824381501, "Too many rows scanned (over %maxScanRows%); see 'p4 help maxscanrows'."),
    4175: (807866447, 'Excessive combinations of wildcards in path and maps.'),
    6151: (822155271, "Revision chars (@, #) not allowed in '%id%'."),
    6152: (822155272, "Slashes (/) not allowed in '%id%'."),
    6155: (822155275, "Wildcards (*, %%%%x, ...) not allowed in '%id%'."),
    6156: (822155276, "Purely numeric name not allowed - '%id%'."),
    6161: (822155281, "Invalid revision number '%rev%'."),
    6165: (822155285, "Invalid file type '%type%'; see 'p4 help filetypes'."),
    6170: (822220826, '%change% unknown.'),
    6172: (839063580, '%change% belongs to client %client%.'),
    6173: (839063581, '%change% belongs to user %user%.'),
    6176: (822220832, "Depot '%depot%' doesn't exist."),
    6178: (838998050, "%type% '%name%' doesn't exist."),
    6179: (855775267, "%type% '%name%' unknown - use '%command%' command to create it."),
    6185: (805705769, "You don't have permission for this operation."),
    6188: (839063596, "Mapping '%depotFile%' is not under '%prefix%'."),
    6208: (822286400, "Can't update committed change %change%."),
    6212: (856037444, "Locked %type% '%name%' owned by '%user%'; use -f to force update."),
    6213: (822351941, 'Error in %domain% specification.\n%reason%'),
    6214: (839260230, "%type% '%name%' is locked and can't be deleted."),
    6215: (822417479, "Client '%client%' has files opened. To delete the client, revert any opened files and delete any pending changes first."),
    6226: (805378130, "Can't add filenames with wildcards [@#%%*] in them.\nUse -f option to force add."),
    6228: (822155348, "User name can't be changed from '%user%'."),
    6230: (822483030, "Not user '%user%'; use -f to force delete."),
    6238: (839260254, "Locked client '%client%' can only be used by owner '%user%'."),
    6239: (839260255, "Client '%client%' can only be used from host '%host%'."),
    6242: (805378146, 'A revision range cannot be used here.'),
    6243: (841226339, "%arg% - must create client '%client%' to access local files."),
    6244: (838998116, "%path% - must refer to client '%client%' or a depot."),
    6245: (822351973, "Invalid changelist/client/label/date '@%arg%'."),
    6246: (822155366, "Unintelligible revision specification '%arg%'."),
    6267: (822483067, "Access for user '%user%' has not been enabled by 'p4 protect'."),
    6344: (318773448, '%change% created[ with %workCount% open file(s)][ fixing %jobCount% job(s)].'),
    6345: (352327881, '%change% updated[, adding %workCount% file(s)][, removing %workCount2% file(s)][, adding %jobCount% fix(es)][, removing %jobCount2% fix(es)].'),
    6346: (301996234, "%change% has %count% open file(s) associated with it and can't be deleted."),
    6348: (301996236, "%change% has %count% files associated with it and can't be deleted."),
    6349: (285219021, '%change% deleted.'),
    6350: (352327886, '%change% on %date% by %user%@%client%%description%'),
    6351: (352327887, '%change% on %date% by %user%@%client% *pending*%description%'),
    6353: (285219025, '%dirName%'),
    6354: (285219026, 'Depot %depotName% saved.'),
    6356: (285219028, 'Depot %depotName% deleted.'),
    6357: (369105109, "%type% %depotName% %updateDate% %location% %map% '%description%'"),
    6359: (352327895, '%change% by %user%@%client% on %date%%description%'),
    6360: (352327896, '%change% by %user%@%client% on %date% *pending*%description%'),
    6361: (318839001, '%depotFile%%depotRev% %action%'),
    6363: (335550683, '==== %depotFile%%depotRev% - %localPath% ====[ (%type%)]'),
    6370: (301996258, '%domainType% %domainName% saved.'),
    6371: (301996259, '%domainType% %domainName% not changed.'),
    6372: (301996260, '%domainType% %domainName% deleted.'),
    6373: (352327909, "%domainType% %domainName% %updateDate% root %domainMount% '%description%'"),
    6379: (352327915, '%depotFile%%depotRev% - %action% %change% (%type%)'),
    6385: (285219057, 'Group %group% created.'),
    6387: (285219059, 'Group %group% deleted.'),
    6388: (285219060, 'Group %group% not updated.'),
    6389: (285219061, 'Group %group% updated.'),
    6391: (318773495, '%depotFile%%haveRev% - %lp%'),
    6394: (301996282, "%depotFile% - can't %action% (already opened on this client)"),
    6404: (285219076, '%toFile% - must sync before integrating.'),
    6409: (352327945, '%toFile%%toRev% - %how% %fromFile%%fromRev%'),
    6430: (301996318, "%depotFile% - can't %action% exclusive file already opened"),
    6431: (318773535, "%depotFile% - can't %action% (already opened for %badAction%)"),
    6436: (318773540, '%depotFile%%workRev% - reopened for %action%'),
    6438: (301996326, "%depotFile% - can't %action% existing file"),
    6440: (318773544, '%depotFile%%workRev% - opened for %action%'),
    6443: (318839083, '%depotFile% - also opened by %user%@%client%'),
    6446: (352327982, '%depotFile%%workRev% - %action% %change% (%type%)'),
    6447: (385882415, '%depotFile%%workRev% - %action% %change% (%type%) by %user%@%client%'),
    6450: (268441906, 'Protections saved.'),
    6451: (268441907, 'Protections not changed.'),
    6458: (318773562, '%depotFile%%haveRev% - was %action%, abandoned'),
    6459: (318773563, '%depotFile%%haveRev% - was %action%, cleared'),
    6460: (318773564, '%depotFile%%haveRev% - was %action%, deleted'),
    6461: (318773565, '%depotFile%%haveRev% - was %action%, reverted'),
    6469: (318773573, '%localPath% - vs %fromFile%%fromRev%'),
    6471: (318773575, '%localPath% - merging %fromFile%%fromRev%'),
    6472: (335550792, '%localPath% - %how% %fromFile%%fromRev%'),
    6476: (301996364, '%depotFile% - %action% of added file; must revert'),
    6477: (301996365, '%depotFile% - %action% of deleted file; must revert'),
    6479: (318773583, '%action% %depotFile%%depotRev%'),
    6484: (318773588, '%depotFile%%depotRev% - added as %localPath%'),
    6485: (318773589, '%depotFile%%haveRev% - deleted as %localPath%'),
    6486: (318773590, '%depotFile%%depotRev% - replacing %localPath%'),
    6487: (318773591, "%depotFile%%workRev% - is opened for %action% and can't be deleted"),
    6488: (318773592, "%depotFile%%workRev% - is opened for %action% and can't be replaced"),
    6489: (318773593, '%depotFile%%depotRev% - updating %localPath%'),
    6490: (318773594, '%depotFile%%depotRev% - refreshing %localPath%'),
    6491: (301996379, '%depotFile%%workRev% - is opened and not being changed'),
    6495: (302061919, '%depotFile% - must resolve %revRange% before submitting'),
    6500: (285219172, 'User %user% saved.'),
    6501: (285219173, 'User %user% not changed.'),
    6502: (822221158, "User %user% doesn't exist."),
    6504: (285219176, 'User %user% deleted.'),
    6505: (335550825, '%user% <%email%> (%fullName%) accessed %accessDate%'),
    6508: (335550828, '%mapFlag%%depotFile% %clientFile% %localPath%'),
    6510: (554768750, '[%argc% - no|No] such user(s).'),
    6511: (554768751, '[%argc% - file(s)|File(s)] not in client view.'),
    6513: (554768753, '[%argc% - no|No] permission for operation on file(s).'),
    6514: (554768754, '[%argc% - protected|Protected] namespace - access denied.'),
    6515: (554768755, '[%argc% - all|All] revision(s) already integrated in pending changelist.'),
    6516: (554768756, '[%argc% - all|All] revision(s) already integrated.'),
    6517: (554768757, '[%argc% - no|No] differing files.'),
    6519: (554768759, '[%argc% - no|No] such file(s).'),
    6520: (554768760, '[%argc% - file(s)|File(s)] not on client.'),
    6524: (554768764, '[%argc% - file(s)|File(s)] not opened anywhere.'),
    6525: (554768765, '[%argc% - file(s)|File(s)] not opened in that changelist.'),
    6526: (554768766, '[%argc% - file(s)|File(s)] not opened on this client.'),
    6528: (554768768, '[%argc% - file(s)|File(s)] not opened in default changelist.'),
    6529: (554768769, '[%argc% - no|No] file(s) resolved.'),
    6531: (554768771, '[%argc% - no|No] file(s) to resolve.'),
    6532: (554768772, '[%argc% - file(s)|File(s)] up-to-date.'),
    6538: (554768778, '[%argc% - no|No] file(s) at that changelist number.'),
    6539: (554768779, '[%argc% - no|No] file(s) as of that date.'),
    6540: (554768780, '[%argc% - file(s)|File(s)] not on client.'),
    6541: (554768781, '[%argc% - file(s)|File(s)] not in label.'),
    6542: (554768782, '[%argc% - no|No] file(s) at that revision.'),
    6551: (285219223, "** process '%id%' record cleared **"),
    6552: (285219224, "** process '%id%' marked for termination **"),
    6556: (822155676, 'Unknown spec type %type%.'),
    6568: (402659752, '%depotFile%%workRev% - %action% from %fromFile%%fromRev%[ using base %baseFile%][%baseRev%]'),
    6569: (352328105, '%localPath% - merging %fromFile%%fromRev% using base %baseFile%%baseRev%'),
    6584: (369105336, '%perm% %isgroup% %user% %ipaddr% %mapFlag%%depotFile%'),
    6591: (822417855, "Client '%client%' has pending changes. To delete the client, delete any pending changes first. An administrator may specify -f to force the delete of another user's client."),
    6596: (285219268, '%perm%'),
    6597: (824383941, "Operation took too long (over %maxLockTime% seconds); see 'p4 help maxlocktime'."),
    6631: (335550951, '%toFile%%toRev% - moved from %fromFile%%fromRev%'),
    6632: (301996520, "%depotFile% - can't move (already opened for %badAction%)"),
    6633: (285219305, "%depotFile% - can't move to an existing file"),
    6635: (318773739, '%depotFile% - needs %direction%file %movedFile%'),
    6654: (301996542, "%depotFile% - can't unshelve (already opened for %badAction%)"),
    6655: (318773759, '%depotFile%%depotRev% - unshelved, opened for %action%'),
    6656: (822155776, '%depotFile% - already shelved, use -f to update.'),
    6660: (554768900, '[%argc% - no|No] file(s) to unshelve.'),
    6661: (822286853, "%change% has shelved files associated with it and can't be deleted."),
    6664: (301996552, "Can't unshelve %depotFile% to open for %badAdd%: file already exists."),
    6665: (301996553, "Can't unshelve %depotFile% to open for %badEdit%: file does not exist or has been deleted."),
    6668: (822417932, "Client '%client%' has files shelved; use 'shelve -df' to remove them, and then try again,\nor use 'client -df -Fs' to delete the client and leave the shelved changes intact."),
    6715: (807672379, 'Command not allowed for a service user.'),
    6718: (838933054, '%change% can only be updated by user %user%, or by admin user with -f.'),
    6748: (318773852, "%depotFile%%depotRev% - can't update modified file %localPath%"),
    6751: (822418015, "Client '%client%' has files opened; use -f to force switch."),
    6752: (301996640, '%domainType% %domainName% switched.'),
    6753: (285219425, "** process '%id%' record paused **"),
    6754: (285219426, "** process '%id%' record resumed **"),
    6764: (855644780, '%depotFile% - must resolve %file%%srev% before shelving'),
    6765: (318839405, '%depotFile% - must resolve %fromFile%%rev% before submitting'),
    6779: (352328315, '%depotFile%%workRev% - %action% %change% (%type%) *exclusive*'),
    6780: (385882748, '%depotFile%%workRev% - %action% %change% (%type%) by %user%@%client% *exclusive*'),
    6788: (318773892, '%depotFile% - %action% %change%'),
    6789: (352328325, '%depotFile% - %action% %change% by %user%@%client%'),
    6792: (318773896, '%depotFile% - %action% %change% *exclusive*'),
    6793: (352328329, '%depotFile% - %action% %change% by %user%@%client% *exclusive*'),
    6816: (839260832, "Client '%client%' is restricted to use on server '%serverID%'."),
    6827: (554769067, '[%argc% - no|No] file(s) to reconcile.'),
    6828: (335551148, '%localfile% - reconcile to %action% %depotFile%%workRev%'),
    6829: (822418093, "Client '%client%' has a static view that will be overwritten; use -f to force switch."),
    6846: (841226942, '%domainType% %domain% has been unloaded, and must be reloaded to be used.'),
    6848: (824449728, '%domain% does not require reloading.'),
    6851: (805378755, 'No unload depot has been defined for this server.'),
    6852: (822155972, 'Client, label, or task stream %domainName% is not owned by you.'),
    6853: (822155973, 'Unloaded client, label, or task stream %domainName% is not owned by you.'),
    6859: (301996747, '%object% %name% unloaded.'),
    6860: (301996748, '%object% %name% reloaded.'),
    6905: (872815353, "%objectType% '%objectName%' is restricted to use on server '%domainServerID%', not on server '%serverID%'."),
    6906: (856038138, "%objectType% '%objectName%' is not restricted to use on server '%serverID%'."),
    6915: (318774019, '%depotFile% - %user%@%client% *exclusive*'),
    6965: (822090549, "Client '%client%' already exists; use a new client or -s without -o to switch to different stream."),
    7030: (824449910, "'%type%' client type has not been configured for this server.\nStorage location 'client.readonly.dir' needs to be set by the administrator."),
    7038: (805378942, 'Client storage type cannot be changed after client is created.'),
    7102: (805379006, "Can't change client type when files are open!"),
    7189: (807672853, 'Perforce password (P4PASSWD) invalid or unset.'),
    7190: (807672854, 'Unicode server permits only unicode enabled clients.'),
    7192: (824253464, 'Operation: %command%'),
    7194: (805379098, "Unknown command.  Try 'p4 help' for info."),
    7197: (807541789, 'Client side operation(s) failed.  Command aborted.'),
    7198: (822156318, 'Usage: %usage%'),
    7205: (822221861, "User %user% doesn't exist."),
    7206: (805575718, 'Password invalid.'),
    7207: (805575719, "Passwords don't match."),
    7210: (822418474, "Submit failed -- fix problems above then use 'p4 submit -c %change%'."),
    7212: (805641260, "Merges still pending -- use 'resolve' to merge files."),
    7214: (806427694, 'No files to submit.'),
    7217: (822418481, "Submit aborted -- fix problems then use 'p4 submit -c %change%'."),
    7218: (806427698, 'No files to submit from the default changelist.'),
    7219: (807541811, 'Some file(s) could not be transferred from client.'),
    7268: (285219940, 'Counter %counterName% deleted.'),
    7269: (285219941, 'Counter %counterName% set.'),
    7270: (285219942, '%counterValue%'),
    7272: (268442728, 'Affected files ...'),
    7289: (268442745, 'Password updated.'),
    7290: (268442746, 'Password deleted.'),
    7293: (285219965, 'Locking %unlockedCount% files ...'),
    7294: (285219966, '%change% submitted.'),
    7295: (301997183, '%change% renamed %newChange% and submitted.'),
    7296: (285219968, 'Submitting change %change%.'),
    7297: (318774401, '%toFile% - %how% %fromFile%'),
    7298: (285219970, '%toFile% - resolve skipped.'),
    7305: (807607433, 'Monitor not currently enabled.'),
    7306: (822156426, 'Invalid session identifier: %id%'),
    7475: (805379379, 'Password must be set before access can be granted.'),
    7480: (805575992, 'Your session has expired, please login again.'),
    7481: (285220153, "'login' not necessary, no password set for [user %user%|this user]."),
    7483: (301997371, 'User %user% logged out[ on host %target%].'),
    7490: (805379394, "Password not allowed at this server security level, use 'p4 login'."),
    7493: (285220165, 'User %user% logged in.'),
    7494: (318774598, 'User %user% ticket expires in %hours% hours %minutes% minutes.'),
    7495: (285220167, 'User %user% was authenticated by password not ticket.'),
    7500: (807607628, "Command terminated by 'p4 monitor terminate'."),
    7569: (285220241, 'Shelving files for change %change%.'),
    7574: (806428054, 'No files to shelve.'),
    7576: (301997464, 'Shelved change %change% [partially deleted, still contains %count% file(s).|deleted.]'),
    7578: (822418842, 'Change %change% has shelved files --  cannot submit.'),
    7579: (806428059, 'No shelved files in changelist to delete.'),
    7580: (285220252, '%change% files shelved.'),
    7591: (822156711, "Can't increment counter '%counterName%' - value is not numeric."),
    7605: (335551925, "For server '%serverName%', configuration variable '%variableName%' set to '%variableValue%'"),
    7606: (318774710, "For server '%serverName%', configuration variable '%variableName%' removed."),
    7623: (805576135, 'Your password has expired, please change your password.'),
    7634: (268443090, 'No configurables have been set.'),
    7711: (822353439, 'Password should be at least %size% characters in length.'),
    7805: (822156925, 'Request refused: this server is configured to run a maximum of %maxCommands% simultaneous commands. Please try again later when the load is lower.'),
    7993: (805379897, "Client of type 'readonly' cannot modify files."),
    7998: (822157118, "Can't unload partitioned client %domainName%."),
}
# fmt: on


class CommandError(Exception):
    """A command ends with this message of the table."""

    def __init__(
        self, message_id: int, *, because: int | None = None, **variables: Value
    ) -> None:
        super().__init__(message_id, variables)
        self.message_id = message_id
        # A message that stands before it, in one error with it.
        self.because = because
        self.variables = variables


class NotInLab(Exception):
    """A command or option exists in Perforce and is not part of the lab."""


def message_variables(
    message_id: int, variables: Mapping[str, Value], *, because: int | None = None
) -> dict[str, Value]:
    """Return the variables of a `client-Message` for one or two table entries."""
    code, text = MESSAGES[message_id]
    lines: dict[str, Value] = {"code0": code, "fmt0": text}
    if because is not None:
        # The client shows the last one first.
        code, text = MESSAGES[because]
        lines |= {"code1": code, "fmt1": text}
    return {**lines, **variables}


def free_message_variables(message_id: int, text: str) -> dict[str, Value]:
    """Return a `client-Message` with the class of a table entry and a text of ours."""
    code, _ = MESSAGES[message_id]
    # The argument count (bits 24 to 27) is none.
    return {"code0": code & ~(0xF << 24), "fmt0": text.replace("%", "%%")}
