"""The functions to which the client's answers are addressed.

The client returns a name as it got it, but some clients know the names of a real server
and refuse others. Names outside the table are ours, used only where no client checks
them.

Source: the function table of perforce/p4java (RpcFunctionSpec).
"""

from __future__ import annotations

# A question about the user, or one without a function that is known.
ANSWER = "server-Answer"
LOGIN = "dm-Login"
NEW_PASSWD = "dm-Passwd"  # noqa: S105 - a function

# A file was written, removed or changed on the client, or was not.
DONE = "server-Done"
DECLINED = "server-ReleaseFile"

# What a file on disk is, compared with a revision or looked at for the first time.
COMPARED = "server-CmpFile"
TYPE_FOUND = "dm-OpenFile"
RECONCILED = "server-ReconcileFile"
WALKED = "server-ReconcileAdds"

# Content on its way in.
OPEN = "lbr-Open"
WRITE = "lbr-WriteFile"
SENT = "dm-SubmitFile"

MOVED = "dm-MoveFile"
MERGED = "dm-ResolvedFile"
SKIPPED = "dm-ResolvedFailed"
