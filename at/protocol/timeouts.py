"""How long the answer to a command may take: what a kit's command line needs of all families.

In a table of its own, so that to send one command none of the families is imported.
"""

USUAL_S = 5.0
_CLOUD_S = 60.0
TIMEOUTS_S = {
    "AT+CFUN=": 60.0,
    "AT+COPS=?": 600.0,
    "AT+COPS=": 180.0,
    "AT+CWLAP": 30.0,
    "AT+CWLAP=": 30.0,
    "AT%ATTESTTOKEN": 15.0,
    "AT%ATTESTTOKEN=": 15.0,
    "AT%BCINFO": 10.0,
    "AT%BCINFO=": 10.0,
    "AT%CLOUDACCESSKEY": 30.0,
    "AT%CMNG=0": 30.0,
    "AT%CMNG=1": 15.0,
    "AT%CMNG=2": 15.0,
    "AT%CMNG=3": 30.0,
    "AT%CONEVAL": 60.0,
    "AT%COPS=?": 600.0,
    "AT%JWT": 15.0,
    "AT%JWT=": 15.0,
    "AT%KEYGEN=": 60.0,
    "AT%NRFCLOUDFOTA=": 10.0,
    "AT%NRFCLOUDFOTA=0": 10.0,
    "AT%NRFCLOUDFOTA=1": _CLOUD_S,
    "AT%NRFCLOUDLOCATION=": _CLOUD_S,
    "AT%NRFCLOUDMESSAGE=": _CLOUD_S,
    "AT%NRFCLOUDOBSFORWARD=": _CLOUD_S,
    "AT%NRFCLOUDOBSUPLOAD": _CLOUD_S,
    "AT%NRFCLOUDOBSUPLOAD=": _CLOUD_S,
    "AT%NRFCLOUDSHADOW=": _CLOUD_S,
    "AT%REGJWT=": 15.0,
    "AT%WIFISCAN": 20.0,
    "AT%WIFISCAN=": 260.0,
    "AT#XDFUAPPLY=": 120.0,
    "AT#XDFUINIT=": 60.0,
    "AT#XFOTA=": 30.0,
    "AT#XMODEMRESET": 30.0,
}
"""What precedes the parameters of a command, as for `at_command` -> seconds that are not usual."""


def timeout_of(line: str) -> float:
    """Return the seconds that the answer to a command line may take.

    Where several of the table fit, such as the operations of %CMNG, the longest: a limit too long
    costs less than one that breaks a command off.
    """
    before = _before_parameters(line)
    fitting = (s for text, s in TIMEOUTS_S.items() if _before_parameters(text) == before)
    return max(fitting, default=USUAL_S)


def _before_parameters(line: str) -> str:
    name, sign, parameters = line.strip().upper().partition("=")
    return name + sign + "?" * (parameters == "?")
