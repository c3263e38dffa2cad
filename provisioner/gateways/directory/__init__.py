"""A directory of people, by LDAP: OpenLDAP, 389 Directory Server, Active Directory.

`ldap3` has no other user. Its door is `gateway.py`.
"""
