"""Where a start begins, of which a kit prints several banners. Pure."""

HAND_OVERS = ("Attempting to boot slot", "Jumping to the first image slot")
"""What a bootloader prints before it starts what prints the next banner."""
MCUBOOT = "MCUboot"
"""Whose banner is one and says as much: a build without its log has no other line of it."""


class BootStages:
    """The stages of the start that is under way: two bootloaders, perhaps, and the application."""

    def __init__(self) -> None:
        self._handed_over: set[object] = set()
        self._goes_on = False

    def begins(self, hand_over: object = None) -> bool:
        """Return whether a start begins with a banner; or with a bootloader's `hand_over`.

        That of MCUBOOT is its banner. What a bootloader hands over to prints a banner of the same
        start. A bootloader that hands over again began anew.
        """
        begins = hand_over in self._handed_over or not (self._goes_on or hand_over in HAND_OVERS)
        if begins:
            self._handed_over.clear()
        if hand_over:
            self._handed_over.add(hand_over)
        self._goes_on = bool(hand_over)
        return begins
