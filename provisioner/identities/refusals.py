"""Why somebody who is known elsewhere is not signed in here: sentences of pages."""

from __future__ import annotations

from provisioner.accounts.refusals import SignInRefused


class ProviderSilent(SignInRefused):
    """{provider} does not answer. Try again in a minute, or sign in with a password."""

    code = "provider_silent"


class TooManySignIns(SignInRefused):
    """Too many people are signing in. Try again in a few seconds."""

    code = "too_many_sign_ins"
    http_status = 429


class NameMissing(SignInRefused):
    """{provider} sent no usable name in {source}. Ask an administrator."""

    code = "name_missing"


class NameBelongsToAnother(SignInRefused):
    """There is an account “{name}” already, and you have never signed in to it this
    way. Ask an administrator to rename it or, if it is yours, to set {setting}."""

    code = "name_belongs_to_another"


class UidBelongsToAnother(SignInRefused):
    """The uid {uid} that {provider} has for you belongs to the account “{other}”. Ask
    an administrator which of the two is wrong."""

    code = "uid_belongs_to_another"


class AccountClosed(SignInRefused):
    """Your account “{name}” is closed. Ask an administrator to reopen it."""

    code = "account_closed"
