"""The meaning of the numbers of +CME ERROR and +CMS ERROR, and what to try.

Sources: TS 27.007 clause 9.2, TS 27.005 clause 3.2.5, Nordic's AT command reference.
"""

from at.protocol.errors import CommandRejected
from at.protocol.line.answer_or_notice import command_name
from at.protocol.line.items import Answer

CME: dict[int, str] = {
    0: "phone failure, or not supported by this modem",
    1: "no connection to phone",
    2: "link reserved",
    3: "operation not allowed",
    4: "operation not supported",
    5: "PH-SIM PIN required",
    6: "PH-FSIM PIN required",
    7: "PH-FSIM PUK required",
    10: "SIM not inserted",
    11: "SIM PIN required",
    12: "SIM PUK required",
    13: "SIM failure",
    14: "SIM busy",
    15: "SIM wrong",
    16: "incorrect password",
    17: "SIM PIN2 required",
    18: "SIM PUK2 required",
    20: "memory full",
    21: "invalid index",
    22: "not found",
    23: "memory failure",
    24: "text string too long",
    25: "invalid characters in text string",
    26: "dial string too long",
    27: "invalid characters in dial string",
    30: "no network service",
    31: "network timeout",
    32: "network not allowed, emergency calls only",
    40: "network personalisation PIN required",
    41: "network personalisation PUK required",
    42: "network subset personalisation PIN required",
    43: "network subset personalisation PUK required",
    44: "service provider personalisation PIN required",
    45: "service provider personalisation PUK required",
    46: "corporate personalisation PIN required",
    47: "corporate personalisation PUK required",
    48: "hidden key required",
    49: "EAP method not supported",
    50: "incorrect parameters",
    51: "command implemented but currently disabled",
    52: "command aborted by user",
    53: "not attached to network due to restrictions",
    54: "modem not allowed, emergency calls only",
    55: "operation not allowed because of restrictions",
    56: "fixed dial number only",
    57: "temporarily out of service",
    58: "language or alphabet not supported",
    59: "unexpected data value",
    60: "system failure",
    61: "data missing",
    62: "call barred",
    63: "message waiting indication subscription failure",
    100: "unknown error",
    103: "illegal UE",
    105: "IMEI not accepted",
    106: "illegal ME",
    107: "packet services not allowed",
    108: "packet and other services not allowed",
    109: "the network cannot derive the identity",
    110: "implicitly detached",
    111: "PLMN not allowed",
    112: "location area not allowed",
    113: "roaming not allowed in this area",
    114: "packet services not allowed in this PLMN",
    115: "no suitable cells in this area",
    116: "switching centre temporarily not reachable",
    117: "network failure",
    119: "ESM failure",
    120: "MAC failure",
    121: "synch failure",
    122: "congestion",
    126: "insufficient resources",
    127: "missing or unknown APN",
    128: "unknown PDP address or type",
    129: "user authentication failed",
    130: "activation rejected by the gateway",
    131: "activation rejected, unspecified",
    132: "service option not supported",
    133: "requested service option not subscribed",
    134: "service option temporarily out of order",
    148: "unspecified packet data error",
    149: "PDP authentication failure",
    150: "invalid mobile class",
    171: "last PDN disconnection not allowed",
    172: "semantically incorrect message",
    173: "mandatory information element error",
    174: "information element non-existent or not implemented",
    175: "conditional IE error",
    176: "protocol error, unspecified",
    177: "operator determined barring",
    178: "maximum number of bearers reached",
    179: "requested APN not supported in this technology and PLMN",
    513: "not found",
    514: "not allowed",
    515: "memory full",
    516: "radio connection is active",
    518: "not allowed in active state",
    519: "already exists",
    520: "authentication failed",
    521: "network search interrupted, the results are partial",
    522: "band configuration not valid for the selected mode",
    523: "key generation failed",
    525: "error in JWT creation",
    527: "invalid content",
    528: "not allowed while the power-off warning is active",
    529: "failed to create the response",
}

CME_OF_CMS = {
    310: 10,
    311: 11,
    312: 5,
    313: 13,
    314: 14,
    315: 15,
    316: 12,
    317: 17,
    318: 18,
    331: 30,
    332: 31,
}
"""Errors of +CMS that are about the SIM or the network -> the same of +CME; no other one is."""

CMS: dict[int, str] = {
    **{code: CME[same] for code, same in CME_OF_CMS.items()},
    300: "ME failure",
    301: "SMS service of ME reserved",
    302: "operation not allowed",
    303: "operation not supported",
    304: "invalid PDU mode parameter",
    305: "invalid text mode parameter",
    320: "memory failure",
    321: "invalid memory index",
    322: "memory full",
    330: "SMSC address unknown",
    340: "no +CNMA acknowledgement expected",
    500: "unknown error",
    513: "not found",
    514: "not allowed",
    515: "memory full",
}

_HINTS: dict[int, str] = {
    0: "update the modem firmware, or check that this modem has the command",
    10: "`cellagent modem off`, insert a SIM, then `cellagent modem on`",
    11: "unlock the SIM: `cellagent modem at 'AT+CPIN=\"PIN\"'`",
    12: "unlock the SIM with its PUK",
    13: "`cellagent modem off`, see that the SIM sits right, then `cellagent modem on`",
    14: "the SIM is still starting: try again in a second",
    30: "`cellagent modem why` says what keeps it from the network",
    31: "try again where the signal is better (`cellagent modem signal`)",
    50: "compare the parameters with the manual of this firmware",
    51: "this firmware was built without the command: use another build",
    127: """`cellagent modem at AT+CFUN=4 'AT+CGDCONT=0,"IP","APN"' AT+CFUN=1`""",
    513: "nothing is there by that tag and type: `cellagent modem at 'AT%CMNG=1'` lists what is",
    514: "this item may not be read, used or changed; a private key, for one, is never read",
    515: "`cellagent modem at 'AT%CMNG=1'` lists the credentials, and "
    "`cellagent modem at AT%CMNG=3,TAG,TYPE` deletes one that is not needed; then try again",
    516: "wait until the connection is idle (AT+CSCON?), then try again",
    518: "`cellagent modem off --flight`, then try again",
    519: "delete what is stored under the tag first (AT%CMNG=3), if nothing needs it any more",
    520: "sign the command with the key that the modem was given (AT%XPMNG)",
    522: "`cellagent modem at AT%XBANDLOCK=0` takes the locks of bands away; then try again",
    523: "try again; if it stays, restart the modem or update its firmware",
    525: "check that the tag holds a P-256 key, and that the modem knows the time (AT+CCLK?)",
    527: "check the PEM: one whole certificate, with its BEGIN and END lines",
    528: "raise the supply voltage above the power-off warning level, then try again",
}
HINT_WITHOUT_CODE = (
    "a bare ERROR tells no more: an unknown command or wrong parameters, a mode that does not "
    "allow it, or error codes are off (AT+CMEE=1)"
)
_NO_SIM = "the SIM is not up: `cellagent modem on`, then ask again; is one inserted?"
_HINT_WITHOUT_CODE_FOR: dict[str, str] = {
    "+CGSN": "perhaps no IMEI was written to this modem in production: ask who made the board, or "
    "take another one; `cellagent modem why` looks for other causes",
    "+CPIN": _NO_SIM,
    "+CIMI": _NO_SIM,
    "%XICCID": _NO_SIM,
    "+CCLK": "the modem knows no time yet: attach to a network that tells it, or set AT+CCLK",
}
_FIRST_ESM, _LAST_ESM = 171, 233
FIRST_OF_MAKER, _LAST_OF_MAKER = 512, 599


def describe(
    final: str, code: int | None = None, text: str = "", *, command: str = ""
) -> tuple[str, str]:
    """Return what an error result means, and what to try ("" where nothing helps).

    `final` is "ERROR", "+CME ERROR" or "+CMS ERROR"; `text` the text instead of a number;
    `command` the name of the command ("+CPIN"), "" if it is unknown.
    """
    if code is None:
        if final in {"+CME ERROR", "+CMS ERROR"}:
            reason = f": {text}" if text else ", with no reason given"
            return f"the modem answered {final}{reason}", _by_text(text)
        hint = _HINT_WITHOUT_CODE_FOR.get(command, HINT_WITHOUT_CODE) if final == "ERROR" else ""
        return f"the modem answered {final}", hint
    known = CME_OF_CMS.get(code) if final == "+CMS ERROR" else code
    hint = "" if known is None else _HINTS.get(known, "")
    return f"the modem answered {final} {code} ({code_name(final, code)})", hint


def code_name(final: str, code: int) -> str:
    """Return the name of a code ("not found"), or its number's family if no source names it."""
    table = CMS if final == "+CMS ERROR" else CME
    if code in table:
        return table[code]
    if table is CME and _FIRST_ESM <= code <= _LAST_ESM:
        return f"session management cause {code}"
    if table is CME and FIRST_OF_MAKER <= code <= _LAST_OF_MAKER:
        return f"Nordic error {code}"
    return f"error {code}"


def _by_text(text: str) -> str:
    meaning = text.strip().lower()
    code = next((code for code, known in CME.items() if known.lower() == meaning), None)
    return "" if code is None else _HINTS.get(code, "")


def rejection(line: str, answer: Answer) -> CommandRejected:
    """Return the error for an answer that is not OK, with its meaning and what to try."""
    final, name = answer.final or "", command_name(line) or "AT"
    message, hint = describe(final, answer.code, answer.text, command=name)
    return CommandRejected(
        f"{name}: {message}", hint=hint, final=final, code=answer.code, text=answer.text
    )
