"""Why somebody whom the provider knows is not signed in here: sentences of pages."""

from __future__ import annotations

from typing import ClassVar

from provisioner.lib.storable import shown


class SignInRefused(Exception):
    """You could not be signed in. Try again, or ask an administrator."""

    code: ClassVar[str] = "sign_in_refused"

    def __init__(self, **facts: object) -> None:
        template = " ".join((type(self).__doc__ or "").split())
        self.sentence = shown(template.format(**facts))
        super().__init__(self.sentence)


class ProviderSilent(SignInRefused):
    """{provider} does not answer. Try again in a minute, or sign in with a password."""

    code = "provider_silent"


class TooManySignIns(SignInRefused):
    """Too many people sign in at this moment. Try again in a few seconds."""

    code = "too_many_sign_ins"


class AnswerNotValid(SignInRefused):
    """The answer of {provider} is not valid here: {reason}. Begin again."""

    code = "provider_answer_not_valid"


class NameMissing(SignInRefused):
    """{provider} sent no usable name in the claim “{claim}”. Ask an administrator."""

    code = "name_missing"


class NameBelongsToAnother(SignInRefused):
    """There is an account “{name}” that you have not signed in to this way before. Ask
    an administrator to rename it, or to set OIDC_ADOPTS_ACCOUNTS if it is yours."""

    code = "name_belongs_to_another"


class UidBelongsToAnother(SignInRefused):
    """The uid {uid} that {provider} has for you belongs to the account “{other}”. Ask
    an administrator which of the two is wrong."""

    code = "uid_belongs_to_another"


class AccountClosed(SignInRefused):
    """Your account “{name}” is closed. Ask an administrator to reopen it."""

    code = "account_closed"
