"""Tokens that a modem signs: JWTs, and the COSE messages of %KEYGEN and %ATTESTTOKEN."""
