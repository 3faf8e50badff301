"""The common part of all judges over HTTP: one `answer` is one request.

Where the endpoint refuses a request for its form alone, a narrower dialect, or that it answers by
stream only, is remembered, and the question is to be asked again; nothing is tried again here. A
protocol adds its address, its request, and how its responses are read, in one piece or by events.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from typing import Any, ClassVar

from msgspec.structs import replace
from yarl import URL

from evenhand import limits
from evenhand.batch import BatchAnswer, BatchEndpoint, BatchRequest, ReadAnswer
from evenhand.errors import (
    AskAgain,
    CallError,
    CallLost,
    KeyMissing,
    ProviderRefused,
    UsageError,
    quoted,
)
from evenhand.exchange import Message, Question, Reply, Schema, Style
from evenhand.jsontext import encoded
from evenhand.judges.dialect import MOST_LOGPROBS, Dialect
from evenhand.judges.error_response import (
    ErrorResponse,
    Recipient,
    error_for,
    error_in_success,
    read_error_response,
    retry_hints,
)
from evenhand.judges.logprobs import odds
from evenhand.judges.providers import JudgeOptions, Provider
from evenhand.judges.reply import (
    UNREADABLE,
    Decoded,
    StreamJoiner,
    is_stream,
    join_stream,
    nonsense,
    parse_body,
)
from evenhand.judges.sampling import sampling, storable
from evenhand.judges.secrets import Account, key_from
from evenhand.judges.transport import HttpResponse, Transport, parse_proxy
from evenhand.judges.trust import Trust, TrustedHosts, address_of, key_use_of

LARGE_BODY_BYTES = 4 * limits.BODY_BYTES
"""Twenty alternatives a token, each pretty-printed byte by byte, are about 5 kB a token; an event
of a stream is about 300 bytes a token."""
_INSTEAD = {
    "model": "Name it in `model` of [[judges]].",
    "temperature": "Set temperature beside model.",
    "seed": "Set seed at the top of the suite.",
    "stream": "Set stream = true beside model.",
    "logprobs": "Set probabilities = true beside model.",
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens", "maxOutputTokens"), "Set max_tokens beside model."
    ),
}


class RemoteJudge(ABC):
    """A judge at one endpoint, with one model and its parameters."""

    style: Style = "full"
    slots: int | None = None
    caveat: str = ""
    holder: ClassVar[str]
    """The field of a response that holds the reply."""
    reserved: ClassVar[tuple[str, ...]]
    """Fields of a request that Evenhand sets, and the user's params may not."""

    def __init__(
        self, provider: Provider, options: JudgeOptions, model: str, dialect: Dialect
    ) -> None:
        environment, address = options.environment, address_of(provider, options, model)
        url, use = address.url, key_use_of(provider, options, address)
        secret = key_from(environment, use.key_name, str(url.origin()))
        if secret is not None and not secret.is_placeholder:
            trust = options.trust or Trust(TrustedHosts())
            trust.check(use)
            trust.check_route(use, options)
        if options.proxy_place:
            _require_no_password(options)
        _check_params(options, self.reserved)
        self.name = options.name
        self.account: Hashable = Account(provider.name, str(url), secret)
        self._model, self._max_tokens = model, options.max_tokens
        self._temperature, self._seed = options.temperature, options.seed
        self._params = dict(options.params)
        self.identity: Mapping[str, Any] = {
            "provider": provider.name,
            "base_url": str(url),
            "model": model,
            "temperature": options.temperature,
            "max_tokens": options.max_tokens,
            # A seed that is never sent changes no answer, and must not make one paid for again.
            **({"seed": options.seed} if dialect.seed else {}),
            **({"probabilities": True} if options.probabilities else {}),
            **({"params": self._params} if self._params else {}),
        }
        self._recipient = Recipient(
            key_name=use.key_name, model=model, base_url=str(url), has_key=secret is not None
        )
        keyless = secret is None and provider.needs_key and str(url) == provider.url
        self.unavailable_reason: ProviderRefused | None = self._no_key() if keyless else None
        service, scored = provider.service, options.probabilities
        connect = partial(
            Transport,
            url,
            secret=secret,
            environment=environment,
            key_header=service.key_header,
            key_prefix=service.key_prefix,
            headers=service.headers,
            proxy=options.proxy,
            ca_file=options.ca_file,
        )
        self._transport = connect(seconds=options.attempt_seconds)
        self._provider, self._address = provider, url
        self._batch_transport = connect(
            seconds=limits.BATCH_SECONDS, most_bytes=limits.BATCH_ANSWER_BYTES
        )
        self._batches: BatchEndpoint | None = None
        self._dialect = replace(dialect, logprobs=MOST_LOGPROBS) if scored else dialect
        self._is_scored = scored
        self._streams = options.stream
        self._proven = False

    @abstractmethod
    def _endpoint(self, base: URL, *, stream: bool) -> URL:
        """Return the URL that questions are posted to."""

    @abstractmethod
    def _request(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        sampled: Mapping[str, float],
        dialect: Dialect,
    ) -> dict[str, Any]:
        """Return the body of a request."""

    @abstractmethod
    def _stream_settings(self, dialect: Dialect) -> dict[str, Any]:
        """Return the fields that ask for a stream."""

    @abstractmethod
    def _joiner(self) -> StreamJoiner:
        """Return what joins the events of a stream to one body."""

    @abstractmethod
    def _decode(self, body: Any) -> Decoded:
        """Return what the JSON of a response says. Raises one of UNREADABLE where it says
        nothing."""

    async def answer(self, question: Question) -> Reply:
        """Answer once, or raise AskAgain, CallLost, CallRejected or ProviderRefused."""
        if self.unavailable_reason:
            raise self.unavailable_reason
        dialect, streams = self._dialect, self._streams
        sampled = self._sampled(question, dialect)
        more = self._stream_settings(dialect) if streams else {}
        url = self._endpoint(self._address, stream=streams)
        body = self._body(question, sampled, dialect, more)
        most_bytes = LARGE_BODY_BYTES if streams or self._is_scored else limits.BODY_BYTES
        response = await self._transport.send("POST", url, body, most_bytes=most_bytes)
        if is_stream(response):
            response = await join_stream(response, self._joiner())
        return self._conclude(response, sampled, question.schema, dialect, can_stream=not streams)

    def _conclude(
        self,
        response: HttpResponse,
        sampled: Mapping[str, float],
        schema: Schema | None,
        dialect: Dialect,
        *,
        can_stream: bool,
    ) -> Reply:
        """Return the reply in a response to a request in this dialect, or raise what it amounts
        to."""
        outcome = self._read(response, sampled, schema)
        if isinstance(outcome, Reply):
            self._proven = True
            return outcome
        if isinstance(outcome, CallLost):
            raise outcome
        if can_stream and outcome.wants_stream:
            self._streams = True
            raise AskAgain
        narrower = dialect.narrow(outcome)
        if narrower is None:
            raise self._error(outcome, response.headers)
        self._dialect = self._dialect.join(narrower)
        raise AskAgain

    @property
    def batches(self) -> BatchEndpoint | None:
        """The provider's batch endpoint, where it has one."""
        if self._batches is None and self._provider.batching is not None:
            from evenhand.judges.batch.client import BatchClient

            client = BatchClient(self._batch_transport, self._address, self._recipient)
            self._batches = self._provider.batching.opener(client)
        return self._batches

    def batch_request(self, ident: str, question: Question) -> BatchRequest:
        """Return a question as a line of a batch."""
        sampled = self._sampled(question, self._dialect)
        return BatchRequest(ident, self._body(question, sampled, self._dialect, {}), sampled)

    def batch_reader(self) -> ReadAnswer:
        """Return what reads the answers of one batch, all of whose requests were of one dialect."""
        dialect = self._dialect

        def read(
            answer: BatchAnswer, schema: Schema | None, sampling: Mapping[str, float]
        ) -> Reply:
            response = HttpResponse(answer.status, {}, answer.body)
            return self._conclude(response, sampling, schema, dialect, can_stream=False)

        return read

    def load(self) -> None:  # noqa: B027 - no judge at an endpoint has code of the user's
        """Nothing to bring in."""

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()
        await self._batch_transport.close()

    def _no_key(self) -> KeyMissing:
        return KeyMissing(
            f"{self._recipient.base_url} takes no request without a key, and"
            f" {self._recipient.key_name} is not set; nothing was sent",
            advice=f"Set {self._recipient.key_name} in the environment or in .env.",
        )

    def _body(
        self,
        question: Question,
        sampled: Mapping[str, float],
        dialect: Dialect,
        more: dict[str, Any],
    ) -> bytes:
        schema = question.schema.value if question.schema else None
        request = self._request(question.messages, schema, sampled, dialect)
        return encoded(_merge(request, self._params) | more)

    def _sampled(self, question: Question, dialect: Dialect) -> dict[str, float]:
        """Return what of temperature and seed is sent."""
        place = (question.round, question.repeat)
        temperature, seed = sampling(*place, self._temperature, self._seed)
        sampled: dict[str, float] = {}
        if temperature is not None and dialect.temperature:
            sampled["temperature"] = temperature
        if seed is not None and dialect.seed:
            sampled["seed"] = seed
        return sampled

    def _read(
        self, response: HttpResponse, sampled: Mapping[str, float], schema: Schema | None
    ) -> Reply | ErrorResponse | CallLost:
        """Return the reply, the error, or what nonsense amounts to: a value, so that no frame that
        holds the raw body, and maybe a key in it, is in a traceback."""
        scrub = self._transport.scrub
        if not 200 <= response.status < 300:
            return read_error_response(response, scrub)
        decoded = self._decoded(response)
        if not isinstance(decoded, Decoded):
            return decoded
        text = storable(scrub(decoded.text))
        finished = decoded.tokens and decoded.finish == "stop"
        return Reply(
            text=text,
            finish=decoded.finish,
            usage=decoded.usage,
            model=storable(scrub(decoded.model)),
            odds=odds(text, decoded.tokens, schema.value if schema else None) if finished else {},
            sampling=sampled,
            reasoning=storable(scrub(decoded.reasoning)),
        )

    def _decoded(self, response: HttpResponse) -> Decoded | ErrorResponse | CallLost:
        body = parse_body(response.body)
        if isinstance(body, CallLost):
            return body
        try:
            return self._decode(body)
        except UNREADABLE:
            error = error_in_success(body, response.status, self._transport.scrub)
            return error or nonsense(f"JSON without {self.holder}")

    def _error(
        self, error: ErrorResponse, headers: Mapping[str, str]
    ) -> CallError | ProviderRefused:
        hints = retry_hints(error, headers, self._transport.scrub)
        return error_for(error, self._recipient, hints, proven=self._proven)


def _merge(request: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with the user's params in it; tables are merged, lists are not."""
    merged = dict(request)
    for name, value in params.items():
        inner: Any = merged.get(name)
        is_table = isinstance(inner, Mapping) and isinstance(value, Mapping)
        merged[name] = _merge(inner, value) if is_table else value
    return merged


def _require_no_password(options: JudgeOptions) -> None:
    if parse_proxy(options.proxy or "", options.proxy_place).user is not None:
        raise UsageError(
            "a proxy's user name and password may not stand in the suite",
            where=options.proxy_place,
            advice="Set https_proxy (or http_proxy) in the environment, and take proxy away.",
        )


def _check_params(options: JudgeOptions, reserved: Sequence[str]) -> None:
    """Raise UsageError for params that would change what Evenhand itself asks for, or are no
    JSON."""
    where = f"[judges.params] of {options.name}"
    for path, value in _leaves(options.params):
        for name in reserved:
            if path == name or path.startswith(f"{name}.") or name.startswith(f"{path}."):
                last = name.rpartition(".")[2]
                raise UsageError(
                    f"{quoted(path)} may not be set here: Evenhand sends {name} itself",
                    where=where,
                    advice=_INSTEAD.get(
                        last, "Remove it; the protocol's contract needs it as it is."
                    ),
                )
        if not _is_json(value):
            raise UsageError(
                f"{quoted(path)} is no JSON value: {quoted(value)}",
                where=where,
                advice="Write a text, a number, true, false, a list or a table.",
            )


def _leaves(params: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value that is no table, with its path."""
    for name, value in params.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _is_json(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _is_json(inner) for name, inner in value.items())
    return value is None or isinstance(value, str | int)
