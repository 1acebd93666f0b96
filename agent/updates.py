"""A kit's update runner put together from its configuration: for one command, or for months."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.auth.modem_key import ask_modem
from agent.call import Scheme
from agent.cloud.fota_jobs import FetchCurrentJob
from agent.connect import connect
from agent.errors import CredentialMissing, RefusedByRule
from agent.fota import assemble
from agent.fota.kit import device_id_of, gate_of
from agent.fota.source import DeviceJobs

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from agent.config import Configuration
    from agent.fota.runner import Observer, Runner
    from at.modem import Modem


async def update_runner(
    stack: AsyncExitStack,
    configuration: Configuration,
    modem: Modem | None,
    observer: Observer | None = None,
) -> Runner:
    """Return a runner whose parts are closed when `stack` unwinds.

    Raises ConfigError, JobInOtherHands, RefusedByRule where the firmware gate refuses the kit and
    no API key is there to report that with, and AtError.
    """
    profile = configuration.profile
    device_id = profile.kit.device_id or await device_id_of(modem)
    gate = "" if modem is None else await gate_of(modem)
    tag = profile.provisioning.security_tag
    ask = None if modem is None else ask_modem(modem, tag)
    client = await stack.enter_async_context(connect(configuration, ask_modem=ask))
    scheme = None
    if gate:
        # Clause D1.4: of such a modem only the refusal is reported, and not in its own name.
        scheme = Scheme.API_KEY
        try:
            client.keyring.choose(FetchCurrentJob(device_id), scheme)
        except CredentialMissing:
            raise RefusedByRule(gate, hint="update the modem's firmware by cable first") from None
    folder = assemble.journal_folder(configuration.state_dir, device_id)
    stack.enter_context(assemble.sole_worker(folder))
    runner = assemble.make_runner(
        profile,
        DeviceJobs(client, device_id, scheme),
        folder,
        modem=modem,
        gate=gate,
        observer=observer,
    )
    stack.push_async_callback(runner.downloader.close)
    return runner
