"""Both ports in a schema of a PostgreSQL database; what needs the driver stands in `store`."""
