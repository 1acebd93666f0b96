"""A project of an organization, whose calls have paths of their own (clause D8.5)."""

from urllib.parse import quote

from msgspec import Struct

from agent.errors import UsageError


class ProjectSlugs(Struct, frozen=True):
    """The organization and project slugs of the current form of a path."""

    organization: str
    project: str

    @property
    def prefix(self) -> str:
        """What the path of each of its calls begins with. Raises UsageError without slugs."""
        if not self.organization or not self.project:
            raise UsageError(
                "a call for a project needs the slugs of an organization and a project",
                hint="`cellagent config set account.organization SLUG`, "
                "`cellagent config set account.project SLUG`",
            )
        organization, project = quote(self.organization, safe=""), quote(self.project, safe="")
        return f"/v1/organizations/{organization}/projects/{project}"
