"""Sign-in by OpenID Connect, where OIDC_ISSUER names a provider."""
