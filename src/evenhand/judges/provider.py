"""What a provider is: one record of its traits. Whoever must know something of a provider asks its
record, and nobody asks for it by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from evenhand.batch import BatchEndpoint
from evenhand.errors import UsageError
from evenhand.exchange import Judge

if TYPE_CHECKING:
    from evenhand.judges.batch.client import BatchClient
    from evenhand.judges.trust import Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """What a suite says about one judge, and where it runs."""

    name: str
    base_url: str | None
    """The address that the suite's file, or the user's own call, gives."""
    temperature: float | None
    max_tokens: int
    seed: int
    attempt_seconds: float
    folder: Path
    environment: Mapping[str, str]
    notify: Callable[[str], None]
    probabilities: bool = False
    base_url_place: str = ""
    """Where in the suite's file the address stands; empty where the user's call gives it."""
    trust: Trust | None = None
    """What the user says about keys and hosts; without it, what they allowed before."""


class Service(Struct, frozen=True, kw_only=True):
    """How a provider is reached over HTTP, and how it is shown the key.

    `path` is added to an address that does not end in a version; `surplus` is what one may end in
    that is added anyway. `version_names` are settings that ask for an older form of the address.
    """

    needs_key: bool = True
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    headers: Mapping[str, str] = {}
    path: str = ""
    surplus: str = ""
    version_names: tuple[str, ...] = ()
    spell: Callable[[str], str] = str
    """An address as the environment may hold it, as a URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """That a provider answers by the batch: how, and for what share of its price."""

    opener: Callable[[BatchClient], BatchEndpoint]
    """Makes the endpoint; imports its module only then."""
    share: Decimal = Decimal("0.5")
    """What a token costs in a batch at the provider's own address, of its price elsewhere."""


class Provider(Struct, frozen=True, kw_only=True):
    """The traits of one provider."""

    name: str
    opener: Callable[[Provider, JudgeOptions, str], Judge]
    """Makes the judge of a model; imports the judge's module only then."""
    url: str = ""
    """Its own address; empty where it has none."""
    url_names: tuple[str, ...] = ()
    """The settings of the environment that may hold another, the first of them first."""
    key_names: tuple[str, ...] = ()
    """The settings of the environment that may hold its key."""
    service: Service = Service()
    is_billed: bool = True
    is_chat: bool = False
    """Whether it speaks chat completions, the protocol of OpenAI's batch files."""
    storing: Decimal = Decimal(1)
    """How many times the price of the input a token costs that its cache takes in."""
    batching: Batching | None = None
    has_probabilities: bool = True
    """Whether it can tell log-probabilities."""
    needs_model: bool = True
    """Whether a name must say which model; else the provider's name alone is one."""
    runs_code: bool = False
    """Whether its models are code of the suite's, which is run when they are asked."""
    file_ending: str | None = None
    """Models whose names end so are files of the user's; with an empty one all are."""
    model_starts: tuple[str, ...] = ()
    """How the names of its models begin, for whoever forgets to name the provider."""
    first_model: str = ""
    """The model to begin with, for whoever has its key and names none."""
    package: str = ""
    """The module that must be installed, and the extra that brings it."""
    extra: str = ""

    @property
    def needs_key(self) -> bool:
        """Whether its own address takes no request without a key."""
        return bool(self.key_names) and self.service.needs_key

    @property
    def is_installed(self) -> bool:
        return not self.package or find_spec(self.package) is not None

    def batch_share(self, address: str) -> Decimal:
        """What share of the price a token costs in a batch at this address. What others ask for it
        who speak the same protocol is not known: all of it."""
        is_own = address == self.url or not self.url
        return self.batching.share if self.batching and is_own else Decimal(1)

    def is_file(self, model: str) -> bool:
        """Whether a model is named by its file."""
        return self.file_ending is not None and model.endswith(self.file_ending)

    def open(self, options: JudgeOptions, model: str) -> Judge:
        """The judge of a model; raises UsageError where this provider has none of the kind."""
        if not self.is_installed:
            raise UsageError(
                f"the judge {options.name} needs {self.package}, which is not installed",
                advice=f'Install it with: pip install "evenhand[{self.extra}]"',
            )
        if options.probabilities and not self.has_probabilities:
            raise UsageError(
                f"{self.name} gives no log-probabilities",
                where=f"[[judges]] {options.name}",
                advice="Remove `probabilities = true` for this judge, or choose another provider.",
            )
        return self.opener(self, options, model)
