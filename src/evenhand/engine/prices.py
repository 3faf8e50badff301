"""The price of a judge's tokens, in whole picodollars, and bounds on it before a call is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal

from msgspec import Struct

from evenhand.errors import nearest
from evenhand.exchange import Message, Question, Usage
from evenhand.limits import TOKENS_A_MESSAGE

PICO = 10**12
# Providers that charge more for long prompts do so from 128,000 tokens or later.
LONG_PROMPT = 128_000


class Price(Struct, frozen=True, kw_only=True):
    """Picodollars a token; `long_*` where the prompt is long, `cached` and `stored` for what is
    read from the provider's cache and written to it."""

    input: int
    output: int
    cached: int
    stored: int
    long_input: int
    long_output: int

    def cost(self, usage: Usage) -> int | None:
        """The price of a call; None where the provider did not say how much it used."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        if usage.input_tokens >= LONG_PROMPT:
            return self.bound(usage.input_tokens, usage.output_tokens)
        fresh = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        return (
            fresh * self.input
            + usage.cached_tokens * self.cached
            + usage.cache_write_tokens * self.stored
            + usage.output_tokens * self.output
        )

    def bound(self, input_tokens: int, output_tokens: int) -> int:
        """The most that so many tokens can cost."""
        long = input_tokens >= LONG_PROMPT
        read = self.long_input if long else self.input
        # All of the prompt may be stored in the cache, which can cost more than to read it.
        stored = max(0, self.stored - self.input)
        written = self.long_output if long else self.output
        return input_tokens * (read + stored) + output_tokens * written

    def times(self, share: Decimal) -> Price:
        """The price of which each token costs this share."""
        return Price(
            input=_share(self.input, share),
            output=_share(self.output, share),
            cached=_share(self.cached, share),
            stored=_share(self.stored, share),
            long_input=_share(self.long_input, share),
            long_output=_share(self.long_output, share),
        )


def _share(pico: int, share: Decimal) -> int:
    """A share of picodollars, rounded up."""
    return int((pico * share).to_integral_value(ROUND_CEILING))


FREE = Price(input=0, output=0, cached=0, stored=0, long_input=0, long_output=0)


def token_bound(question: Question) -> int:
    """The most tokens that a question can have: a byte-level tokenizer never makes more than bytes.

    The schema counts, for providers put it into the prompt.
    """
    schema = question.schema.data if question.schema else b""
    turns = [len(message.content.encode()) for message in question.messages]
    return len(schema) + sum(turns) + TOKENS_A_MESSAGE * len(turns)


def token_guess(messages: Iterable[Message]) -> int:
    """About how many tokens a prompt has, for forecasts only."""
    return sum(_guess(message.content) + TOKENS_A_MESSAGE // 4 for message in messages)


_CHARS_PER_TOKEN = {"ascii": 4.3, "alphabet": 3.4, "kana": 1.5, "ideograph": 1.2}
"""By script, in tokens of OpenAI's o200k_base: fitted to the bundled prompts and examples in four
languages and to 2,600 published answers and verdicts; within 15 % of the count of each language's
prompts and answers. The vocabulary before it, cl100k_base, takes 1.3 to 1.8 times as many in
Russian, Chinese and Japanese."""


def _guess(text: str) -> int:
    if text.isascii():
        return int(len(text) / _CHARS_PER_TOKEN["ascii"])
    other = sum(not character.isascii() for character in text)
    eastern = [character for character in text if character >= "\u2e80"]
    kana = sum("\u3040" <= character <= "\u30ff" for character in eastern)
    counts = {
        "ascii": len(text) - other,
        "alphabet": other - len(eastern),
        "kana": kana,
        "ideograph": len(eastern) - kana,
    }
    return int(sum(number / _CHARS_PER_TOKEN[script] for script, number in counts.items()))


def given_price(input_mtok: Decimal, output_mtok: Decimal, storing: Decimal = Decimal(1)) -> Price:
    """The price of a suite: dollars a million tokens. `storing` is how many times the price of the
    input a token costs that the provider's cache takes in."""
    read, written = _pico(input_mtok), _pico(output_mtok)
    return Price(
        input=read,
        output=written,
        cached=read,
        stored=_pico(input_mtok * storing),
        long_input=read,
        long_output=written,
    )


def listed_price(provider: str, model: str) -> Price | None:
    """The price in the kept table, as of now; None where the model is not listed."""
    # A tenth of a second: with it come pydantic and an HTTP client, and there is no lighter door.
    import genai_prices

    def dollars(
        input_tokens: int = 0, output_tokens: int = 0, cached: int = 0, stored: int = 0
    ) -> Decimal:
        usage = genai_prices.Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cached,
            cache_write_tokens=stored,
        )
        return genai_prices.calc_price(usage, model_ref=model, provider_id=provider).total_price

    some, many = 1000, 10**6
    try:
        return Price(
            input=_pico(dollars(some) * 1000),
            output=_pico(dollars(0, some) * 1000),
            cached=_pico(dollars(some, 0, some) * 1000),
            stored=_pico(dollars(some, 0, 0, some) * 1000),
            long_input=_pico(dollars(many)),
            long_output=_pico(dollars(many, many) - dollars(many)),
        )
    except LookupError:
        return None


def similar_model(provider: str, model: str) -> str | None:
    """The listed model of a provider that a name which is not listed was most likely meant to
    be."""
    from genai_prices import data

    names = [
        listed.id for entry in data.providers if entry.id == provider for listed in entry.models
    ]
    if model in names:
        return None
    letters = re.compile(r"[\W_]+")
    same = [name for name in names if letters.sub("", name) == letters.sub("", model)]
    return same[0] if same else nearest(model, names, cutoff=0.8)


def _pico(dollars_per_million: Decimal) -> int:
    """Picodollars a token, rounded up: what has a price is never free."""
    return int((Decimal(dollars_per_million) * PICO / 10**6).to_integral_value(ROUND_CEILING))


def usd(pico: int) -> str:
    """Picodollars as dollars, exactly, without trailing zeroes."""
    text = f"{Decimal(pico) / PICO:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def dollars(pico: int) -> float:
    """Picodollars as a JSON number of dollars."""
    return float(Decimal(pico) / PICO)
