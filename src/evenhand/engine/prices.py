"""Money: the price of a judge's tokens, in whole picodollars, bounds on it before a call is sent,
and a budget, a hard cap: what a call may cost at most is reserved before it is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from evenhand.engine.stop import Signal, Stop
from evenhand.errors import LimitReached, StoppedEarly, nearest
from evenhand.exchange import Message, Question, Usage
from evenhand.limits import TOKENS_A_MESSAGE
from evenhand.words import Sentence

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
        """Return the price of a call; None where the provider did not say how much it used."""
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
        """Return the most that so many tokens can cost."""
        long = input_tokens >= LONG_PROMPT
        read = self.long_input if long else self.input
        # All of the prompt may be stored in the cache, which can cost more than to read it.
        stored = max(0, self.stored - self.input)
        written = self.long_output if long else self.output
        return input_tokens * (read + stored) + output_tokens * written

    def times(self, share: Decimal) -> Price:
        """Return the price of which each token costs this share."""
        return Price(**{name: _share(pico, share) for name, pico in asdict(self).items()})


def _share(pico: int, share: Decimal) -> int:
    """Return a share of picodollars, rounded up."""
    return int((pico * share).to_integral_value(ROUND_CEILING))


FREE = Price(input=0, output=0, cached=0, stored=0, long_input=0, long_output=0)


def token_bound(question: Question) -> int:
    """Return the most tokens that a question can have: a byte-level tokenizer never makes more
    than bytes. The schema counts, for providers put it into the prompt.
    """
    schema = question.schema.data if question.schema else b""
    turns = [len(message.content.encode()) for message in question.messages]
    return len(schema) + sum(turns) + TOKENS_A_MESSAGE * len(turns)


def token_guess(messages: Iterable[Message]) -> int:
    """Return about how many tokens a prompt has, for forecasts only."""
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
    """Return the price of a suite, from dollars a million tokens. `storing` is how many times the
    price of the input a token costs that the provider's cache takes in."""
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
    """Return the price in the kept table, as of now; None where the model is not listed."""
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
    """Return the listed model of a provider that an unlisted name was most likely meant to be."""
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
    """Return picodollars a token, rounded up: what has a price is never free."""
    return int((Decimal(dollars_per_million) * PICO / 10**6).to_integral_value(ROUND_CEILING))


def usd(pico: int) -> str:
    """Return picodollars as dollars, exactly, without trailing zeroes."""
    text = f"{Decimal(pico) / PICO:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def dollars(pico: int) -> float:
    """Return picodollars as a JSON number of dollars."""
    return float(Decimal(pico) / PICO)


# Budgets


class CallBudget:
    """Picodollars that one run may spend, or several, also one after the other in event loops of
    their own. Without a cap every reservation is granted."""

    def __init__(self, cap: int | None = None, used: int = 0, advice: str = "") -> None:
        self.cap, self.used, self._reserved, self._advice = cap, used, 0, advice
        self._released = Signal()

    async def reserve(self, amount: int, stop: Stop) -> None:
        """Reserve an amount until `release`. Where calls under way may release enough, wait for
        them; else raise LimitReached. Raises Stopped."""
        while self.cap is not None and self.used + self._reserved + amount > self.cap:
            if not self._reserved:
                raise budget_reached(self.cap, self.used, amount, self._advice)
            await stop.sleep(None, self._released)
        self._reserved += amount

    def release(self, amount: int, cost: int) -> None:
        """Release a reserved amount, and count what the call did cost."""
        self._reserved -= amount
        self.used += cost
        self._released.notify_all()


class BatchBudget:
    """Picodollars for whole batches: what one may cost is not there for the next."""

    def __init__(self, cap: int | None) -> None:
        self.cap, self.used = cap, 0
        self.is_short = False
        """True if a question was turned away since the last `restart`."""

    def restart(self, used: int) -> None:
        """Begin a wave with what was spent or reserved until now."""
        self.used, self.is_short = used, False

    def try_reserve(self, amount: int) -> bool:
        """Reserve an amount; return False if it would exceed the cap."""
        if self.cap is not None and self.used + amount > self.cap:
            self.is_short = True
            return False
        self.used += amount
        return True


def budget_reached(cap: int, used: int, amount: int, advice: str = "") -> LimitReached:
    """Return the error for a budget that does not allow the next call."""
    figures = {"cap": float(usd(cap)), "used": float(usd(used)), "amount": float(usd(amount))}
    return LimitReached(Sentence("engine.budget_reached", **figures), advice=advice, amount=amount)


class PricedCall(NamedTuple):
    """The cost of a call in picodollars, None where no price is known; the most tokens that it can
    have taken, where it has no price above zero and its usage is not fully known; and the error
    for a call that was billed beyond its reservation."""

    cost: int | None
    most: Usage
    overcharge: StoppedEarly | None


def price_call(
    price: Price | None, usage: Usage, prompt_tokens: int, max_tokens: int
) -> PricedCall:
    """Return the price of a reply. Without a count from the provider, it is the most that it can
    have been."""
    if price is None:
        error = _overcharge(usage, prompt_tokens, max_tokens, 0, 0)
        return PricedCall(None, most_tokens(usage, prompt_tokens, max_tokens), error)
    most, cost = price.bound(prompt_tokens, max_tokens), price.cost(usage)
    cost = most if cost is None else cost
    bound = Usage() if most else most_tokens(usage, prompt_tokens, max_tokens)
    return PricedCall(cost, bound, _overcharge(usage, prompt_tokens, max_tokens, cost, most))


def _overcharge(
    usage: Usage, prompt_tokens: int, max_tokens: int, cost: int, most: int
) -> StoppedEarly | None:
    """Return the error for a call that was billed beyond its reservation, else None. A few tokens
    more are how a provider counts, and the prompt's bound has money for them."""
    written, read = usage.output_tokens or 0, usage.input_tokens or 0
    prices = {"cost": float(usd(cost)), "most": float(usd(most))}
    if written > max_tokens + TOKENS_A_MESSAGE:
        what = Sentence("engine.overcharged_output", tokens=written, limit=max_tokens, **prices)
    elif read > prompt_tokens:
        what = Sentence("engine.overcharged_prompt", tokens=read, limit=prompt_tokens, **prices)
    elif cost > most:
        what = Sentence("engine.overcharged", **prices)
    else:
        return None
    return StoppedEarly(what, advice=Sentence("engine.overcharged_advice"))


def most_tokens(usage: Usage, prompt_tokens: int, max_tokens: int) -> Usage:
    """Return the most tokens that a reply can have taken, if its usage is not fully known; else an
    empty usage."""
    if usage.input_tokens is not None and usage.output_tokens is not None:
        return Usage()
    return Usage(input_tokens=prompt_tokens, output_tokens=max_tokens)
