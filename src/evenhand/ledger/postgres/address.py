"""The address of a PostgreSQL store, as libpq and its users write it, and how it may be shown.

`postgresql://user:password@host:port/database?schema=evenhand&sslmode=verify-full`: everything but
`schema` is handed to the driver as it stands, so that several hosts, sockets, services, PGPASSWORD
and PGPASSFILE work as they do elsewhere. A password is handed on, and shown nowhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import blake2b
from ipaddress import ip_address
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from evenhand.errors import UsageError

SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "evenhand"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SECRET = frozenset({"password", "sslpassword"})
FORM = "postgresql://USER@HOST:PORT/DATABASE"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is: what the driver is given, and the schema that holds the tables."""

    dsn: str = field(repr=False)
    database: str
    schema: str
    shown: str
    """The same for people, without a password."""
    hosts: tuple[str, ...]
    """Names, numbers and folders of sockets; none where the user's environment says which."""
    settings: frozenset[str]
    """The names of what stands behind the question mark."""

    @property
    def fingerprint(self) -> str:
        """A short name for files about this store, whoever connects to it."""
        place = f"{','.join(self.hosts)}/{self.database}/{self.schema}"
        return blake2b(place.encode(), digest_size=8).hexdigest()

    @property
    def distant_hosts(self) -> list[str]:
        """The hosts that are not this machine, without their ports."""
        names = [_without_port(host) for host in self.hosts]
        return [name for name in names if name and not _is_here(name)]


def _without_port(host: str) -> str:
    """A host of an address: a name, a number, `[::1]:5432`, the folder of a socket."""
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
    """Whether a URL is one of a PostgreSQL store."""
    return url.partition(":")[0] in SCHEMES


def read_address(url: str) -> Address:
    """The address in a URL; raises UsageError, which does not show it."""
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        values = dict(options)
        hosts = _hosts(parts.netloc, values)
    except ValueError:
        raise _unreadable() from None
    if parts.scheme not in SCHEMES or parts.fragment or "\0" in unquote(url):
        raise _unreadable()
    schema = values.get("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise UsageError(
            "a schema of a store is named with small letters, digits and _, at most 63",
            advice="e.g. ?schema=team_a",
        )
    rest = urlencode([option for option in options if option[0] != "schema"])
    dsn = urlunsplit((parts.scheme, _quoted(parts.netloc), parts.path, rest, ""))
    database = unquote(parts.path.lstrip("/"))
    database = database or values.get("dbname") or values.get("database") or ""
    public = urlencode([option for option in options if option[0] not in _SECRET])
    user, _, place = _quoted(parts.netloc).rpartition("@")
    name = f"{user.partition(':')[0]}@" if user else ""
    shown = urlunsplit((parts.scheme, f"{name}{place}", parts.path, public, ""))
    return Address(dsn, database, schema, shown, hosts, frozenset(values))


def shown_url(url: str) -> str:
    """A store's URL as it may be printed and kept: one of PostgreSQL without its password, any
    other as it is."""
    if not is_postgres(url):
        return url
    try:
        return read_address(url).shown
    except UsageError:
        return f"{SCHEMES[0]}://..."


def _hosts(netloc: str, values: dict[str, str]) -> tuple[str, ...]:
    """The hosts, each with its port where one is named."""
    named = netloc.rpartition("@")[2]
    text = unquote(named) or values.get("host", "")
    return tuple(filter(None, text.split(",")))


def _quoted(netloc: str) -> str:
    """User, password and hosts such that no reader takes a part of the password for a host."""
    authority, at, hosts = netloc.rpartition("@")
    names = (quote(unquote(part), safe="") for part in authority.split(":", 1))
    return f"{':'.join(names)}{at}{hosts}"


def _unreadable() -> UsageError:
    return UsageError(
        "the address of the PostgreSQL store cannot be read (it is not shown here: it may hold a"
        " password)",
        advice=f"It looks like {FORM}; characters such as @ : / ? # in a password are written as"
        " %40 %3A %2F %3F %23, or the password stands in PGPASSWORD or in the file .pgpass.",
    )
