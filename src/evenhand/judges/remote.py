"""What all judges behind HTTP share: one `answer` is one request.

Where the endpoint refuses a request for its form alone, a narrower dialect is remembered and the
question is to be asked again; nothing is tried again here. A protocol adds its address, its turns,
its settings and how its answers are read.
This is the hot path: the body is dumped once, the answer parsed once.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from yarl import URL

from evenhand import limits
from evenhand.errors import AskAgain, CallError, CallLost, KeyMissing, ProviderRefused
from evenhand.exchange import Finish, Message, Question, Reply, Style, Usage
from evenhand.jsontext import compact
from evenhand.judges.complaint import Complaint, Place, carried, complaint, error_for
from evenhand.judges.dialect import MOST_LOGPROBS, Dialect
from evenhand.judges.http import Answered, Door
from evenhand.judges.logprobs import Token, odds
from evenhand.judges.pause import retry_after
from evenhand.judges.sampling import sampling, storable
from evenhand.judges.secrets import Account, key_from
from evenhand.judges.services import Service, first_set, located

# Bodies differ in their messages; the rest of them is kept for this many schemas.
TAILS_KEPT = 64
# Twenty alternatives a token, each pretty-printed byte by byte, are about 5 kB a token.
SCORED_BODY_BYTES = 4 * limits.BODY_BYTES


class Said(NamedTuple):
    """An answer as its protocol reads it. `tokens` spell the text, where they were asked for."""

    text: str
    finish: Finish
    usage: Usage
    model: str
    tokens: Sequence[Token] = ()


class Tail(NamedTuple):
    """The body after its messages, and what of temperature and seed is in it. Schema and dialect
    are kept with it, so that their ids stay their own."""

    text: str
    sampling: Mapping[str, float]
    schema: Mapping[str, Any] | None
    spoken: Dialect


class RemoteJudge(ABC):
    """A judge at one endpoint, with one model and its parameters."""

    style: Style = "full"
    slots: int | None = None
    caveat: str = ""
    holder: ClassVar[str]
    """The field of an answer that holds the reply."""

    def __init__(
        self,
        *,
        name: str,
        model: str,
        base_url: str | None,
        temperature: float | None,
        max_tokens: int,
        seed: int | None,
        environment: Mapping[str, str],
        attempt_seconds: float,
        service: Service,
        dialect: Dialect,
        probabilities: bool = False,
    ) -> None:
        url = located(service, base_url, environment, model)
        key_name = first_set(environment, service.key_names)
        secret = key_from(environment, key_name, str(url.origin()))
        self.name = name
        self.account: Hashable = Account(service.provider, str(url), secret)
        self._model, self._max_tokens = model, max_tokens
        self._temperature, self._seed = temperature, seed
        self.identity: Mapping[str, Any] = {
            "provider": service.provider,
            "base_url": str(url),
            "model": model,
            "temperature": temperature,
            "max_tokens": max_tokens,
            # A seed that is never sent changes no answer, and must not make one paid for again.
            **({"seed": seed} if dialect.seed else {}),
            **({"probabilities": True} if probabilities else {}),
        }
        self._place = Place(
            key_name=key_name, model=model, base_url=str(url), has_key=secret is not None
        )
        self._keyless = secret is None and service.needs_key and str(url) == service.url
        self._door = Door(
            self._endpoint(url),
            secret=secret,
            environment=environment,
            seconds=attempt_seconds,
            key_header=service.key_header,
            key_prefix=service.key_prefix,
            headers=service.headers,
            most_bytes=SCORED_BODY_BYTES if probabilities else limits.BODY_BYTES,
        )
        self._dialect = replace(dialect, logprobs=MOST_LOGPROBS) if probabilities else dialect
        self._proven = False
        self._tails: dict[tuple[int, int, int, int], Tail] = {}

    @abstractmethod
    def _endpoint(self, base: URL) -> URL:
        """The URL that questions are posted to."""

    @abstractmethod
    def _turns(self, messages: Sequence[Message]) -> str:
        """The body's beginning, from its brace to the end of the conversation."""

    @abstractmethod
    def _settings(
        self, schema: Mapping[str, Any] | None, drawn: Mapping[str, float], spoken: Dialect
    ) -> dict[str, Any]:
        """The other fields of the body."""

    @abstractmethod
    def _said(self, found: Any) -> Said:
        """What a decoded answer says. Raises one of UNREADABLE for one that says nothing."""

    async def answer(self, question: Question) -> Reply:
        """Answer once, or raise AskAgain, CallLost, CallRejected or ProviderRefused."""
        if self._keyless:
            raise self._no_key()
        spoken = self._dialect
        answered = await self._door.post(self._body(question, spoken))
        said = self._read(answered, self._tail(question, spoken))
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

    def _no_key(self) -> KeyMissing:
        return KeyMissing(
            f"{self._place.base_url} takes no request without a key; nothing was sent",
            advice=f"Set {self._place.key_name} in the environment or in .env.",
        )

    def _body(self, question: Question, spoken: Dialect) -> bytes:
        text = self._turns(question.messages) + self._tail(question, spoken).text
        # A lone surrogate has no UTF-8; what replaces it is its JSON escape.
        return text.encode("utf-8", "backslashreplace")

    def _tail(self, question: Question, spoken: Dialect) -> Tail:
        """The body after its messages, kept for questions that share schema and round."""
        place = (id(question.schema), id(spoken), question.round, question.repeat)
        kept = self._tails.get(place)
        if kept is not None:
            return kept
        if len(self._tails) >= TAILS_KEPT:
            self._tails.clear()
        drawn = self._drawn(question, spoken)
        text = "," + compact(self._settings(question.schema, drawn, spoken))[1:]
        self._tails[place] = tail = Tail(text, drawn, question.schema, spoken)
        return tail

    def _drawn(self, question: Question, spoken: Dialect) -> dict[str, float]:
        """What of temperature and seed is sent."""
        temperature, seed = sampling(question, self._temperature, self._seed)
        drawn: dict[str, float] = {}
        if temperature is not None and spoken.temperature:
            drawn["temperature"] = temperature
        if seed is not None and spoken.seed:
            drawn["seed"] = seed
        return drawn

    def _read(self, answered: Answered, tail: Tail) -> Reply | Complaint | CallLost:
        """The reply, what the provider complains about, or what its nonsense amounts to: a value,
        so that no frame that holds the raw body, and maybe a key in it, is in a traceback."""
        scrub = self._door.scrub
        if not 200 <= answered.status < 300:
            return complaint(answered, scrub)
        found = _parsed(answered.body)
        if isinstance(found, CallLost):
            return found
        try:
            said = self._said(found)
        except UNREADABLE:
            error = carried(found, answered.status, scrub)
            return error or _nonsense(f"JSON without {self.holder}")
        text = storable(scrub(said.text))
        finished = said.tokens and said.finish == "stop"
        return Reply(
            text=text,
            finish=said.finish,
            usage=said.usage,
            model=storable(scrub(said.model)),
            odds=odds(text, said.tokens, tail.schema) if finished else {},
            sampling=tail.sampling,
        )

    def _error(
        self, said: Complaint | CallLost, headers: Mapping[str, str]
    ) -> CallError | ProviderRefused:
        if isinstance(said, CallLost):
            return said
        asked = retry_after(said.status, headers)
        pause = said.pause if asked is None else asked
        return error_for(said, self._place, pause=pause, proven=self._proven)


UNREADABLE = (KeyError, IndexError, TypeError, AttributeError)


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


def text_of(value: Any) -> str:
    """A decoded value that should be a string; empty where it is none."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int | None:
    """A decoded value that should be a number of tokens; None where it is none."""
    return value if type(value) is int and value >= 0 else None
