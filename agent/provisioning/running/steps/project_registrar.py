"""Registers boards in an organization's project, with an organization auth token."""

from dataclasses import dataclass

from agent.call import Call, Scheme
from agent.cloud import DeviceCloud
from agent.cloud.device_reads import FetchDevice
from agent.cloud.project_devices import FetchOnboardingResult, OnboardInProject, ProvenBy
from agent.config.project import ProjectSlugs
from agent.errors import ConfigError, CredentialError, UsageError
from agent.provisioning.planning.goal import CertificateSource, Goal, RegistrationMethod
from agent.provisioning.running.steps.registrar import ReadServiceTime, Registrar

_SHOWN_BY = {
    RegistrationMethod.ONBOARD: ProvenBy.CERTIFICATE,
    RegistrationMethod.ATTESTATION: ProvenBy.ATTESTATION,
}


def require_fitting(goal: Goal) -> None:
    """Raise UsageError for a goal whose boards cannot come into a project."""
    if goal.registration not in {*_SHOWN_BY, RegistrationMethod.NONE}:
        raise UsageError(
            f"a project takes no board by {goal.registration.value}",
            hint="`--registration onboard`, or `--registration attestation`; an nRF93M1 brings its "
            "token with either",
        )
    if goal.registration is RegistrationMethod.ONBOARD and (
        goal.certificate is CertificateSource.NONE
    ):
        raise UsageError(
            "a project takes a board by its certificate, and the goal has none",
            hint="`cellagent config set provisioning.device_ca_file FILE` names the CA that signs "
            "it; or `--registration attestation`",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRegistrar(Registrar):
    """Brings boards into `project`. A registration token names `team_id`."""

    project: ProjectSlugs
    team_id: str

    def calls(self, *, set_clock: bool) -> list[Call[object]]:
        """Return what is sent, for a check of the configuration. Raises UsageError."""
        calls: list[Call[object]] = [FetchOnboardingResult(self.project.prefix)]
        calls.append(OnboardInProject(self.project, ProvenBy.CERTIFICATE, ()))
        return calls + ([ReadServiceTime()] if set_clock else [])

    async def submit(self, device_id: str, pem: str, attestation: str) -> str:
        """Send the registration; return where its result will be."""
        proven_by = _SHOWN_BY[self.method]
        proof = pem if proven_by is ProvenBy.CERTIFICATE else attestation
        cloud = DeviceCloud(self.client)
        return await cloud.onboard_in_project(self.project, proven_by, [(device_id, proof)])

    async def wait(self, request_id: str) -> None:
        """Wait for the result. Raises ServiceRefusal where it failed, DeadlineExceeded."""
        await DeviceCloud(self.client).wait_for_onboarding(request_id)

    async def team(self) -> str:
        """Return the id of the team, which the profile names: the token may not ask for it."""
        if not self.team_id and Scheme.API_KEY not in self.client.keyring:
            raise ConfigError(
                "an nRF93M1 signs its token for a team, and account.team_id names none",
                hint="`cellagent config set account.team_id ID`",
            )
        return self.team_id or await Registrar.team(self)

    @property
    def proof_finds_device(self) -> bool:
        """Whether a device's own token must find it: in a project nothing does."""
        return False

    @property
    def can_look_up(self) -> bool:
        """Whether a credential is there that finds a device: with none the result alone counts."""
        try:
            self.client.require(FetchDevice("any"))
        except CredentialError:
            return False
        return True

    async def onboard_by_token(self, device_id: str, token: str) -> None:
        """Bring an nRF93M1 into the project. Raises ServiceRefusal."""
        cloud, row = DeviceCloud(self.client), (device_id, token)
        place = await cloud.onboard_in_project(self.project, ProvenBy.REGISTRATION, [row])
        await self.wait(place)
