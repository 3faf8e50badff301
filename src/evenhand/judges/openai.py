"""Judges behind the OpenAI chat completions protocol: OpenAI, vLLM, Ollama, llama.cpp, gateways.

One `answer` is one request. Where the endpoint refuses it for its form alone, a narrower dialect is
remembered and the question is to be asked again; nothing is tried again here.
This is the hot path: the body is dumped once, the answer parsed once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from yarl import URL

from evenhand.errors import AskAgain, CallError, CallLost, ProviderRefused, UsageError
from evenhand.exchange import Finish, Message, Question, Reply, Style, Usage
from evenhand.jsontext import compact
from evenhand.judges.complaint import (
    Complaint,
    Place,
    carried_status,
    complaint,
    error_for,
    is_list,
    is_object,
)
from evenhand.judges.dialect import Dialect, dialect_for, response_format
from evenhand.judges.http import Answered, Door, base_url
from evenhand.judges.pause import retry_after
from evenhand.judges.sampling import sampling, storable
from evenhand.judges.secrets import key_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service that speaks the protocol: where it is, and what its settings are called."""

    provider: str
    url: str
    key_name: str
    url_name: str
    needs_key: bool = True


OPENAI: Final = Service(
    provider="openai",
    url="https://api.openai.com/v1",
    key_name="OPENAI_API_KEY",
    url_name="OPENAI_BASE_URL",
)
OPENROUTER: Final = Service(
    provider="openrouter",
    url="https://openrouter.ai/api/v1",
    key_name="OPENROUTER_API_KEY",
    url_name="OPENROUTER_BASE_URL",
)
OLLAMA: Final = Service(
    provider="ollama",
    url="http://127.0.0.1:11434/v1",
    key_name="OLLAMA_API_KEY",
    url_name="OLLAMA_BASE_URL",
    needs_key=False,
)

# Bodies differ in their messages; the rest of them is kept for this many schemas.
TAILS_KEPT = 64

_OWN_FIELDS = frozenset(
    (
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "model",
        "n",
        "response_format",
        "seed",
        "stream",
        "temperature",
    )
)
_FINISH: dict[str, Finish] = {"length": "length", "content_filter": "filtered"}


class OpenAIJudge:
    """A judge at one endpoint, with one model and its parameters."""

    style: Style = "full"
    slots: int | None = None
    caveat: str = ""

    def __init__(
        self,
        *,
        name: str,
        model: str,
        base_url: str | None,
        temperature: float | None,
        max_tokens: int,
        seed: int | None,
        extra: Mapping[str, Any],
        environment: Mapping[str, str],
        attempt_seconds: float,
        service: Service = OPENAI,
    ) -> None:
        url = _chosen_url(base_url, environment, service)
        secret = key_from(environment, service.key_name, str(url.origin()))
        self.name = name
        self._model, self._extra = model, _checked(extra)
        self._temperature, self._max_tokens, self._seed = temperature, max_tokens, seed
        self.identity: Mapping[str, Any] = {
            "provider": service.provider,
            "base_url": str(url),
            "model": model,
            "temperature": temperature,
            "max_tokens": max_tokens,
            "seed": seed,
            "extra": self._extra,
        }
        self._place = Place(
            key_name=service.key_name,
            model=model,
            base_url=str(url),
            has_key=secret is not None,
        )
        self._keyless = secret is None and service.needs_key and str(url) == service.url
        self._door = Door(
            url / "chat" / "completions",
            secret=secret,
            environment=environment,
            seconds=attempt_seconds,
        )
        self._dialect = dialect_for(model)
        self._proven = False
        self._tails: dict[tuple[int, Dialect, int, int], tuple[Any, str]] = {}

    async def answer(self, question: Question) -> Reply:
        """Answer once, or raise AskAgain, CallLost, CallRejected or ProviderRefused."""
        if self._keyless:
            raise self._no_key()
        spoken = self._dialect
        answered = await self._door.post(self._body(question, spoken))
        said = self._read(answered)
        if isinstance(said, Reply):
            self._proven = True
            return said
        narrower = spoken.narrowed(said) if isinstance(said, Complaint) else None
        if narrower is None:
            raise self._error(said, answered.headers)
        self._dialect = self._dialect.joined(narrower)
        raise AskAgain

    async def close(self) -> None:
        """Close the connections."""
        await self._door.close()

    def _no_key(self) -> ProviderRefused:
        return ProviderRefused(
            f"{self._place.base_url} takes no request without a key; nothing was sent",
            advice=f"Set {self._place.key_name} in the environment or in .env.",
        )

    def _body(self, question: Question, spoken: Dialect) -> bytes:
        turns = ",".join(map(_turn, question.messages))
        text = f'{{"messages":[{turns}]{self._tail(question, spoken)}'
        # A lone surrogate has no UTF-8; what replaces it is its JSON escape.
        return text.encode("utf-8", "backslashreplace")

    def _tail(self, question: Question, spoken: Dialect) -> str:
        """The body after its messages, kept for questions that share schema and round."""
        place = (id(question.schema), spoken, question.round, question.repeat)
        kept = self._tails.get(place)
        if kept is not None:
            return kept[1]
        if len(self._tails) >= TAILS_KEPT:
            self._tails.clear()
        tail = "," + compact(self._settings(question, spoken))[1:]
        # The schema is kept with it, so that its id stays its own.
        self._tails[place] = (question.schema, tail)
        return tail

    def _settings(self, question: Question, spoken: Dialect) -> dict[str, Any]:
        settings = {"model": self._model, spoken.tokens: self._max_tokens, **self._extra}
        temperature, seed = sampling(question, self._temperature, self._seed)
        if temperature is not None and spoken.temperature:
            settings["temperature"] = temperature
        if seed is not None and spoken.seed:
            settings["seed"] = seed
        asked = response_format(spoken.mode, question.schema)
        if asked is not None:
            settings["response_format"] = asked
        return settings

    def _read(self, answered: Answered) -> Reply | Complaint | CallLost:
        """The reply, what the provider complains about, or what its nonsense amounts to: a value,
        so that no frame that holds the raw body, and maybe a key in it, is in a traceback."""
        if not 200 <= answered.status < 300:
            return complaint(answered, self._door.scrub)
        found = _parsed(answered.body)
        if isinstance(found, CallLost):
            return found
        try:
            return self._reply(found)
        except (KeyError, IndexError, TypeError, AttributeError):
            pass
        if is_object(found) and found.get("error"):
            return complaint(answered, self._door.scrub, carried_status(found["error"]))
        return _nonsense("JSON without choices")

    def _error(
        self, said: Complaint | CallLost, headers: Mapping[str, str]
    ) -> CallError | ProviderRefused:
        if isinstance(said, CallLost):
            return said
        pause = retry_after(said.status, headers)
        return error_for(said, self._place, pause=pause, proven=self._proven)

    def _reply(self, found: Any) -> Reply:
        choice = found["choices"][0]
        message = choice["message"]
        finish = choice.get("finish_reason")
        if finish == "error":
            raise KeyError
        refusal = message.get("refusal")
        text = refusal or _text(message.get("content"))
        return Reply(
            text=storable(self._door.scrub(text)),
            finish="refused" if refusal else _FINISH.get(finish, "stop"),
            usage=_usage(found.get("usage")),
            model=storable(self._door.scrub(_text(found.get("model")))),
        )


def _turn(message: Message) -> str:
    return _system(message.content) if message.role == "system" else _written(message)


@lru_cache(maxsize=16)
def _system(content: str) -> str:
    """The system message is the longest and the same for all: it is written once."""
    return _written(Message("system", content))


def _written(message: Message) -> str:
    return compact({"role": message.role, "content": message.content})


def _chosen_url(given: str | None, environment: Mapping[str, str], service: Service) -> URL:
    if given is not None:
        return base_url(given, where="base_url")
    named = environment.get(service.url_name, "").strip()
    return base_url(named or service.url, where=service.url_name)


def _checked(extra: Mapping[str, Any]) -> dict[str, Any]:
    own = sorted(_OWN_FIELDS & extra.keys())
    if own:
        raise UsageError(
            f"extra may not hold {', '.join(own)}",
            where="[[judges]]",
            advice="temperature, max_tokens and seed stand beside model; the rest is Evenhand's.",
        )
    return dict(extra)


def _parsed(body: bytes) -> Any:
    """The decoded body, or the CallLost that it amounts to."""
    if not body:
        return _nonsense("an empty body")
    try:
        return json.loads(body.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError:
        return _nonsense("a body that is no UTF-8")
    except (ValueError, RecursionError):
        return _nonsense("a body that is no JSON")


def _nonsense(what: str) -> CallLost:
    return CallLost("transport", f"the provider answered 200 with {what}", billed=True)


def _text(content: Any) -> str:
    """The text of a message: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts = content if is_list(content) else []
    texts = (p.get("text") for p in parts if is_object(p) and p.get("type") == "text")
    return "".join(t for t in texts if isinstance(t, str))


def _usage(found: Any) -> Usage:
    if not is_object(found):
        return Usage()
    details = found.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if is_object(details) else None
    return Usage(
        input_tokens=_count(found.get("prompt_tokens")),
        output_tokens=_count(found.get("completion_tokens")),
        cached_tokens=_count(cached) or 0,
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
