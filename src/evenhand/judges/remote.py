"""Judges over HTTP: one `answer` is one request, in the wire format of the judge's provider.

If the endpoint refuses a request for its form alone, a narrower dialect, or that it answers by
stream only, is remembered, and the question is to be asked again; nothing is tried again here.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from evenhand import limits
from evenhand.errors import AskAgain, CallLost, KeyMissing, ProviderRefused, UsageError, quoted
from evenhand.exchange import (
    BatchAnswer,
    BatchEndpoint,
    BatchRequest,
    Question,
    ReadAnswer,
    Reply,
    Style,
)
from evenhand.jsontext import encoded
from evenhand.judges.credentials import Account, key_from
from evenhand.judges.dialect import Dialect
from evenhand.judges.error_response import (
    ErrorResponse,
    Recipient,
    error_for,
    error_in_success,
    read_error_response,
    retry_hints,
)
from evenhand.judges.providers import JudgeOptions, Provider
from evenhand.judges.transport import HttpResponse, Transport, parse_proxy
from evenhand.judges.trust import Trust, TrustedHosts, has_key, key_use
from evenhand.judges.wire import (
    UNREADABLE,
    Decoded,
    Request,
    WireFormat,
    is_stream,
    join_stream,
    parse_body,
    unreadable,
)
from evenhand.text import replace_surrogates

STREAM_BYTES = 4 * limits.BODY_BYTES
"""An event of a stream is about 300 bytes a token."""
_INSTEAD = {
    "model": "Name it in `model` of [[judges]].",
    "temperature": "Set temperature beside model.",
    "seed": "Set seed at the top of the suite.",
    "stream": "Set stream = true beside model.",
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens", "maxOutputTokens"), "Set max_tokens beside model."
    ),
}


class RemoteJudge:
    """A judge at one endpoint, with one model and its parameters."""

    style: Style = "full"
    slots: int | None = None
    caveat: str = ""

    def __init__(self, provider: Provider, options: JudgeOptions, model: str) -> None:
        self._wire: WireFormat = import_module(f"evenhand.judges.{provider.wire}").FORMAT
        use = key_use(provider, options, model)
        url = use.url
        secret = key_from(options.environment, use.key_name, str(url.origin()))
        if has_key(use, options.environment):
            trust = options.trust or Trust(TrustedHosts())
            trust.check(use)
            trust.check_route(use, options)
        _check_options(provider, options, self._wire)
        self._dialect = self._wire.first_dialect(model)
        # Not `options` as a whole: the environment in it holds the keys.
        self._temperature, self._seed = options.temperature, options.seed
        self._max_tokens, self._params = options.max_tokens, dict(options.params)
        self._provider, self._model, self._address = provider, model, url
        self._streams = options.stream
        self._has_answered = False
        self.name = options.name
        self.account: Hashable = Account(provider.name, str(url), secret)
        self.identity: Mapping[str, Any] = {
            "provider": provider.name,
            "base_url": str(url),
            "model": model,
            "temperature": options.temperature,
            "max_tokens": options.max_tokens,
            # A seed that is never sent changes no answer, and must not make one paid for again.
            **({"seed": options.seed} if self._dialect.seed else {}),
            **({"params": self._params} if options.params else {}),
        }
        self._recipient = Recipient(
            key_name=use.key_name, model=model, base_url=str(url), has_key=secret is not None
        )
        keyless = secret is None and provider.needs_key and str(url) == provider.url
        self.unavailable_reason: ProviderRefused | None = self._no_key() if keyless else None
        service = provider.service
        connect = partial(
            Transport,
            url,
            secret=secret,
            environment=options.environment,
            key_header=service.key_header,
            key_prefix=service.key_prefix,
            headers=service.headers,
            proxy=options.proxy,
            ca_file=options.ca_file,
        )
        self._transport = connect(seconds=options.attempt_seconds)
        self._batch_transport = connect(
            seconds=limits.BATCH_SECONDS, most_bytes=limits.BATCH_ANSWER_BYTES
        )

    async def answer(self, question: Question) -> Reply:
        """Answer once, or raise AskAgain, CallLost, CallRejected or ProviderRefused."""
        if self.unavailable_reason:
            raise self.unavailable_reason
        dialect, streams = self._dialect, self._streams
        request = self._request(question, dialect, stream=streams)
        response = await self._transport.send(
            "POST",
            self._wire.endpoint(self._address, request),
            self._encode(request, dialect),
            most_bytes=STREAM_BYTES if streams else limits.BODY_BYTES,
        )
        if is_stream(response):
            response = await join_stream(response, self._wire)
        outcome = self._read(response, request.sampling)
        if isinstance(outcome, ErrorResponse) and outcome.wants_stream and not streams:
            self._streams = True
            raise AskAgain
        return self._conclude(outcome, response, dialect)

    @property
    def batches(self) -> BatchEndpoint | None:
        """The provider's batch endpoint; None if it has none."""
        if not self._provider.batches:
            return None
        from evenhand.judges.batch_endpoints import open_batches

        return open_batches(
            self._provider.batches, self._batch_transport, self._address, self._recipient
        )

    def batch_request(self, ident: str, question: Question) -> BatchRequest:
        """Return a question as a line of a batch."""
        request = self._request(question, self._dialect)
        return BatchRequest(ident, self._encode(request, self._dialect), request.sampling)

    def batch_reader(self) -> ReadAnswer:
        """Return what reads the answers of one batch, all of whose requests were of one dialect."""
        dialect = self._dialect

        def read(answer: BatchAnswer, sampling: Mapping[str, float]) -> Reply:
            response = HttpResponse(answer.status, {}, answer.body)
            return self._conclude(self._read(response, sampling), response, dialect)

        return read

    def load(self) -> None:
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

    def _request(self, question: Question, dialect: Dialect, *, stream: bool = False) -> Request:
        temperature, seed = question.sampling(self._temperature, self._seed)
        sampled: dict[str, float] = {}
        if temperature is not None and dialect.temperature:
            sampled["temperature"] = temperature
        if seed is not None and dialect.seed:
            sampled["seed"] = seed
        schema = question.schema.value if question.schema else None
        return Request(self._model, question.messages, schema, self._max_tokens, sampled, stream)

    def _encode(self, request: Request, dialect: Dialect) -> bytes:
        body = self._wire.build_request(request, dialect)
        return encoded(_merge(body, self._params))

    def _read(
        self, response: HttpResponse, sampled: Mapping[str, float]
    ) -> Reply | ErrorResponse | CallLost:
        """Return the reply, the error, or the CallLost of a body that is neither: a value, so that
        no frame that holds the raw body, and maybe a key in it, is in a traceback."""
        scrub = self._transport.scrub
        if not 200 <= response.status < 300:
            return read_error_response(response, scrub)
        decoded = self._decode(response)
        if not isinstance(decoded, Decoded):
            return decoded
        return Reply(
            text=replace_surrogates(scrub(decoded.text)),
            finish=decoded.finish,
            usage=decoded.usage,
            model=replace_surrogates(scrub(decoded.model)),
            sampling=sampled,
            reasoning=replace_surrogates(scrub(decoded.reasoning)),
        )

    def _decode(self, response: HttpResponse) -> Decoded | ErrorResponse | CallLost:
        body = parse_body(response.body)
        if isinstance(body, CallLost):
            return body
        try:
            return self._wire.read_reply(body)
        except UNREADABLE:
            error = error_in_success(body, response.status, self._transport.scrub)
            return error or unreadable(f"JSON without {self._wire.content}")

    def _conclude(
        self, outcome: Reply | ErrorResponse | CallLost, response: HttpResponse, dialect: Dialect
    ) -> Reply:
        """Return a reply to a request in this dialect, or raise what the response amounts to."""
        if isinstance(outcome, Reply):
            self._has_answered = True
            return outcome
        if isinstance(outcome, CallLost):
            raise outcome
        narrower = dialect.narrow(outcome)
        if narrower is None:
            hints = retry_hints(outcome, response.headers)
            raise error_for(outcome, self._recipient, hints, proven=self._has_answered)
        self._dialect = self._dialect.join(narrower)
        raise AskAgain


def _merge(request: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with the user's params in it; tables are merged, lists are not."""
    merged = dict(request)
    for name, value in params.items():
        inner: Any = merged.get(name)
        is_table = isinstance(inner, Mapping) and isinstance(value, Mapping)
        merged[name] = _merge(inner, value) if is_table else value
    return merged


def _check_options(provider: Provider, options: JudgeOptions, wire: WireFormat) -> None:
    """Raise UsageError for settings that this judge cannot be asked with."""
    if options.temperature is not None and options.temperature > wire.max_temperature:
        raise UsageError(
            f"{provider.name} takes temperatures from 0 to {wire.max_temperature:g},"
            f" not {options.temperature:g}",
            where="[[judges]]",
            advice="Lower temperature; it is not changed silently.",
        )
    if options.proxy_place and parse_proxy(options.proxy or "", options.proxy_place).user:
        raise UsageError(
            "a proxy's user name and password may not stand in the suite",
            where=options.proxy_place,
            advice="Set https_proxy (or http_proxy) in the environment, and take proxy away.",
        )
    _check_params(options, wire.reserved)


def _check_params(options: JudgeOptions, reserved: Sequence[str]) -> None:
    """Raise UsageError for params that would change what Evenhand itself asks for, or are no
    JSON."""
    where = f"[judges.params] of {options.name}"
    for path, value in _leaves(options.params):
        for name in reserved:
            if path == name or path.startswith(f"{name}.") or name.startswith(f"{path}."):
                otherwise = "Remove it; the protocol's contract needs it as it is."
                raise UsageError(
                    f"{quoted(path)} may not be set here: Evenhand sends {name} itself",
                    where=where,
                    advice=_INSTEAD.get(name.rpartition(".")[2], otherwise),
                )
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise UsageError(
                f"{quoted(path)} is no JSON value: {quoted(value)}",
                where=where,
                advice="Write a text, a number, true, false, a list or a table.",
            ) from None


def _leaves(params: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value that is no table, with its path."""
    for name, value in params.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
