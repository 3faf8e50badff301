"""The settings that judges are found and paid by, and where each stands: in the environment of the
user, or in the `.env` of a folder, which whoever made the folder may have written.

`.env` sets keys and addresses of judges and nothing else. It is taken as it stands: a value that
named another variable could carry a key of the user's into an address of somebody else's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from evenhand.errors import UsageError, quoted
from evenhand.folders import read_text
from evenhand.judges.providers import PROVIDERS

FILE = ".env"
_READ = frozenset(
    name
    for provider in PROVIDERS.values()
    for name in (*provider.key_names, *provider.url_names, *provider.service.version_names)
)
_NETWORK = re.compile(r"\w+_proxy|(ssl|requests|curl)_\w*(cert|ca)_?\w*", re.IGNORECASE)
"""Proxies and certificates: who sets them reads what is sent."""
_REFERENCE = re.compile(r"\$\{[^}]*\}")


class Environment(dict[str, str]):
    """What is set, by name; `places` says where, for what does not stand in the environment of the
    user, and `unread` names proxies and certificates of a `.env`, which are left alone."""

    def __init__(
        self,
        values: Mapping[str, str],
        places: Mapping[str, str] | None = None,
        unread: tuple[str, ...] = (),
    ) -> None:
        super().__init__(values)
        self.places, self.unread = dict(places or {}), unread


def place_of(environment: Mapping[str, str], name: str) -> str:
    """The file that sets a name; empty where the environment of the user does."""
    return environment.places.get(name, "") if isinstance(environment, Environment) else ""


def environment(folder: Path | None = None) -> Environment:
    """The environment over `.env` of the folder, that of the work unless given: what is really set
    wins. Raises UsageError for settings of Evenhand in `.env`, which would go unheard."""
    path = (folder or Path.cwd()) / FILE
    settings = _settings(path)
    for name in settings:
        if name.startswith("EVENHAND_"):
            raise UsageError(
                f"{quoted(name)[1:-1]} is not read from here,"
                " where keys and addresses of judges may stand",
                where=str(path),
                advice="Set it in the environment, or its key in evenhand.toml.",
            )
    values = {name: value for name, value in settings.items() if name in _READ}
    for name, value in values.items():
        if reference := _REFERENCE.search(value):
            raise UsageError(
                f"{name} names another variable, {quoted(reference[0])}, which is not filled in",
                where=str(path),
                advice="Write the value itself, or set it in the environment.",
            )
    unread = tuple(name for name in settings if _NETWORK.fullmatch(name))
    return Environment(values | dict(os.environ), dict.fromkeys(values, str(path)), unread)


def _settings(path: Path) -> dict[str, str]:
    """What a `.env` sets and the environment does not; nothing where there is none."""
    # A folder of that name is somebody's virtual environment.
    if not path.exists() or path.is_dir():
        return {}
    from dotenv import dotenv_values

    values = dotenv_values(stream=StringIO(read_text(path, "the file")), interpolate=False)
    return {
        name: value
        for name, value in values.items()
        if value is not None and name not in os.environ
    }
