"""The steps of a board that ask the service: the time, the registration, the proof."""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import ServiceRefusal, Unauthorized
from agent.provisioning.certificates import key_fingerprint
from agent.provisioning.goal import RegistrationMethod
from agent.provisioning.host_clock import check_host_clock
from agent.provisioning.plan import ProvisioningStep
from agent.provisioning.step_notes import StepNotes, uninterrupted


@dataclass(slots=True)
class ServiceSteps(StepNotes):
    """The steps for which a service is needed; without one there is nothing to do."""

    async def register(self) -> None:
        """Tell the service the board's key; a request that is under way is only waited for."""
        registrar = self.bench.registrar
        if registrar is None:
            return
        await self.same_board("registration")
        key = key_fingerprint(self.record.public_key)
        registered = registration_of(registrar.method, self.record.device_id)
        request_id = await self._request_under_way(f"{registered} {key}")
        if not request_id:
            await self._begin(ProvisioningStep.REGISTER, f"{registered} {key}")
            onboards = registrar.method is RegistrationMethod.ONBOARD
            pem = self.record.certificate if onboards else ""
            if registrar.method is RegistrationMethod.CLAIM:
                await self._learn(attestation=await uninterrupted(self.port.attestation()))
            request_id = await registrar.submit(
                self.record.device_id, pem or self.record.public_key, self.record.attestation
            )
            await self._learn(request_id=request_id)
            await registrar.wait(request_id)
        await self._finish(
            ProvisioningStep.REGISTER, request_id, registered_key=key, registered_as=registered
        )
        self.registered = True

    async def _request_under_way(self, what: str) -> str:
        """Return the id of a request that a run sent and did not see the end of, once it succeeded.

        "" where there is none, or it failed: then it is sent again, with the same key.
        """
        registrar, request_id = self.bench.registrar, self.record.request_id
        if (
            registrar is None
            or not request_id
            or await self._unfinished(ProvisioningStep.REGISTER) != what
        ):
            return ""
        try:
            await registrar.wait(request_id)
        except ServiceRefusal:
            return ""
        return request_id

    async def set_clock(self) -> None:
        """Give the modem the host's time, where that can be trusted."""
        registrar = self.bench.registrar
        ahead_s = await registrar.host_clock_ahead_s(self.bench.now) if registrar else None
        trusted = check_host_clock(ahead_s)
        await self.port.set_clock(self.bench.now())
        await self._finish(ProvisioningStep.CLOCK, trusted)

    async def prove(self) -> None:
        """Have the service accept a token that the board signed."""
        registrar = self.bench.registrar
        if registrar is None:
            return

        async def ask(subject: str, life_s: int) -> str:
            return await uninterrupted(
                self.port.token(subject, life_s, self.bench.goal.security_tag)
            )

        try:
            said = await registrar.prove(self.record.device_id, ask)
        except Unauthorized:
            if self.registered or registrar.method is RegistrationMethod.NONE:
                raise
            # The service has lost what an earlier run told it: the same key again, once.
            await self.register()
            said = await registrar.prove(self.record.device_id, ask)
        await self._finish(ProvisioningStep.PROOF, said)


def registration_of(method: RegistrationMethod, device_id: str) -> str:
    """Return what the ledger keeps of a registration: how, and as which device."""
    return f"{method.value} {device_id}"
