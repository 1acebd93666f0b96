"""The operator's CA: its certificate, its key in a file or on a PKCS #11 token, what it signs."""
