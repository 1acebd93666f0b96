"""What the values of an answer, or of a command that sets them, say of a modem. Pure."""

from collections.abc import Mapping

from at.causes.facts import ZEROS, Facts
from at.causes.line_content import bands_of
from at.commands.registration import REGISTERED


class ValueNotes:
    """Notes values as facts; `same` has the names of those that several commands tell."""

    def __init__(self, same: Mapping[str, str], facts: Facts) -> None:
        self._same = same
        self._facts = facts
        self._listed: dict[int, set[int]] = {}
        """The types of the credentials of each tag, as they were listed last."""

    def note(self, name: str, values: Mapping[str, object], asked: str) -> None:
        """Note the values of the command or notice `name`; `asked` is the command that waits."""
        if name == "%XBANDLOCK":
            self.note_band_lock(self._facts.line)
        for field, value in values.items():
            key = f"{name}.{field}"
            short = self._same.get(key)
            if name == "%XVBATLOWLVL" and name in asked.upper():
                short = None  # the level itself, and no notice of a supply below it
            if isinstance(value, int | float | str):
                self._facts.note(key, value)
                if short:
                    self._facts.note(short, value)
            elif not short:
                self._facts.pop(key, None)
        self._refusal(name, values)
        if name == "%CMNG":
            self._credential(values, asked)
        elif name == "+CGPADDR":
            self._address(values)
        elif name == "+COPS" and "networks" in values:
            self._networks(values["networks"])

    def begin_list(self) -> None:
        """Forget the credentials that were listed before: a list of them begins."""
        self._listed.clear()

    def _refusal(self, name: str, values: Mapping[str, object]) -> None:
        """Note the cause number of +CEREG or +CEER; 0 is none."""
        cause = values.get("reject_cause" if name == "+CEREG" else "cause")
        if not isinstance(cause, int) or not cause:
            return
        if name == "+CEREG":
            if values.get("cause_type") == 0 and values.get("stat") not in REGISTERED:
                self._facts.note("emm", cause)
        elif name == "+CEER" and values.get("module") in {"EMM", "ESM"}:
            self._facts.note(f"{str(values['module']).lower()}_last", cause)

    def _credential(self, values: Mapping[str, object], asked: str) -> None:
        """Note a client certificate that is listed without its key, as the list goes on."""
        tag, kind = values.get("sec_tag"), values.get("type")
        if asked.count(",") > 1 or not (isinstance(tag, int) and isinstance(kind, int)):
            return  # one type alone was asked for
        self._listed.setdefault(tag, set()).add(kind)
        half = [tag for tag, kinds in self._listed.items() if {1, 2} & kinds == {1}]
        self._facts.pop("cert_without_key", None)
        if half:
            self._facts.note("cert_without_key", half[0])

    def _address(self, values: Mapping[str, object]) -> None:
        given = f"{values.get('ipv4') or ''}{values.get('ipv6') or ''}"
        if ZEROS.issuperset(given):
            self._facts.pop("address", None)
            self._facts.note("no_address", 1)

    def _networks(self, networks: object) -> None:
        found = networks if isinstance(networks, list) else []
        stats = [one.get("stat") for one in found if isinstance(one, dict)]
        self._facts.note("plmns_found", len(stats))
        self._facts.note("plmns_forbidden", int(bool(stats) and set(stats) == {3}))

    def note_band_lock(self, text: str) -> None:
        """Note the bands of a lock, and whether the modem has any of them."""
        bands = bands_of(text)
        if not bands:
            self._facts.note("unlocked", 1)
        for name in ("band_lock", "band_count", "band_lock_supported"):
            self._facts.pop(name, None)
        if bands:
            self._facts.note("band_lock", ", ".join(map(str, sorted(bands))))
            self._facts.note("band_count", len(bands))
            self._judge_bands(bands)

    def _judge_bands(self, bands: set[int]) -> None:
        known = self._facts.get("%XCBAND.bands")
        if known is not None:
            supported = {int(band) for band in str(known.value).split(", ") if band}
            self._facts.note("band_lock_supported", int(bool(bands & supported)))
