"""The ledger: every reply that was paid for, durable before it is used."""
