"""What readers see of a PostgreSQL store, through a connection of their own."""

from __future__ import annotations

from hashlib import blake2b

from evenhand.errors import StoreError
from evenhand.store.postgres.claims import HOLDER, halves, lock_number
from evenhand.store.postgres.server import Server
from evenhand.store.postgres.session import PostgresSession
from evenhand.store.sql.archive import SqlArchive
from evenhand.store.sql.verify import faults


class PostgresArchive(SqlArchive):
    """An archive in a schema of a database."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._database = PostgresSession(server)
        super().__init__(self._database)

    def is_claimed(self, run: str) -> bool:
        number = lock_number(self._server.address.schema, run)
        return bool(self._rows(HOLDER, **halves(number)))

    def state(self) -> int:
        # Every transaction that writes is a part of the snapshot until it has ended, those of
        # other databases of the server too: the number changes no later than the store.
        [(snapshot,)] = self._rows("SELECT CAST(pg_current_snapshot() AS TEXT)")
        return int.from_bytes(blake2b(snapshot.encode(), digest_size=7).digest())

    def is_there(self) -> bool:
        try:
            return bool(self._rows("SELECT 1 FROM migrations LIMIT 1"))
        except StoreError:
            return False

    def freeze(self) -> None:
        if not self._database.in_transaction:
            self._database.begin(isolation="repeatable_read", readonly=True)
            self._rows("SELECT COUNT(*) FROM migrations")  # the state is that of the first look

    def thaw(self) -> None:
        if self._database.in_transaction:
            self._database.commit()

    def verify(self) -> list[str]:
        is_frozen = self._database.in_transaction
        try:
            self.freeze()
            return list(faults(self._session))
        except StoreError as error:
            return [f"the store is damaged: {error.what}"]
        finally:
            if not is_frozen:
                self.thaw()

    def close(self) -> None:
        self._database.close()
