"""The IMEI of a modem, under which is kept what belongs to its kit alone."""

from at.commands.identity import ReadImei
from at.driver.modem import Modem
from at.protocol.check_digit import ends_in_luhn_digit
from at.protocol.errors import ParseError


async def read_imei(modem: Modem) -> str:
    """Return the modem's IMEI. Raises CommandRejected, and ParseError for one that came damaged.

    One whose check digit is wrong is asked for again: a modem may have been given such a number,
    and tells it again, while a line is not damaged twice alike.
    """
    imei = await _asked(modem)
    if not ends_in_luhn_digit(imei) and (again := await _asked(modem)) != imei:
        raise ParseError(f"the IMEI came as {imei}, then as {again}: the line damages what it says")
    return imei


async def _asked(modem: Modem) -> str:
    number = await modem.send(ReadImei())
    if number.imei is None:
        raise ParseError("the modem tells no IMEI")
    return number.imei
