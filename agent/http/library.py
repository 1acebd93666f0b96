"""httpx without its command line, which loads rich and pygments where they are installed."""

import sys
from types import ModuleType
from typing import cast

_COMMAND_LINE = "httpx._main"
_modules = cast("dict[str, ModuleType | None]", sys.modules)
# As though what the command line needs were missing: httpx is made for that.
_is_ours = _modules.setdefault(_COMMAND_LINE, None) is None
import httpx as _httpx  # noqa: E402 - the line above is of no use behind it

if _is_ours:
    del _modules[_COMMAND_LINE]

httpx = _httpx
