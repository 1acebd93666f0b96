"""What a base installation lacks: the extras, and the error that names the missing one."""

from importlib.util import find_spec

from agent.errors import UsageError

WEB = ("starlette", "uvicorn")
STANDIN = (*WEB, "jsonata")
EXTRA_OF = {
    **dict.fromkeys(STANDIN, "standin"),
    "psycopg": "bench",
    "segno": "bench",
    "pkcs11": "bench",
    "rich": "terminal",
    "smpclient": "mcuboot",
    "smp": "mcuboot",
    "elftools": "coredump",
    "plotext": "plot",
    "matplotlib": "plot",
    "keyring": "keyring",
    "prometheus_client": "metrics",
    "CoreWLAN": "macos",
}
"""Module -> the extra of pyproject.toml that brings it."""


class MissingExtra(UsageError):
    """Something was asked for that an extra brings, and it is not installed."""

    def __init__(self, extra: str, what: str) -> None:
        super().__init__(
            f"{what} needs the extra {extra}, which is not installed",
            hint=f"`pip install 'cellagent[{extra}]'`",
        )
        self.extra = extra


def require(what: str, *modules: str, extra: str = "") -> None:
    """Raise MissingExtra where one of the modules is not installed; imports none of them.

    Called before anything is done. `what` needs them, and begins the message; `extra` is the one to
    name where more than one brings them.
    """
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtra(extra or EXTRA_OF[module], what)
