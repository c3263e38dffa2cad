"""Sign-in by a Perforce password or ticket, where P4_SIGN_IN_SERVER names a server."""
