"""The engine. Specifications and documents cross as JSON text, tables as Parquet files or bytes.

Every function releases the GIL, and raises an exception of `smrlab.errors`.
"""

class Control:
    """What another thread may see and do while a run is under way."""

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """Asks the run to stop; it does so within a few milliseconds."""
    def requests(self) -> int:
        """Host requests served so far."""
    def share(self) -> float:
        """Share of the trace that has been read, 0 to 1; 0 where it is not known."""

def version() -> str:
    """The version of the engine."""

def spec_from_toml(text: str) -> str:
    """The fields of a specification file, checked; as JSON with defaults filled in."""

def compared(spec: str, layers: list[str]) -> list[str]:
    """A specification for each of `layers`, all on the smallest host space among them."""

def run(spec: str, control: Control, folder: str | None) -> tuple[str, dict[str, bytes]]:
    """Runs a specification; the result document, and its tables as Parquet.

    Tables that grow with the trace (requests, media) are written into `folder`.
    """

def list_json(kind: str) -> str:
    """The entries of a registry: name, summary, reference, parameters."""

def explain_json(name: str) -> str:
    """The entry of this name, whatever it is."""

def trace_info(spec: str, control: Control) -> str:
    """The characterisation of a trace."""

def trace_write(spec: str, out: str, control: Control) -> int:
    """Reads, transforms and stores traces as Parquet; the number of requests."""
