"""The engine. Documents cross as JSON text, tables as Parquet bytes."""

def version() -> str:
    """The version of the engine."""
