"""What a person may ask for: checks, rows, events and jobs, in one transaction.

Each action takes `by` first: who asks. It raises an ActionRefused and leaves nothing
behind, or returns the row whose work has been queued.
"""

from __future__ import annotations

from provisioner.workspaces.actions.abandoned import (
    abandoned_notify,
    abandoned_retire,
    workspace_ask_owner,
    workspace_retire_abandoned,
)
from provisioner.workspaces.actions.accounts import (
    account_choose_zone,
    account_update,
    team_create,
    team_update,
)
from provisioner.workspaces.actions.auditing import (
    audit_start,
    finding_resolve,
    findings_adopt,
)
from provisioner.workspaces.actions.bisecting import (
    bisection_start,
    bisection_stop,
    bisection_verdict,
)
from provisioner.workspaces.actions.checking import template_check, template_preview
from provisioner.workspaces.actions.creating import workspace_create
from provisioner.workspaces.actions.forwarding import (
    workspace_forward,
    workspace_forward_abort,
)
from provisioner.workspaces.actions.governing import (
    perforce_server_pause,
    perforce_server_resume,
)
from provisioner.workspaces.actions.heartbeats import workspace_heartbeat
from provisioner.workspaces.actions.lease_policies import (
    lease_policy_preview,
    lease_policy_remove,
    lease_policy_remove_preview,
    lease_policy_save,
)
from provisioner.workspaces.actions.leases import (
    workspace_extend,
    workspace_keep,
    workspace_release,
)
from provisioner.workspaces.actions.looking import workspace_look
from provisioner.workspaces.actions.pools import (
    pool_create,
    pool_delete,
    pool_update,
)
from provisioner.workspaces.actions.refreshing import (
    refresh_pause,
    refresh_policy_save,
    template_refresh_pause,
)
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_restore,
    workspace_retire,
    workspace_retry,
)
from provisioner.workspaces.actions.sharing import (
    workspace_open,
    workspace_share,
    workspace_unshare,
)
from provisioner.workspaces.actions.sites import (
    perforce_server_connect,
    perforce_server_save,
    perforce_server_test,
    site_connect,
    site_save,
    site_test,
    site_try_out,
)
from provisioner.workspaces.actions.subscribing import (
    template_subscribe,
    template_unsubscribe,
)
from provisioner.workspaces.actions.templates import (
    template_build,
    template_build_stop,
    template_create,
    template_update,
)
from provisioner.workspaces.actions.tickets import token_for_ticket
from provisioner.workspaces.actions.tokens import (
    api_token_create,
    api_token_revoke,
    api_tokens_revoke_own,
)
from provisioner.workspaces.actions.webhooks import (
    delivery_repeat,
    webhook_create,
    webhook_delete,
    webhook_renew_secret,
    webhook_test,
    webhook_update,
)

__all__ = [
    "abandoned_notify",
    "abandoned_retire",
    "account_choose_zone",
    "account_update",
    "api_token_create",
    "api_token_revoke",
    "api_tokens_revoke_own",
    "audit_start",
    "bisection_start",
    "bisection_stop",
    "bisection_verdict",
    "delivery_repeat",
    "finding_resolve",
    "findings_adopt",
    "lease_policy_preview",
    "lease_policy_remove",
    "lease_policy_remove_preview",
    "lease_policy_save",
    "perforce_server_connect",
    "perforce_server_pause",
    "perforce_server_resume",
    "perforce_server_save",
    "perforce_server_test",
    "pool_create",
    "pool_delete",
    "pool_update",
    "refresh_pause",
    "refresh_policy_save",
    "site_connect",
    "site_save",
    "site_test",
    "site_try_out",
    "team_create",
    "team_update",
    "template_build",
    "template_build_stop",
    "template_check",
    "template_create",
    "template_preview",
    "template_refresh_pause",
    "template_subscribe",
    "template_unsubscribe",
    "template_update",
    "token_for_ticket",
    "webhook_create",
    "webhook_delete",
    "webhook_renew_secret",
    "webhook_test",
    "webhook_update",
    "workspace_ask_owner",
    "workspace_create",
    "workspace_extend",
    "workspace_forward",
    "workspace_forward_abort",
    "workspace_heartbeat",
    "workspace_keep",
    "workspace_look",
    "workspace_open",
    "workspace_purge",
    "workspace_release",
    "workspace_restore",
    "workspace_retire",
    "workspace_retire_abandoned",
    "workspace_retry",
    "workspace_share",
    "workspace_unshare",
]
