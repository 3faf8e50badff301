"""The address of a PostgreSQL store, as libpq and its users write it, and how it may be shown.

`postgresql://user:password@host:port/database?schema=evenhand&sslmode=verify-full`: everything but
`schema` is handed to the driver as it stands, so that several hosts, sockets, services, PGPASSWORD
and PGPASSFILE work as they do elsewhere. A password is handed on, and shown nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from ipaddress import ip_address
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from evenhand.errors import UsageError, hide_in_address
from evenhand.words import Code, Sentence

SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "evenhand"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
HIGHEST_PORT = 65535
FORM = "postgresql://USER@HOST:PORT/DATABASE"
EXAMPLE = "postgresql://me@localhost:5432/evenhand"


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a store: the driver's part, and the schema that holds the tables."""

    dsn: str = field(repr=False)
    database: str
    schema: str
    shown: str
    """The address for people, without a password."""
    hosts: tuple[str, ...]
    """Names, numbers and folders of sockets; none where the user's environment says which."""
    settings: frozenset[str]
    """The names of what stands behind the question mark."""

    @property
    def fingerprint(self) -> str:
        """Return a short name of this store, whoever connects to it."""
        place = f"{','.join(self.hosts)}/{self.database}/{self.schema}"
        return blake2b(place.encode(), digest_size=8).hexdigest()

    @property
    def distant_hosts(self) -> list[str]:
        """Return the hosts that are not this machine, without their ports."""
        names = [_without_port(host) for host in self.hosts]
        return [name for name in names if name and not _is_here(name)]


def _without_port(host: str) -> str:
    """Return a host of an address (a name, a number, `[::1]:5432`, a socket's folder) alone."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0]


def _is_here(host: str) -> bool:
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_postgres(url: str) -> bool:
    """Return True if a URL is one of a PostgreSQL store."""
    return url.partition(":")[0] in SCHEMES


def read_address(url: str) -> Address:
    """Return the address in a URL; raises UsageError, which does not show it."""
    try:
        parts = split_address(url)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        values = dict(options)
        hosts = _hosts(parts.netloc.rpartition("@")[2], values)
        _require_ports(hosts, values)
    except ValueError:
        raise _unreadable() from None
    schema = values.get("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise UsageError(Sentence("store.schema_name", most=63, example=Code("?schema=team_a")))
    rest = urlencode([option for option in options if option[0] != "schema"])
    dsn = urlunsplit((parts.scheme, parts.netloc, parts.path, rest, ""))
    database = unquote(parts.path.lstrip("/"))
    database = database or values.get("dbname") or values.get("database") or ""
    return Address(dsn, database, schema, hide_in_address(url), hosts, frozenset(values))


def split_address(url: str) -> SplitResult:
    """Return the parts of a URL. Raises ValueError for what is no address of a store: a second `@`
    or one behind the host may be of a password, of which no part may be taken for a host."""
    parts = urlsplit(url)
    behind_user = f"{parts.netloc.partition('@')[2]}{parts.path}{parts.query}"
    is_misplaced = "@" in behind_user or parts.fragment
    if parts.scheme not in SCHEMES or is_misplaced or "\0" in unquote(url):
        raise ValueError
    return parts


def shown_url(url: str) -> str:
    """Return a store's URL as it may be printed and kept, without user and password."""
    if not is_postgres(url):
        return hide_in_address(url)
    try:
        return read_address(url).shown
    except UsageError:
        return f"{SCHEMES[0]}://..."


def _hosts(netloc: str, values: dict[str, str]) -> tuple[str, ...]:
    """Return the hosts, each with its port if one is named."""
    text = unquote(netloc) or values.get("host", "")
    return tuple(filter(None, text.split(",")))


def _require_ports(hosts: Sequence[str], values: Mapping[str, str]) -> None:
    """Raise UsageError for a port that is no number or too high. It is not shown: in an address
    without an `@` it may be a password."""
    ports = [host.rpartition(":")[2] for host in hosts if ":" in host.rpartition("]")[2]]
    ports += filter(None, values.get("port", "").split(","))
    if not all(port.isdecimal() and 0 < int(port[:6]) <= HIGHEST_PORT for port in ports):
        raise UsageError(
            Sentence("store.port", most=Code(HIGHEST_PORT), form=Code(FORM), example=Code(EXAMPLE))
        )


def _unreadable() -> UsageError:
    return UsageError(Sentence("store.unreadable_address", form=Code(FORM)))
