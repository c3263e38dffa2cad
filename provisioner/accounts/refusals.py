"""Why something about accounts and their tokens is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused, NotAllowed


class OutOfScope(NotAllowed):
    """This token is not for that: {what}. Use another one, or make one that is."""

    code = "token_scope"


class AccountNotActive(ActionRefused):
    """The account “{username}” is not active. Choose another one, or activate it."""

    code = "account_not_active"


class AccountIncomplete(ActionRefused):
    """The account {username} has no uid and gid, so files cannot be owned by it. An
    administrator can add them."""

    code = "account_incomplete"
