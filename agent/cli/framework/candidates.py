"""What the Tab key offers for a word: each list is made only when a shell asks for it."""

from collections.abc import Callable, Iterable


def completing(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    """Return what a shell asks for the words that go on from what is typed: those of `names`."""
    return lambda _ctx, _of, typed: [name for name in names() if name.startswith(typed)]


def _profiles() -> list[str]:
    from agent.config.load import profile_names, read_config
    from agent.files.paths import config_file

    return profile_names(read_config(config_file()))


def _keys() -> list[str]:
    from agent.config.parse import all_keys
    from agent.config.secrets import SECRETS

    return [*all_keys(), *SECRETS]


complete_profile = completing(_profiles)
complete_key = completing(_keys)
