"""The steps of an nRF93M1 that call the service: it brings a token, and no key is made for it."""

from agent.errors import NotFound
from agent.provisioning.boards.board import uninterrupted
from agent.provisioning.ca.certificates import key_fingerprint
from agent.provisioning.planning.goal import RegistrationMethod
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.board_history import registration_name
from agent.provisioning.running.run_state import RunState
from agent.provisioning.running.steps.service import ServiceSteps


class ModuleSteps(ServiceSteps, frozen=True, kw_only=True):
    """The steps of ServiceSteps for a module with the key `public_key`, PEM."""

    public_key: str

    async def register(self) -> None:
        """Onboard the module by a token of its own, made anew after a run that was cut off."""
        await self.port.require_same("registration")
        if self.ledger.record.public_key != self.public_key:
            self.ledger.finish_key("the module's own key", self.public_key, "")
        method, device_id = self.goal.registered_by, self.ledger.record.device_id
        name, key = registration_name(self.goal, device_id), key_fingerprint(self.public_key)
        await self.ledger.begin_registration(f"{name} {key}", method)
        team_id = await self.registrar.team()
        token = await uninterrupted(self.port.registration_token(device_id, team_id))
        await self.registrar.onboard_by_token(device_id, token)
        self.ledger.finish_registration("", method, registered_key=key, registered_as=name)

    async def prove(self) -> None:
        """Prove that the device is in the team: the service checked the token of its key.

        Raises NotFound.
        """
        registrar, device_id = self.registrar, self.ledger.record.device_id
        if not registrar.can_look_up:
            words = "the service took its token; no path is known that tells more"
            self.ledger.finish(ProvisioningStep.PROOF, words)
            return
        try:
            await registrar.require_in_team(device_id)
        except NotFound as error:
            registered = self.ledger.state is RunState.REGISTERED
            if registered or self.goal.registration is RegistrationMethod.NONE:
                error.hint = "`--registration onboard` has the module's own token onboard it"
                raise
            # Deleted since an earlier run: onboarded again, once.
            await self.register()
            await registrar.require_in_team(device_id)
        self.ledger.finish(ProvisioningStep.PROOF, "the service has the device in the team")
