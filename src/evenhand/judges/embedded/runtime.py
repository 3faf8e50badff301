"""The model itself: xllamacpp's server inside this process, spoken to over its own loopback door.

Only the child process imports this. One request at a time; the first request of a session computes
its prompt afresh and the later ones reuse that, so every value depends on the session alone.

A chat template inside a GGUF file is a program of unknown origin: it is replaced before it could be
parsed. The format is chosen by which control tokens the vocabulary has. Only what stands in FORMATS
becomes control tokens; the text of a message is tokenised as plain text, whatever it looks like.
"""

from __future__ import annotations

import http.client
import importlib
import json
import os
import secrets
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.exchange import Message
from evenhand.judges.embedded.decoding import TokenCandidate, Tokens

# A prompt of 7,000 tokens takes minutes on a small machine; longer ones are refused.
CONTEXT = 8192
# Kept free behind the prompt for what is written there.
ROOM = 1024
# Tokens computed in one request, so that a long prompt shows signs of life.
STRIDE = 1024
# Candidates listed for the next token; an option beyond them is as unlikely as the last of them.
LISTED = 256
ANY_ASCII = "root ::= [ -~]"


Tokenise = Callable[[str, bool], Sequence[int]]
"""Text to tokens; the flag says if control tokens in it are such."""


class TooLongError(Exception):
    """A prompt that is longer than the model's context."""


class ServerError(Exception):
    """The server answered a request with an error."""


class Completion(NamedTuple):
    """Text a model wrote, how many tokens it took, and if it came to its own end."""

    text: str
    tokens: int
    ended: bool


class Runtime:
    """A loaded model."""

    def __init__(self, path: Path, threads: int, beat: Callable[[], None]) -> None:
        self._key = secrets.token_hex(16)
        self._server = _start_server(path, threads, self._key)
        self._beat = beat
        self._host = urllib.parse.urlsplit(str(self._server.listening_address)).netloc
        self._tokenise = lru_cache(maxsize=4096)(self._tokenise_text)
        self._form = choose_format(self._tokenise)
        self._start = self._first_tokens()
        self.context = self._context()

    def session(
        self, messages: Sequence[Message], temperature: float = 0.0, seed: int = 0
    ) -> PromptSession:
        """Return a session on a prompt, with how free text is drawn. Raises TooLongError."""
        tokens = to_prompt(messages, self._form, self._tokenise, self._start)
        if len(tokens) > self.context - ROOM:
            most = self.context - ROOM
            raise TooLongError(f"the prompt has {len(tokens)} tokens, the model takes {most}")
        return PromptSession(self, tokens, temperature, seed)

    def tokens(self, text: str) -> Tokens:
        """Return text as tokens, none of them special."""
        return self._tokenise(text, False)

    def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return one completion."""
        reply = self._request("POST", "/completion", request)
        self._beat()
        return reply

    def _tokenise_text(self, text: str, special: bool) -> Tokens:
        if not text:
            return ()
        whole = text.encode("utf-8", "replace").decode()  # half a surrogate pair is no text
        request = {"content": whole, "add_special": False, "parse_special": special}
        return tuple(self._request("POST", "/tokenize", request)["tokens"])

    def _first_tokens(self) -> Tokens:
        """Return the tokens that begin every prompt, unless a turn begins with them anyway."""
        empty = {"content": "", "add_special": True}
        tokens = tuple(self._request("POST", "/tokenize", empty)["tokens"])
        opening = self._tokenise(self._form.turn.format(role="user"), True)
        return () if tokens == opening[:1] else tokens

    def _context(self) -> int:
        meta = self._request("GET", "/v1/models", None)["data"][0]["meta"]
        return min(CONTEXT, int(meta["n_ctx_train"]))

    def _request(self, method: str, path: str, body: Any) -> dict[str, Any]:
        # http.client, because it knows no proxies: prompts must not leave the machine.
        connection = http.client.HTTPConnection(self._host)
        try:
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            sent = None if body is None else json.dumps(body).encode()
            connection.request(method, path, sent, headers)
            answer = connection.getresponse()
            reply: dict[str, Any] = json.loads(answer.read().decode("utf-8", "replace"))
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise ServerError(str(reply.get("error", reply)))
        return reply


class PromptSession:
    """One prompt before a loaded model. The same calls in the same order give the same values."""

    def __init__(self, runtime: Runtime, prompt: Tokens, temperature: float, seed: int) -> None:
        self.prompt = prompt
        self._runtime, self._temperature, self._seed = runtime, temperature, seed
        self._is_fresh = True

    def tokens(self, text: str) -> Tokens:
        """Return text as tokens, none of them special."""
        return self._runtime.tokens(text)

    def following(self, after: Tokens) -> list[TokenCandidate]:
        """Return the likeliest tokens after the prompt and `after`."""
        settings: dict[str, Any] = {"n_predict": 1, "n_probs": LISTED, "temperature": 0.0}
        scored = self._complete(after, **settings).get("completion_probabilities")
        if not scored:
            # The server lists nothing when the next token is half a character: ask for a whole
            # one. What it lists is what the model said before any grammar.
            settings["grammar"] = ANY_ASCII
            scored = self._complete(after, **settings).get("completion_probabilities")
        listed = scored[0]["top_logprobs"] if scored else []
        return [TokenCandidate(c["id"], str(c["token"]), float(c["logprob"])) for c in listed]

    def write(self, after: Tokens, *, limit: int, grammar: str = "") -> Completion:
        """Return what the model goes on to write, in at most `limit` tokens."""
        reply = self._complete(
            after,
            n_predict=limit,
            grammar=grammar,
            temperature=self._temperature,
            seed=self._seed,
        )
        ended = reply["stop_type"] != "limit" and not reply["truncated"]
        return Completion(reply["content"], int(reply["tokens_predicted"]), ended)

    def _complete(self, after: Tokens, **settings: Any) -> dict[str, Any]:
        if self._is_fresh:
            self._read_prompt()
        return self._send(self.prompt + after, reuse=True, **settings)

    def _read_prompt(self) -> None:
        """Compute the prompt from nothing, so that no earlier question leaves a trace."""
        for end in range(STRIDE, len(self.prompt) + STRIDE, STRIDE):
            reuse = end > STRIDE
            self._send(self.prompt[:end], reuse=reuse, n_predict=1, temperature=0.0)
        self._is_fresh = False

    def _send(self, tokens: Tokens, *, reuse: bool, **settings: Any) -> dict[str, Any]:
        return self._runtime.complete({"prompt": tokens, "cache_prompt": reuse, **settings})


def _start_server(path: Path, threads: int, key: str) -> Any:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before the import: waiting must not spin
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel = CONTEXT, 1
    # Token after token, a single busy neighbour would stall the other threads.
    params.cpuparams.n_threads = max(1, threads - 1)
    params.cpuparams_batch.n_threads = threads
    params.use_jinja, params.chat_template = False, "chatml"
    params.ui, params.endpoint_slots, params.verbosity, params.cache_ram_mib = False, False, 1, 0
    params.api_keys = [key]
    params.offline, params.warmup = True, False
    return xllamacpp.Server(params)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFormat:
    """The marks of turns in one family of models: `{role}` is the turn's speaker."""

    name: str
    needs: tuple[str, ...]
    turn: str
    close: str
    assistant: str = "assistant"
    system: bool = True
    """There is a turn for the system; without one its text opens the first user turn."""


CHATML = ChatFormat(
    name="chatml",
    needs=("<|im_start|>", "<|im_end|>"),
    turn="<|im_start|>{role}\n",
    close="<|im_end|>\n",
)
FORMATS = (
    CHATML,
    ChatFormat(
        name="llama3",
        needs=("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        turn="<|start_header_id|>{role}<|end_header_id|>\n\n",
        close="<|eot_id|>",
    ),
    ChatFormat(
        name="gemma",
        needs=("<start_of_turn>", "<end_of_turn>"),
        turn="<start_of_turn>{role}\n",
        close="<end_of_turn>\n",
        assistant="model",
        system=False,
    ),
    ChatFormat(
        name="phi3",
        needs=("<|user|>", "<|assistant|>", "<|end|>"),
        turn="<|{role}|>\n",
        close="<|end|>\n",
    ),
)


def choose_format(tokenise: Tokenise) -> ChatFormat:
    """Return the format whose control tokens the vocabulary has; else ChatML."""
    for form in FORMATS:
        if all(len(tokenise(token, True)) == 1 for token in form.needs):
            return form
    return CHATML


def to_prompt(
    messages: Sequence[Message], form: ChatFormat, tokenise: Tokenise, start: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return the messages as tokens, with the judge's turn opened at the end."""
    tokens = list(start)
    for role, content in _turns(messages, form):
        tokens += tokenise(form.turn.format(role=role), True)
        tokens += tokenise(content, False)
        tokens += tokenise(form.close, True)
    tokens += tokenise(form.turn.format(role=form.assistant), True)
    return tuple(tokens)


def _turns(messages: Sequence[Message], form: ChatFormat) -> list[tuple[str, str]]:
    turns: list[tuple[str, str]] = []
    waiting = ""
    for message in messages:
        if message.role == "system" and not form.system:
            waiting += f"{message.content}\n\n"
            continue
        role = form.assistant if message.role == "assistant" else message.role
        turns.append((role, waiting + message.content))
        waiting = ""
    return turns
