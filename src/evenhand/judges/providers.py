"""The providers: one record of traits each. Code that depends on a provider asks its record, and
never its name. A new provider is a record here, and a module if it speaks a protocol of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from evenhand import limits
from evenhand.errors import UsageError
from evenhand.exchange import Judge
from evenhand.words import Sentence

if TYPE_CHECKING:
    from evenhand.judges.trust import Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """One judge of a suite, and where it runs."""

    name: str
    base_url: str | None = None
    """The address that the suite's file, or the user's own call, gives."""
    base_url_place: str = ""
    """The place of the address in the suite's file; empty if the user's call gives it."""
    temperature: float | None = None
    max_tokens: int = limits.MAX_TOKENS
    seed: int | None = None
    attempt_seconds: float = limits.ATTEMPT_SECONDS
    folder: Path = Path()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """It holds keys, which no repr shows."""
    notify: Callable[[str], None] = lambda line: None
    trust: Trust | None = None
    """The user's word about keys and hosts; without it, what they allowed before."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Handed through to the request's body as they are."""
    stream: bool = False
    proxy: str | None = None
    ca_file: Path | None = None
    proxy_place: str = ""
    ca_file_place: str = ""
    """The places of these in the suite's file; empty if the user's call gives them."""


class Provider(Struct, frozen=True, kw_only=True):
    """The traits of one provider."""

    name: str
    judge: str = "remote.RemoteJudge"
    """The class of its judges, in a module that is imported when one is opened."""
    wire: Literal["", "openai", "anthropic", "google"] = ""
    """The wire format it speaks; the module of that name holds it. Empty for no HTTP."""
    url: str = ""
    """Its own address; empty where it has none."""
    url_names: tuple[str, ...] = ()
    """The settings of the environment that may hold another, the first of them first."""
    key_names: tuple[str, ...] = ()
    """The settings of the environment that may hold its key."""
    key_header: str = "Authorization"
    headers: Mapping[str, str] = {}
    path: str = ""
    """Added to an address that does not end in a version."""
    spell_url: Callable[[str], str] = str
    """Returns an address as the environment may hold it, as a URL."""
    is_billed: bool = True
    """True if its answers cost money, so that its own address takes no request without a key."""
    cache_write_multiplier: Decimal = Decimal(1)
    """The price of a token that its cache takes in, as a multiple of the price of the input."""
    batches: Literal["", "openai", "azure", "anthropic", "google", "openrouter"] = ""
    """The batch protocol it speaks; empty for none. A token costs half in a batch there."""
    needs_model: bool = True
    """A name must say which model; else the provider's name alone is one."""
    runs_code: bool = False
    """Its models are code of the suite's, which is run when they are asked."""
    file_ending: str | None = None
    """Models whose names end so are files of the user's; with an empty one all are."""
    model_starts: tuple[str, ...] = ()
    """Beginnings of the names of its models, for whoever forgets to name the provider."""
    first_model: str = ""
    """The model to begin with, for whoever has its key and names none."""
    package: str = ""
    """The module that must be installed, and the extra that brings it."""
    extra: str = ""

    @property
    def is_chat(self) -> bool:
        """Return True if it speaks chat completions, the protocol of OpenAI's batch files."""
        return self.wire == "openai"

    @property
    def is_installed(self) -> bool:
        return not self.package or find_spec(self.package) is not None

    def batch_share(self, address: str) -> Decimal:
        """Return the share of the price that a token costs in a batch at this address. What others
        ask for it who speak the same protocol is not known: all of it."""
        is_own = address == self.url or not self.url
        return Decimal("0.5") if self.batches and is_own else Decimal(1)

    def is_file(self, model: str) -> bool:
        """Return True if a model is named by its file."""
        return self.file_ending is not None and model.endswith(self.file_ending)

    def open(self, options: JudgeOptions, model: str) -> Judge:
        """Return the judge of a model; raises UsageError where this provider has none of the
        kind."""
        if not self.is_installed:
            raise UsageError(
                Sentence(
                    "judges.not_installed",
                    judge=options.name,
                    package=self.package,
                    extra=self.extra,
                )
            )
        for name in () if self.wire else ("params", "stream", "proxy", "ca_file"):
            if getattr(options, name):
                raise UsageError(
                    Sentence("judges.no_http", judge=options.name, option=name),
                    where=f"[[judges]] {options.name}",
                )
        module, _, name = self.judge.rpartition(".")
        judge: Judge = getattr(import_module(f"evenhand.judges.{module}"), name)(
            self, options, model
        )
        return judge


def ollama_url(text: str) -> str:
    """Return what OLLAMA_HOST holds as a URL: it may lack scheme and port, and it may be the
    address that a server listens on, which is none to call."""
    if "://" not in text:
        host, _, port = text.partition(":")
        text = f"http://{host}:{port or 11434}"
    return re.sub(r"//0\.0\.0\.0(?![^:/])", "//127.0.0.1", text)


_RECORDS = (
    Provider(
        name="embedded",
        judge="embedded.judge.EmbeddedJudge",
        is_billed=False,
        needs_model=False,
        file_ending=".gguf",
        package="xllamacpp",
        extra="embedded",
    ),
    Provider(
        name="openai",
        wire="openai",
        url="https://api.openai.com/v1",
        url_names=("OPENAI_BASE_URL",),
        key_names=("OPENAI_API_KEY",),
        batches="openai",
        first_model="gpt-4.1-mini",
        model_starts=("gpt-", "chatgpt-", "o1", "o3", "o4"),
    ),
    Provider(
        name="anthropic",
        wire="anthropic",
        url="https://api.anthropic.com/v1",
        url_names=("ANTHROPIC_BASE_URL",),
        key_names=("ANTHROPIC_API_KEY",),
        batches="anthropic",
        first_model="claude-haiku-4-5",
        model_starts=("claude",),
        key_header="x-api-key",
        headers={"anthropic-version": "2023-06-01"},
        path="/v1",
        cache_write_multiplier=Decimal("1.25"),
    ),
    Provider(
        name="google",
        wire="google",
        url="https://generativelanguage.googleapis.com/v1beta",
        url_names=("GEMINI_BASE_URL", "GOOGLE_BASE_URL", "GOOGLE_GEMINI_BASE_URL"),
        key_names=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        batches="google",
        first_model="gemini-2.5-flash",
        model_starts=("gemini", "gemma"),
        key_header="x-goog-api-key",
        path="/v1beta",
    ),
    Provider(
        name="openrouter",
        wire="openai",
        url="https://openrouter.ai/api/v1",
        url_names=("OPENROUTER_BASE_URL",),
        key_names=("OPENROUTER_API_KEY",),
        batches="openrouter",
        first_model="openai/gpt-4.1-mini",
    ),
    Provider(
        name="ollama",
        wire="openai",
        url="http://127.0.0.1:11434/v1",
        url_names=("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        key_names=("OLLAMA_API_KEY",),
        path="/v1",
        spell_url=ollama_url,
        is_billed=False,
    ),
    Provider(
        name="azure",
        wire="openai",
        url_names=("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_BASE_URL"),
        key_names=("AZURE_OPENAI_API_KEY",),
        batches="azure",
        key_header="api-key",
        path="/openai/v1",
    ),
    Provider(
        name="replay",
        judge="replay.ReplayJudge",
        is_billed=False,
        file_ending="",
    ),
    Provider(
        name="python",
        judge="python.PythonJudge",
        is_billed=False,
        runs_code=True,
    ),
)
PROVIDERS: Final = {provider.name: provider for provider in _RECORDS}
