"""Sign-in by LDAP and Active Directory, and the nightly sync with it."""
