"""What the values of a profile may be: a pattern for each, and words for one that is not so.

`path_after` matches what stands before a path, which is written whole when it is set: a profile is
read in any folder. `holds` is what a line of the file begins with.
"""

from typing import Annotated, Literal

import msgspec

NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e10, description="a number from 0 to 1e10")]
Version = Annotated[str, msgspec.Meta(pattern=r"^[-a-zA-Z0-9_.+]{0,128}$")]
"""A version at the observability service."""
DeviceId = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[-a-zA-Z0-9_]{0,128}$",
        description="what all services take: at most 128 letters, digits, - and _",
    ),
]
ServiceUrl = Annotated[str, msgspec.Meta(description="https, or http on this machine")]
Count = Annotated[int, msgspec.Meta(ge=1)]
KeepOnline = Literal["never", "as-found", "always"]
Registration = Literal["public-key", "onboard", "claim", "attestation", "none"]
_BEFORE_PORT_PATH = r"(replay:|virtual:(?=.)|(?=[^:]*/))"
WifiSource = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(auto|networkmanager|iw|companion|module|none|file:.+)$",
        description="auto, networkmanager, iw, companion, module, none, or file:PATH",
        extra={"path_after": "file:"},
    ),
]
ConsolePort = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(auto|same|none|[cC][oO][mM][0-9]+|.*[/:\\\\].*)$",
        description="auto, same (as the AT port), none, or a port as /dev/ttyACM1 or COM3",
        extra={"path_after": _BEFORE_PORT_PATH},
    ),
]
QuietHours = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?!0?(.+)-0?\1$)"
        r"(([01]?[0-9]|2[0-3]):[0-5][0-9]-([01]?[0-9]|2[0-3]):[0-5][0-9])?$",
        description="local times as 22:00-06:00, which do not end when they begin",
    ),
]
PortName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^([cC][oO][mM][0-9]+|serial:\S+|tcp://\S+:[0-9]{1,5}|virtual:.*|replay:.+"
        r"|(?!(serial|tcp):).*[/\\].*)?$",
        description="a port as /dev/ttyACM0, COM3, serial:1050934568, tcp://127.0.0.1:2000, "
        "virtual: or replay:FILE; `cellagent ports` lists them",
        extra={"path_after": _BEFORE_PORT_PATH},
    ),
]
ProxyUrl = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(https?://[^/\s]+/?)?$", description="as http://proxy.example.com:3128"
    ),
]
EmailAddress = Annotated[
    str, msgspec.Meta(pattern=r"^([^@\s:]+@[^@\s:]+)?$", description="an address as me@example.com")
]
Slug = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[-a-zA-Z0-9_]{0,128}$",
        description="a slug of letters, digits, `-` and `_`, as it stands in the service's URL",
    ),
]
LedgerAddress = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?!.*[?&]password=)"
        r"(postgres(ql)?(\+\w+)?://([^:/?@\s]*@)?[^@\s]*|(?![\w+]+://).*)$",
        description="the path of a file, or postgresql://USER@HOST/DATABASE without a password, "
        "which `cellagent config set ledger_password` asks for",
        extra={"path_after": ""},
    ),
]
PlaceToListen = Annotated[
    str, msgspec.Meta(pattern=r"^([^\s/]*:[0-9]{1,5})?$", description="HOST:PORT as 127.0.0.1:9464")
]
LoopbackPlace = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^((localhost|127(\.[0-9]{1,3}){3}|\[::1\])?:[0-9]{1,5})?$",
        description="HOST:PORT of loopback as 127.0.0.1:9464: a proxy with a password may show it "
        "to other machines",
    ),
]
SecurityTag = Annotated[
    int, msgspec.Meta(ge=0, le=2**31 - 1, description="a number from 0 to 2147483647")
]
PemFile = Annotated[
    str,
    msgspec.Meta(
        description="the path of a file in PEM", extra={"holds": "-----BEGIN ", "path_after": ""}
    ),
]
"""What it holds is looked for when it is set; when it is used, its user says what is wrong."""
PathOrUri = Annotated[str, msgspec.Meta(extra={"path_after": ""})]
TrayLayout = Annotated[
    str,
    msgspec.Meta(pattern=r"^([1-9][0-9]?x[1-9][0-9]?)?$", description="columns and rows as 4x4"),
]
DeviceTag = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[a-zA-Z0-9_.@:#=-]+$",
        description="letters, digits and `_`, `.`, `@`, `:`, `#`, `=`, `-` alone, and no blank",
    ),
]
PathInProject = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?!.*\.\.)\{project\}(/[^/?#\s]+)+$", description="a path as {project}/devices"
    ),
]
Sha256Hex = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9a-fA-F]{64}$", description="64 hex digits of a SHA-256")
]
