"""The provisioning client of Serial Modem 2.0: #XNRFPROV.

It asks for its commands as the SDK's client does over HTTP (`nrf_provisioning` and its CDDL), from
`VirtualOptions.provisioning`, a stand-in of the service. Without an address there is nothing to do,
but for the fault "provisioning-rounds". The host has to turn the radio off before credentials are
written, and on again before the results are sent.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from at.virtual import signing
from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only, parse_request
from at.virtual.families import credentials, keys
from at.virtual.kit import Fetch, Fetched, Reply, VirtualKit, fail, ok
from at.virtual.session import ModemMode

DONE, GO_OFFLINE, GO_ONLINE = 0, 1, 2
FAILED, NOT_CLAIMED, _WRONG_ROOT_CA, NO_TIME, TOO_MANY_COMMANDS = -1, -2, -3, -4, -5
MOST_COMMANDS = 5
WAITS_S = 120.0
"""How long it waits for the host to turn the radio off or on: of a real clock."""
_ASKS_S = 1.0
_TOKEN_LIFE_S = 300
_OK, _NO_CONTENT, _REFUSED = 200, 204, {401, 403}
_AT, _CONFIG, _FINISHED, _ERROR, _DONE = 0, 1, 2, 99, 100
"""Kinds of commands; that of the answer to each is higher by `_DONE`."""
_HANDLERS = {**credentials.COMMANDS, **keys.COMMANDS}


def provision(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XNRFPROV: starts a session; while one is open, another that follows it."""
    if request.form is RequestForm.TEST:
        return ok("#XNRFPROV")
    if kit.session.provisioning is not None:
        # Its work queue holds one item, which may be queued again while it runs.
        kit.session.provisioning.is_followed = True
    elif "provisioning-silent" not in kit.faults:
        _start(kit)
    return ok()


def _start(kit: VirtualKit) -> None:
    session = kit.session.provisioning = _ProvisioningSession(kit)
    kit.schedule_in_session(kit.delay(_ASKS_S), session.begin)


class _ProvisioningSession:
    """One session, from the OK to its last notice."""

    def __init__(self, kit: VirtualKit) -> None:
        self.is_followed = False
        self._kit = kit
        self._rounds = kit.faults.whole("provisioning-rounds") or 0
        self._after = ""
        self._awaited: Callable[[], bool] = lambda: False
        self._then: Callable[[], None] | None = None
        self._timer = 0

    def begin(self) -> None:
        """Ask for commands, once there is a network."""
        status = self._kit.faults.whole("provisioning-failed")
        if status is not None:
            self._end(status)
        elif self._kit.registered:
            self._ask()
        else:
            self._online(self._ask)

    def mode_changed(self) -> None:
        """Go on if that is what the session waited for."""
        then = self._then
        if then is not None and self._awaited():
            self._then = None
            self._kit.cancel(self._timer)
            then()

    def _online(self, then: Callable[[], None]) -> None:
        """Have the host turn the radio on, and go on with `then` once there is a network."""
        self._wait(GO_ONLINE, lambda: self._kit.registered, then)

    def _wait(self, status: int, awaited: Callable[[], bool], then: Callable[[], None]) -> None:
        """Have the host change the mode, and go on with `then`; fail where it does not."""
        self._awaited, self._then = awaited, then
        self._timer = self._kit.schedule_in_session(WAITS_S, lambda: self._end(FAILED))
        self._kit.notify(f"#XNRFPROV: {status}")
        self.mode_changed()

    def _end(self, status: int) -> None:
        self._then = None
        self._kit.session.provisioning = None
        self._kit.notify(f"#XNRFPROV: {status}")
        if self.is_followed:
            _start(self._kit)

    # --- commands of the service

    def _ask(self) -> None:
        kit = self._kit
        if kit.modem_time() is None:
            self._end(NO_TIME)
        elif not kit.options.provisioning:
            self._make_up()
        else:
            query = f"after={self._after}&rxMaxSize=4096&txMaxSize=4096"
            query += f"&mver={kit.firmware}&cver=3.4.0&limit={MOST_COMMANDS}"
            self._send(f"commands?{query}", None, self._received)

    def _make_up(self) -> None:
        """Do what a round of commands takes, without commands."""
        if not self._rounds:
            self._end(DONE)
            return
        self._rounds -= 1
        self._offline(partial(self._online, self._ask))

    def _offline(self, then: Callable[[], None]) -> None:
        kit = self._kit
        if kit.session.fun is ModemMode.FLIGHT:
            then()
        else:
            self._wait(GO_OFFLINE, lambda: kit.session.fun is ModemMode.FLIGHT, then)

    def _send(self, path: str, body: bytes | None, done: Callable[[Fetched], None]) -> None:
        kit, session = self._kit, self._kit.session
        claims = signing.device_claims(kit, _TOKEN_LIFE_S)
        token = signing.web_token(signing.identity_key(kit), claims).replace(" ", "")
        kind = "Accept" if body is None else "Content-Type"
        headers = (f"Authorization: Bearer {token}", f"{kind}: application/cbor")

        def answered(answer: Fetched | None) -> None:
            if kit.session is not session or session.provisioning is not self:
                return  # restarted meanwhile
            if answer is not None and answer.status in _REFUSED:
                self._end(NOT_CLAIMED)
            elif answer is None or answer.status not in {_OK, _NO_CONTENT, 202}:
                self._end(FAILED)
            else:
                done(answer)

        url = f"{kit.options.provisioning.rstrip('/')}/v1/provisioning/{path}"
        kit.fetches.append(Fetch(url, answered, headers, body))

    def _received(self, answer: Fetched) -> None:
        if answer.status != _OK:
            self._end(DONE)
            return
        commands = _decoded(answer.body)
        if commands is None:
            self._end(FAILED)
        elif len(commands) > MOST_COMMANDS:
            self._end(TOO_MANY_COMMANDS)
        elif any(kind == _AT for _, kind, *_ in commands):
            self._offline(partial(self._carry_out, commands))
        else:
            self._carry_out(commands)

    def _carry_out(self, commands: list[list[Any]]) -> None:
        """Carry commands out up to the first that fails; "finished" is for when all is well."""
        answers: list[list[Any]] = []
        for name, kind, *parameters in commands:
            if kind == _AT:
                answers.append([name, *_at_command(self._kit, *parameters)])
            elif kind == _CONFIG:
                answers.append([name, _CONFIG + _DONE])
            if answers and answers[-1][1] == _ERROR:
                break
            self._after = name
        failed = bool(answers) and answers[-1][1] == _ERROR
        finished = [name for name, kind, *_ in commands if kind == _FINISHED and not failed]
        answers += [[name, _FINISHED + _DONE] for name in finished]
        self._online(partial(self._report, answers, finished=bool(finished)))

    def _report(self, answers: list[list[Any]], *, finished: bool) -> None:
        import cbor2

        done = (lambda _: self._end(DONE)) if finished else (lambda _: self._ask())
        self._send("response", cbor2.dumps(answers), done)


def _decoded(body: bytes) -> list[list[Any]] | None:
    """Return the commands of a body: [name, kind, ...] each; None where it is something else."""
    import cbor2

    try:
        commands = cbor2.loads(body)
        return [[str(one[0]), int(one[1]), *one[2:]] for one in commands]
    except (cbor2.CBORDecodeError, TypeError, ValueError, LookupError):
        return None


def _at_command(
    kit: VirtualKit, name: str, parameters: str, ignored: list[int] | None = None
) -> tuple[int, Any, *tuple[Any, ...]]:
    """Return the answer to a command: what the modem printed, or the number of its error."""
    text = f"AT{name}={parameters}".encode().decode("latin-1")
    handler = _HANDLERS.get(name.upper())
    try:
        reply = fail() if handler is None else handler(kit, parse_request(text))
    except BadRequest as wrong:
        reply = fail(wrong.code)
    if reply.failed and reply.code not in (ignored or ()):
        words = "ERROR" if reply.code is None else f"+CME ERROR: {reply.code}"
        return _ERROR, reply.code or 0, words
    return _AT + _DONE, "\r\n".join([*reply.lines, "OK"]) + "\r\n"


COMMANDS = {"#XNRFPROV": only(provision, RequestForm.RUN, RequestForm.TEST)}
SINCE_2 = set(COMMANDS)
