"""The UUID of a modem: the device's id, where no configuration names another."""

from at.commands.identity import ReadDeviceUuid
from at.commands.jwt import MakeJwt
from at.driver.modem import Modem
from at.protocol.errors import ParseError


async def read_device_uuid(modem: Modem) -> str:
    """Return the modem's UUID. Raises CommandRejected or ParseError where it does not tell it.

    It is asked in three ways, since none is understood by every firmware: an nRF9160 states its
    UUID only in what its identity key signs.
    """
    if (named := await modem.try_send(ReadDeviceUuid())) is not None:
        return named.uuid
    # Only here: most kits answer the first, and need not pay for all that Serial Modem can.
    from at.commands.serial_modem.application import ReadSerialModemUuid

    if (told := await modem.try_send(ReadSerialModemUuid())) is not None:
        return told.uuid
    uuid = (await modem.send(MakeJwt())).device_uuid
    if uuid is None:
        raise ParseError("the modem tells no device UUID")
    return uuid
