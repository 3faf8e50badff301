"""What all judges behind HTTP share: one `answer` is one request.

Where the endpoint refuses a request for its form alone, a narrower dialect is remembered and the
question is to be asked again; nothing is tried again here. A protocol adds its address, its turns,
its settings and how its answers are read.
This is the hot path: the body is dumped once, the answer parsed once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple

from msgspec import MsgspecError, Struct
from msgspec.json import decode
from msgspec.structs import replace
from yarl import URL

from evenhand import limits
from evenhand.batch import BatchAnswer, BatchEndpoint, BatchRequest, ReadAnswer
from evenhand.errors import AskAgain, CallError, CallLost, KeyMissing, ProviderRefused
from evenhand.exchange import Finish, Message, Question, Reply, Schema, Style, Usage
from evenhand.jsontext import canonical, compact, parse
from evenhand.judges.address import address_of, passage_of
from evenhand.judges.complaint import (
    Complaint,
    Recipient,
    Wishes,
    carried,
    error_for,
    read_complaint,
)
from evenhand.judges.dialect import MOST_LOGPROBS, Dialect
from evenhand.judges.http import Answered, HttpClient, loaded
from evenhand.judges.logprobs import Token, odds
from evenhand.judges.pause import not_followed, retry_after, should_retry
from evenhand.judges.provider import JudgeOptions, Provider
from evenhand.judges.sampling import sampling, storable
from evenhand.judges.secrets import Account, key_from
from evenhand.judges.trust import Trust, TrustedHosts

# Bodies differ in their messages; the rest of them is kept for this many schemas.
TAILS_KEPT = 64
# Twenty alternatives a token, each pretty-printed byte by byte, are about 5 kB a token.
SCORED_BODY_BYTES = 4 * limits.BODY_BYTES


class Decoded(Struct, frozen=True):
    """An answer as its protocol reads it. `tokens` spell the text, where they were asked for."""

    text: str
    finish: Finish
    usage: Usage
    model: str
    tokens: Sequence[Token] = ()


class Tail(NamedTuple):
    """The body after its messages, and what of temperature and seed is in it."""

    data: bytes
    sampling: Mapping[str, float]


class RemoteJudge(ABC):
    """A judge at one endpoint, with one model and its parameters."""

    style: Style = "full"
    slots: int | None = None
    caveat: str = ""
    holder: ClassVar[str]
    """The field of an answer that holds the reply."""

    def __init__(
        self, provider: Provider, options: JudgeOptions, model: str, dialect: Dialect
    ) -> None:
        environment, address = options.environment, address_of(provider, options, model)
        url, passage = address.url, passage_of(provider, options, address)
        key_name = passage.key_name
        secret = key_from(environment, key_name, str(url.origin()))
        if secret is not None and not secret.is_placeholder:
            (options.trust or Trust(TrustedHosts())).check(passage)
        self.name = options.name
        self.account: Hashable = Account(provider.name, str(url), secret)
        self._model, self._max_tokens = model, options.max_tokens
        self._temperature, self._seed = options.temperature, options.seed
        self.identity: Mapping[str, Any] = {
            "provider": provider.name,
            "base_url": str(url),
            "model": model,
            "temperature": options.temperature,
            "max_tokens": options.max_tokens,
            # A seed that is never sent changes no answer, and must not make one paid for again.
            **({"seed": options.seed} if dialect.seed else {}),
            **({"probabilities": True} if options.probabilities else {}),
        }
        self._recipient = Recipient(
            key_name=key_name, model=model, base_url=str(url), has_key=secret is not None
        )
        keyless = secret is None and provider.needs_key and str(url) == provider.url
        self.lacks: ProviderRefused | None = self._no_key() if keyless else None
        service, scored = provider.service, options.probabilities
        connect = partial(
            HttpClient,
            secret=secret,
            environment=environment,
            key_header=service.key_header,
            key_prefix=service.key_prefix,
            headers=service.headers,
        )
        self._client = connect(
            self._endpoint(url),
            seconds=options.attempt_seconds,
            most_bytes=SCORED_BODY_BYTES if scored else limits.BODY_BYTES,
        )
        self._provider, self._address = provider, url
        self._batch_http = connect(
            url, seconds=limits.BATCH_SECONDS, most_bytes=limits.BATCH_ANSWER_BYTES
        )
        self._batches: BatchEndpoint | None = None
        self._dialect = replace(dialect, logprobs=MOST_LOGPROBS) if scored else dialect
        self._proven = False
        self._known_model = ""
        # Questions share their schema and their round.
        self._tail = lru_cache(maxsize=TAILS_KEPT)(self._written_tail)

    @abstractmethod
    def _endpoint(self, base: URL) -> URL:
        """The URL that questions are posted to."""

    @abstractmethod
    def _turns(self, messages: Sequence[Message]) -> bytes:
        """The body's beginning, from its brace to the end of the conversation."""

    @abstractmethod
    def _settings(
        self, schema: Mapping[str, Any] | None, sampled: Mapping[str, float], dialect: Dialect
    ) -> dict[str, Any]:
        """The other fields of the body."""

    @abstractmethod
    def _decode(self, body: Any) -> Decoded:
        """What the JSON of an answer says. Raises one of UNREADABLE where it says nothing."""

    def _decode_usual(self, data: bytes) -> Decoded | None:
        """What an answer says that is in the form of nearly all, read in one step; None for any
        other, which is decoded."""
        return None

    async def answer(self, question: Question) -> Reply:
        """Answer once, or raise AskAgain, CallLost, CallRejected or ProviderRefused."""
        if self.lacks:
            raise self.lacks
        dialect = self._dialect
        tail = self._tail(question.schema, dialect, question.round, question.repeat)
        answered = await self._client.post(self._body(question, tail))
        return self._concluded(answered, tail, question.schema, dialect)

    def _concluded(
        self, answered: Answered, tail: Tail, schema: Schema | None, dialect: Dialect
    ) -> Reply:
        """The reply in an answer to a request in this dialect, or what it amounts to raised."""
        outcome = self._read(answered, tail, schema)
        if isinstance(outcome, Reply):
            self._proven = True
            return outcome
        narrower = dialect.narrowed(outcome) if isinstance(outcome, Complaint) else None
        if narrower is None:
            raise self._error(outcome, answered.headers)
        self._dialect = self._dialect.joined(narrower)
        raise AskAgain

    @property
    def batches(self) -> BatchEndpoint | None:
        """The provider's batch endpoint, where it has one."""
        if self._batches is None and self._provider.batching is not None:
            from evenhand.judges.batch.client import BatchClient

            client = BatchClient(self._batch_http, self._address, self._recipient)
            self._batches = self._provider.batching.opener(client)
        return self._batches

    def batch_request(self, ident: str, question: Question) -> BatchRequest:
        """A question as a line of a batch."""
        tail = self._tail(question.schema, self._dialect, question.round, question.repeat)
        return BatchRequest(ident, self._body(question, tail), tail.sampling)

    def batch_reader(self) -> ReadAnswer:
        """What reads the answers of one batch, all of whose requests were of one dialect."""
        dialect = self._dialect

        def read(
            answer: BatchAnswer, schema: Schema | None, sampling: Mapping[str, float]
        ) -> Reply:
            answered = Answered(answer.status, {}, answer.body)
            return self._concluded(answered, Tail(b"", sampling), schema, dialect)

        return read

    def load(self) -> None:  # noqa: B027 - no judge at an endpoint has code of the user's
        """Nothing to bring in."""

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
        await self._batch_http.close()

    def _no_key(self) -> KeyMissing:
        return KeyMissing(
            f"{self._recipient.base_url} takes no request without a key, and"
            f" {self._recipient.key_name} is not set; nothing was sent",
            advice=f"Set {self._recipient.key_name} in the environment or in .env.",
        )

    def _body(self, question: Question, tail: Tail) -> bytes:
        return self._turns(question.messages) + tail.data

    def _written_tail(
        self, schema: Schema | None, dialect: Dialect, number: int, repeat: int
    ) -> Tail:
        """The body after its messages, in a round of that number."""
        sampled = self._sampled(number, repeat, dialect)
        settings = self._settings(schema.value if schema else None, sampled, dialect)
        # A lone surrogate has no UTF-8; what replaces it is its JSON escape.
        return Tail(b"," + compact(settings)[1:].encode("utf-8", "backslashreplace"), sampled)

    def _sampled(self, number: int, repeat: int, dialect: Dialect) -> dict[str, float]:
        """What of temperature and seed is sent."""
        temperature, seed = sampling(number, repeat, self._temperature, self._seed)
        sampled: dict[str, float] = {}
        if temperature is not None and dialect.temperature:
            sampled["temperature"] = temperature
        if seed is not None and dialect.seed:
            sampled["seed"] = seed
        return sampled

    def _read(
        self, answered: Answered, tail: Tail, schema: Schema | None
    ) -> Reply | Complaint | CallLost:
        """The reply, what the provider complains about, or what its nonsense amounts to: a value,
        so that no frame that holds the raw body, and maybe a key in it, is in a traceback."""
        scrub = self._client.scrub
        if not 200 <= answered.status < 300:
            return read_complaint(answered, scrub)
        decoded = self._decode_usual(answered.body) or self._decoded(answered)
        if not isinstance(decoded, Decoded):
            return decoded
        text = storable(scrub(decoded.text))
        finished = decoded.tokens and decoded.finish == "stop"
        return Reply(
            text=text,
            finish=decoded.finish,
            usage=decoded.usage,
            model=self._shown_model(decoded.model),
            odds=odds(text, decoded.tokens, schema.value if schema else None) if finished else {},
            sampling=tail.sampling,
        )

    def _shown_model(self, model: str) -> str:
        """The model as it can be kept; nearly always the one that answered before."""
        if model == self._known_model:
            return model
        shown = storable(self._client.scrub(model))
        if shown == model:
            self._known_model = model
        return shown

    def _decoded(self, answered: Answered) -> Decoded | Complaint | CallLost:
        body = _parsed(answered.body)
        if isinstance(body, CallLost):
            return body
        try:
            return self._decode(body)
        except UNREADABLE:
            error = carried(body, answered.status, self._client.scrub)
            return error or _nonsense(f"JSON without {self.holder}")

    def _error(
        self, outcome: Complaint | CallLost, headers: Mapping[str, str]
    ) -> CallError | ProviderRefused:
        if isinstance(outcome, CallLost):
            return outcome
        pause = retry_after(outcome.status, headers)
        wishes = Wishes(
            pause=outcome.pause if pause is None else pause,
            should_retry=should_retry(headers),
            not_followed=self._client.scrub(not_followed(headers)),
        )
        return error_for(outcome, self._recipient, wishes, proven=self._proven)


FEW_BRACKETS, FEW_VALUES = limits.STORED_DEPTH, limits.BODY_ELEMENTS // 2
UNREADABLE = (KeyError, IndexError, TypeError, AttributeError)


def is_surely_bounded(body: bytes) -> bool:
    """Whether a body cannot nest too deep nor hold too many values, wherever its marks stand."""
    if _up_to_many(body, b"{") + _up_to_many(body, b"[") > FEW_BRACKETS:
        return False
    return len(body) <= FEW_VALUES or body.count(b",") <= FEW_VALUES


def _up_to_many(body: bytes, bracket: bytes) -> int:
    """How often a bracket stands in a body, up to one more than a few: in a third of the time that
    `count` takes, which looks at each byte, where `replace` looks at many at once."""
    return len(body) - len(body.replace(bracket, b"", FEW_BRACKETS + 1))


def _parsed(body: bytes) -> Any:
    """The decoded body, or the CallLost that it amounts to."""
    if not body:
        return _nonsense("an empty body")
    if is_surely_bounded(body):
        # As nearly every answer: read fast, unless it is odd in some way.
        with suppress(MsgspecError, UnicodeDecodeError):
            return decode(body)
    try:
        return loaded(body.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError:
        return _nonsense("a body that is no UTF-8")
    except ValueError:
        return _nonsense("a body that is no JSON")


def _nonsense(what: str) -> CallLost:
    return CallLost("transport", f"the provider answered 200 with {what}", billed=True)


def one_reply(choices: Sequence[Decoded]) -> Decoded:
    """The reply that an answer of several choices amounts to; one was asked for. Equal ones are
    one; different ones stand one after the other, so that two verdicts are seen as two."""
    first = choices[0]
    if len(choices) == 1:
        return first
    texts = {_meaning(choice.text): choice.text for choice in reversed(choices)}
    finish = next((choice.finish for choice in choices if choice.finish != "stop"), first.finish)
    if len(texts) == 1 and finish == first.finish:
        return first
    return replace(first, text="\n\n".join(reversed(texts.values())), finish=finish, tokens=())


def _meaning(text: str) -> str:
    """A text as far as it matters: of JSON what it says, of anything else what it is."""
    try:
        return canonical(parse(text))
    except ValueError:
        return text.strip()


def text_of(value: Any) -> str:
    """A decoded value that should be a string; empty where it is none."""
    return value if isinstance(value, str) else ""
