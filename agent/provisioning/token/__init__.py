"""The device CA's key on a PKCS #11 token: the extra `pkcs11`."""
