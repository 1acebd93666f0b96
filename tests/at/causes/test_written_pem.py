"""The first defect of a PEM text that a modem cannot read is named."""

from __future__ import annotations

import pytest

from at.causes.written_pem import defect_in, defect_of

BODY = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg"  # how a made-up EC key begins


def pem(label: str = "CERTIFICATE", body: str = BODY, end: str = "") -> str:
    return f"-----BEGIN {label}-----\n{body}\n-----END {end or label}-----\n"


CERTIFICATE, KEY = pem(), pem("PRIVATE KEY")


@pytest.mark.parametrize(
    ("kind", "text", "defect"),
    [
        ("0", CERTIFICATE, ""),
        ("1", CERTIFICATE.replace("\n", "\r\n"), ""),
        ("2", KEY, ""),
        ("2", pem("EC PRIVATE KEY"), ""),
        ("3", "a key of another type", ""),
        ("0", CERTIFICATE.replace("\n", "\\n"), "spelt as \\n"),
        ("0", CERTIFICATE.replace("-----", "\u2014\u2014-"), "not plain"),
        ("0", BODY, "BEGIN line is missing"),
        ("0", " " + CERTIFICATE, "a blank stands before"),
        ("0", CERTIFICATE.partition("-----END")[0], "END line is missing"),
        ("2", pem("PRIVATE KEY", end="CERTIFICATE"), "name different things"),
        ("1", KEY, "it is a private key, written as type 1"),
        ("2", CERTIFICATE, "it is a certificate, written as type 2"),
        ("0", pem("CERTIFICATE REQUEST"), "it is a certificate request, written as type 0"),
        ("2", pem("PUBLIC KEY"), "it is a public key, written as type 2"),
        ("2", pem("RSA PRIVATE KEY"), "RSA"),
        ("2", pem("PRIVATE KEY", body="MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"), "RSA"),
        ("0", CERTIFICATE.replace("\n", "\r\r\n"), "CR CR LF"),
        ("0", CERTIFICATE.replace("\n", " "), "on one line"),
        ("0", pem(body="A" * 64 + ("\n" + "A" * 64) * 64), "longer than 4096"),
    ],
)
def test_the_first_defect_of_a_text_is_named(kind: str, text: str, defect: str) -> None:
    said = defect_in(kind, text)
    assert defect in said
    assert bool(said) is bool(defect)


@pytest.mark.parametrize(("quote", "defect"), [('"', ""), ("\u201c", "straight")])
def test_a_command_is_judged_by_its_quotes_too(quote: str, defect: str) -> None:
    assert defect in defect_of(f"AT%CMNG=0,7,0,{quote}{CERTIFICATE}{quote}")
    assert defect_of("AT%CMNG=1") == ""
