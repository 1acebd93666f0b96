"""The worker process that evaluates JSONata transforms, within bounds of time and memory.

Run as a program. Standard input carries requests, each a 4-byte length and a JSON object
`{"expression", "devices": [...], "cpu_s"}`; the answer is a 4-byte length and `{"results": [...]}`,
`{"error": text}` or `{"late": true}`. The engine prints in places, so its standard output goes
nowhere.
"""

import os
import signal
import struct
import sys
from typing import Any, BinaryIO

GRACE_S = 0.2
"""Seconds of processor time after which the worker is ended, where it could not be interrupted."""
MEMORY_BYTES = 512 * 1024 * 1024
LONGEST_ANSWER = 16 * 1024 * 1024
LENGTH = struct.Struct(">I")


def main() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    _limit_memory()
    requests = sys.stdin.buffer
    while (request := _receive(requests)) is not None:
        answer = _answer(request)
        answers.write(LENGTH.pack(len(answer)) + answer)
        answers.flush()


def _receive(stream: BinaryIO) -> bytes | None:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    return stream.read(length)


def _answer(request: bytes) -> bytes:
    import msgspec

    fields = msgspec.json.decode(request)
    try:
        _limit_time(fields["cpu_s"])
        answer = msgspec.json.encode({"results": evaluate(fields["expression"], fields["devices"])})
        if len(answer) > LONGEST_ANSWER:
            raise ValueError("the result is too large")
    except _OutOfTime:
        answer = b'{"late":true}'
    # The engine raises anything: all of it means a bad expression.
    except Exception as error:  # noqa: BLE001
        text = str(error) or type(error).__name__
        answer = msgspec.json.encode({"error": text[:300].encode("utf-8", "replace").decode()})
    finally:
        _limit_time(0)
    return answer


class _OutOfTime(BaseException):
    """The time is over; no handler of the engine takes it for an error of the expression."""


def _limit_time(cpu_s: float) -> None:
    """Bound the processor time from now on, in seconds; 0: no longer."""
    if sys.platform == "win32":  # the stand-in watches the clock
        return
    signal.signal(signal.SIGPROF, _out_of_time)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    # Ends the process even inside a regular expression, which no Python handler interrupts.
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s + GRACE_S if cpu_s else 0)


def _out_of_time(_number: int, _frame: object) -> None:
    raise _OutOfTime


def evaluate(expression: str, devices: list[dict[str, Any]]) -> list[Any]:
    """Return the result of the expression for each device, None where it yields nothing."""
    from jsonata.jsonata import Jsonata

    compiled = Jsonata.jsonata(expression)
    results = []
    for device in devices:
        # `$meta` is a variable in the language, and a field of the Device in the service.
        result = compiled.evaluate(device, {"meta": device.get("$meta")})
        results.append(_plain(result))
    return results


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a result as a JSON value: no functions, no infinite numbers."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 - NaN
            raise ValueError("a number that JSON cannot hold")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if depth > 200:
        raise ValueError("the result is too deep")
    if isinstance(value, dict):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if callable(value) or "jsonata" in type(value).__module__:
        return None
    raise TypeError(f"a result of type {type(value).__name__}")


def _limit_memory() -> None:
    if sys.platform == "win32":  # it has no such limit
        return
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
