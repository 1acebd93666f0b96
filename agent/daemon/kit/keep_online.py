"""Decides when a modem that is off is turned on again: `kit.keep_online`. Pure; time is given."""

from collections import deque
from collections.abc import Iterator
from enum import Enum, auto

from agent.config.value_types import KeepOnline
from agent.daemon.snapshot import Finding
from at.protocol.state_machine import Transitions

STEADY_S = 600.0
"""A modem that stays on for so long after it was turned on is no longer watched."""
TURNS = 2
"""So often a modem is turned on; one that is off again then is turned off by its application."""
LOOP_BOOTS, LOOP_S = 5, 600.0
"""So many restarts within so many seconds are a loop."""


class KeepState(Enum):
    """How the modem of a kit was last seen, and what may be done about it."""

    UNSEEN = auto()
    ON = auto()
    OFF = auto()
    """Off as it was found, or was turned off: it stays off."""
    SETTLING = auto()
    """To be on: the kit's own firmware has its time to turn it on."""
    TURNED = auto()
    """Turned on here, and not steady yet."""
    GIVEN_UP = auto()
    """Off again each time that it was turned on."""
    OFF_BY_HAND = auto()
    """Turned off by someone through the agent: it stays off, whatever the policy."""


class KeepEvent(Enum):
    """What is seen of the modem, or done to it."""

    SEEN_ON = auto()
    SEEN_OFF = auto()
    MISSED = auto()
    """Off though it is always to be on."""
    RESTARTED = auto()
    TURN = auto()
    """It is turned on."""
    STEADY = auto()
    GIVE_UP = auto()
    TURNED_OFF = auto()
    """Off, and somebody had asked for that through the agent."""


_S, _E = KeepState, KeepEvent
TRANSITIONS = Transitions(
    {
        (_S.UNSEEN, _E.SEEN_ON): _S.ON,
        (_S.UNSEEN, _E.SEEN_OFF): _S.OFF,
        (_S.UNSEEN, _E.MISSED): _S.SETTLING,
        (_S.UNSEEN, _E.RESTARTED): _S.UNSEEN,
        (_S.ON, _E.SEEN_ON): _S.ON,
        (_S.ON, _E.SEEN_OFF): _S.OFF,
        (_S.ON, _E.MISSED): _S.SETTLING,
        (_S.ON, _E.RESTARTED): _S.SETTLING,
        (_S.OFF, _E.SEEN_ON): _S.ON,
        (_S.OFF, _E.SEEN_OFF): _S.OFF,
        (_S.OFF, _E.MISSED): _S.SETTLING,
        (_S.OFF, _E.RESTARTED): _S.OFF,
        (_S.SETTLING, _E.SEEN_ON): _S.ON,
        (_S.SETTLING, _E.SEEN_OFF): _S.SETTLING,
        (_S.SETTLING, _E.MISSED): _S.SETTLING,
        (_S.SETTLING, _E.RESTARTED): _S.SETTLING,
        (_S.SETTLING, _E.TURN): _S.TURNED,
        (_S.SETTLING, _E.GIVE_UP): _S.GIVEN_UP,
        (_S.TURNED, _E.SEEN_ON): _S.TURNED,
        (_S.TURNED, _E.SEEN_OFF): _S.SETTLING,
        (_S.TURNED, _E.MISSED): _S.SETTLING,
        (_S.TURNED, _E.RESTARTED): _S.SETTLING,
        (_S.TURNED, _E.STEADY): _S.ON,
        (_S.GIVEN_UP, _E.SEEN_ON): _S.ON,
        (_S.GIVEN_UP, _E.SEEN_OFF): _S.GIVEN_UP,
        (_S.GIVEN_UP, _E.MISSED): _S.GIVEN_UP,
        (_S.GIVEN_UP, _E.RESTARTED): _S.GIVEN_UP,
        (_S.UNSEEN, _E.TURNED_OFF): _S.OFF_BY_HAND,
        (_S.ON, _E.TURNED_OFF): _S.OFF_BY_HAND,
        (_S.OFF, _E.TURNED_OFF): _S.OFF_BY_HAND,
        (_S.SETTLING, _E.TURNED_OFF): _S.OFF_BY_HAND,
        (_S.TURNED, _E.TURNED_OFF): _S.OFF_BY_HAND,
        (_S.GIVEN_UP, _E.TURNED_OFF): _S.OFF_BY_HAND,
        (_S.OFF_BY_HAND, _E.TURNED_OFF): _S.OFF_BY_HAND,
        (_S.OFF_BY_HAND, _E.SEEN_ON): _S.ON,
        (_S.OFF_BY_HAND, _E.SEEN_OFF): _S.OFF_BY_HAND,
        (_S.OFF_BY_HAND, _E.MISSED): _S.OFF_BY_HAND,
        (_S.OFF_BY_HAND, _E.RESTARTED): _S.OFF_BY_HAND,
    }
)
"""A modem that was on before a restart is turned on again, twice; one that is off stays off."""


class OnlineKeeper:
    """Keeps the modem of one kit online. Times are seconds of a clock that only goes forward."""

    def __init__(self, *, was_on: bool) -> None:
        """`was_on`: the agent was killed, or lost power, while the modem was on."""
        self.state = KeepState.ON if was_on else KeepState.UNSEEN
        self.protects_itself = False
        """Whether the modem said that it is in its own protection against reset loops."""
        self._missed_while_away = was_on
        self._since: float | None = None
        self._turns = 0
        self._boots: deque[float] = deque(maxlen=LOOP_BOOTS)

    @property
    def is_to_be_on(self) -> bool:
        """Whether a restart is no reason for the modem to stay off."""
        return self.state in {KeepState.ON, KeepState.SETTLING, KeepState.TURNED}

    @property
    def is_to_be_turned_on(self) -> bool:
        """Whether a modem that was seen off is turned on soon, or has been since."""
        is_due = self.state is KeepState.SETTLING and self._turns < TURNS
        return is_due or self.state is KeepState.TURNED

    def restarted(self, now: float, *, is_boot: bool = True) -> None:
        """Record a restart; without `is_boot` the kit was away, and may have restarted."""
        if is_boot:
            self._boots.append(now)
        self._go(KeepEvent.RESTARTED, now)

    def seen(self, now: float, *, is_on: bool, policy: KeepOnline, asked_off: bool = False) -> None:
        """Record how the modem is now; `asked_off`: somebody turned it off through the agent."""
        if asked_off and not is_on:
            self._go(KeepEvent.TURNED_OFF, now)
            return
        if self._missed_while_away and not is_on:
            self._go(KeepEvent.RESTARTED, now)
        self._missed_while_away = False
        if is_on:
            if self.state in {KeepState.GIVEN_UP, KeepState.OFF, KeepState.OFF_BY_HAND}:
                self._turns = 0
            self._go(KeepEvent.SEEN_ON, now)
            if self.state is KeepState.TURNED and self._waited(now) >= STEADY_S:
                self._turns = 0
                self._go(KeepEvent.STEADY, now)
        else:
            self._go(KeepEvent.MISSED if policy == "always" else KeepEvent.SEEN_OFF, now)

    def is_turn_due(self, now: float, settle_s: float) -> bool:
        """Return whether to turn the modem on now, which then counts as done."""
        if self.state is not KeepState.SETTLING or self._waited(now) < settle_s:
            return False
        if self._turns >= TURNS:
            self._go(KeepEvent.GIVE_UP, now)
            return False
        self._turns += 1
        self._go(KeepEvent.TURN, now)
        return True

    def findings(self, now: float) -> Iterator[Finding]:
        """Return what a person has to know."""
        if self.state is KeepState.GIVEN_UP:
            yield Finding(
                f"the modem was turned on {TURNS} times and was off again: its application turns "
                "it off, or restarts",
                "look at what it prints: `cellagent console`; `cellagent modem on` tries again",
            )
        if len(self._boots) == LOOP_BOOTS and now - self._boots[0] <= LOOP_S:
            yield Finding(
                f"the kit restarts over and over: {LOOP_BOOTS} times in "
                f"{self._boots[-1] - self._boots[0]:.0f} s",
                "look at what it prints: `cellagent console`",
            )
        if self.protects_itself:
            yield Finding(
                "the modem protects itself from a reset loop (%MDMEV: RESET LOOP): it does not "
                "attach for 30 minutes of running time",
                "leave it on for 30 minutes, and end with AT+CFUN=0 before each reset",
            )

    def _waited(self, now: float) -> float:
        return 0.0 if self._since is None else now - self._since

    def _go(self, event: KeepEvent, now: float) -> None:
        before, self.state = self.state, TRANSITIONS[self.state, event]
        if self.state is not before or event is KeepEvent.RESTARTED:
            self._since = now
