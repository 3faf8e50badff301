"""Judges over HTTP: one `answer` is one request, in the wire format of the judge's provider.

If the endpoint refuses a request for its form alone, a narrower dialect, or that it answers by
stream only, is remembered, and the question is to be asked again; nothing is tried again here.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from evenhand import limits
from evenhand.errors import AskAgain, CallLost, KeyMissing, UsageError
from evenhand.exchange import (
    BatchAnswer,
    BatchEndpoint,
    BatchRequest,
    Judge,
    Question,
    ReadAnswer,
    Reply,
)
from evenhand.jsontext import compact
from evenhand.judges.credentials import Account, key_from
from evenhand.judges.error_response import (
    ErrorResponse,
    Recipient,
    error_for,
    error_in_success,
    read_error_response,
)
from evenhand.judges.providers import JudgeOptions, Provider
from evenhand.judges.transport import HttpResponse, Transport
from evenhand.judges.trust import Trust, TrustedHosts, key_use, parse_proxy
from evenhand.judges.wire import (
    UNREADABLE,
    Dialect,
    Request,
    WireFormat,
    parse_body,
    read_body,
    unreadable,
)
from evenhand.text import replace_surrogates
from evenhand.words import Sentence

STREAM_BYTES = 4 * limits.BODY_BYTES
"""An event of a stream is about 300 bytes a token."""


class RemoteJudge(Judge):
    """A judge at one endpoint, with one model and its parameters."""

    def __init__(self, provider: Provider, options: JudgeOptions, model: str) -> None:
        self._wire: WireFormat = import_module(f"evenhand.judges.{provider.wire}").FORMAT
        use = key_use(provider, options)
        url = use.url
        secret = key_from(options.environment, use.key_name, str(url.origin()))
        if secret is not None and not secret.is_placeholder:
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
            **({} if "seed" in self._dialect.refused else {"seed": options.seed}),
            **({"params": self._params} if options.params else {}),
        }
        self._recipient = Recipient(
            key_name=use.key_name, model=model, base_url=str(url), has_key=secret is not None
        )
        if secret is None and provider.is_billed and str(url) == provider.url:
            self.unavailable_reason = KeyMissing(
                Sentence("judges.key_missing", address=url, key=use.key_name)
            )
        connect = partial(
            Transport,
            url,
            secret=secret,
            environment=options.environment,
            key_header=provider.key_header,
            headers=provider.headers,
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
        outcome = self._read(response, await read_body(response, self._wire), request.sampling)
        if isinstance(outcome, ErrorResponse) and outcome.wants_stream and not streams:
            self._streams = True
            raise AskAgain
        return self._conclude(outcome, dialect)

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
            return self._conclude(
                self._read(response, parse_body(response.body), sampling), dialect
            )

        return read

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()
        await self._batch_transport.close()

    def _request(self, question: Question, dialect: Dialect, *, stream: bool = False) -> Request:
        temperature, seed = question.sampling(self._temperature, self._seed)
        sampling = {
            name: value
            for name, value in (("temperature", temperature), ("seed", seed))
            if value is not None and name not in dialect.refused
        }
        schema = question.schema.value if question.schema else None
        return Request(self._model, question.messages, schema, self._max_tokens, sampling, stream)

    def _encode(self, request: Request, dialect: Dialect) -> bytes:
        body = _merge(self._wire.build_request(request, dialect), self._params)
        # A lone surrogate, which has no UTF-8, becomes its escape.
        return compact(body).encode("utf-8", "backslashreplace")

    def _read(
        self, response: HttpResponse, body: Any, sampling: Mapping[str, float]
    ) -> Reply | ErrorResponse | CallLost:
        """Return the reply, the error, or the CallLost of a body that is neither: a value, so that
        no frame that holds the raw body, and maybe a key in it, is in a traceback."""
        scrub = self._transport.scrub
        if not 200 <= response.status < 300:
            return read_error_response(response, scrub)
        if isinstance(body, CallLost):
            return body
        try:
            decoded = self._wire.read_reply(body)
        except UNREADABLE:
            error = error_in_success(body, response, scrub)
            return error or unreadable(f"JSON without {self._wire.content}")
        return Reply(
            text=replace_surrogates(scrub(decoded.text)),
            finish=decoded.finish,
            usage=decoded.usage,
            model=replace_surrogates(scrub(decoded.model)),
            sampling=sampling,
            reasoning=replace_surrogates(scrub(decoded.reasoning)),
        )

    def _conclude(self, outcome: Reply | ErrorResponse | CallLost, dialect: Dialect) -> Reply:
        """Return a reply to a request in this dialect, or raise what the response amounts to."""
        if isinstance(outcome, Reply):
            self._has_answered = True
            return outcome
        if isinstance(outcome, CallLost):
            raise outcome
        narrower = dialect.without(outcome.refused_part)
        if narrower is None:
            raise error_for(outcome, self._recipient, proven=self._has_answered)
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
            Sentence(
                "judges.too_hot",
                provider=provider.name,
                most=wire.max_temperature,
                temperature=options.temperature,
            ),
            where="[[judges]]",
        )
    if options.proxy_place and parse_proxy(options.proxy or "", options.proxy_place).user:
        raise UsageError(Sentence("judges.proxy_password"), where=options.proxy_place)
    where = f"[judges.params] {options.name}"
    for name in wire.reserved:
        if _sets(options.params, name):
            raise UsageError(Sentence("judges.reserved_param", name=name), where=where)
    try:
        json.dumps(options.params, allow_nan=False)
    except (TypeError, ValueError):
        raise UsageError(
            Sentence("judges.params_not_json", params=options.params), where=where
        ) from None


def _sets(params: Any, path: str) -> bool:
    """Return True if params change the field at a dotted path of the request."""
    name, _, rest = path.partition(".")
    if not isinstance(params, Mapping):
        return True
    return name in params and (not rest or _sets(params[name], rest))
