"""The engine. Specifications and documents cross as JSON text, tables as Parquet files or bytes.

Every function releases the GIL, and raises an exception of `smrlab.errors`.
"""

from collections.abc import Callable

from .layer import TranslationLayer

class Medium:
    """The medium that a layer is built on."""

    @property
    def blocks(self) -> int:
        """Blocks on the medium: PBAs are below this."""
    @property
    def head_width(self) -> int:
        """Tracks that one track write touches, itself included."""
    def bands(self, tracks: int | None = None) -> list[tuple[int, int]]:
        """First PBA and blocks of every band, with bands of `tracks` tracks or the drive's default."""

class Plan:
    """The media operations that serve one host request, in the order in which they are done."""

    def read(self, pba: int, blocks: int, at: int = 0) -> None:
        """Reads for the host, into its buffer at block `at`."""
    def write(self, pba: int, blocks: int, at: int = 0) -> None:
        """Writes the host's data, from block `at` of its buffer."""
    def read_all(self, extents: list[tuple[int, int, int]]) -> None:
        """Reads for the host from several extents `(pba, blocks, at)`."""
    def stage(self, pba: int, blocks: int, cause: str = "clean") -> int:
        """Reads into the plan's staging memory; answers with the offset there."""
    def stage_all(self, extents: list[tuple[int, int]], cause: str = "clean") -> int:
        """Stages several extents `(pba, blocks)`, one behind the other; answers with the offset of the first."""
    def write_staged(self, pba: int, blocks: int, offset: int, cause: str = "clean") -> None:
        """Writes what was staged, from `offset` on."""
    def zero(self, blocks: int, at: int = 0) -> None:
        """The host reads zeroes at block `at` of its buffer."""
    def cleaned(self, relocated: int) -> None:
        """What was staged and written since the last such call was one cleaning event that moved so many blocks."""

class Control:
    """What another thread may see and do while a run is under way."""

    def __init__(self, keep: tuple[str, int, str] | None = None) -> None:
        """`keep`: a folder in which prefills are kept, the bytes that they may take, and which program this is."""
    def cancel(self) -> None:
        """Asks the run to stop; it does so within a few milliseconds."""
    def cancelled(self) -> bool:
        """Whether it was asked to stop."""
    def requests(self) -> int:
        """Host requests served so far."""
    def share(self) -> float:
        """Share of the trace, or of the prefill, that is done, 0 to 1; 0 where it is not known."""
    def prefills(self) -> bool:
        """Whether the run is still writing what was to be there before it."""

def version() -> str:
    """The version of the engine."""

def spec_from_toml(text: str) -> str:
    """The fields of a specification file, checked; as JSON with defaults filled in."""

def compared(spec: str, layers: list[tuple[str, type[TranslationLayer] | None]]) -> list[str]:
    """A specification for each of `layers` (name, and class of one's own), all on the smallest host space of them."""

def resolved(spec: str, layer: type[TranslationLayer] | None = None) -> str:
    """The specification, on the layer that a class describes where it is given, with every default spelled out; its
    faults are raised.
    """

def run(
    spec: str, control: Control, folder: str | None, layer: type[TranslationLayer] | None = None
) -> tuple[str, dict[str, bytes]]:
    """Runs a specification, on the layer that a class describes where it is given; the result document, and its tables
    as Parquet.

    Tables that grow with the trace (requests, media) are written into `folder`.
    """

def fit(drive: str, trace: str, reference: str) -> tuple[str, str]:
    """A drive file fitted to the first half of a measured trace, and what was fitted."""

def own_layer(drive: str) -> str:
    """The layer of a drive itself, which its file describes; `cmr` of one without."""

def validate(drive: str, trace: str, layer: str | None, reference: str) -> tuple[str, list[tuple[bool, int, int]]]:
    """A measured trace replayed on a drive: the document, and for each request whether it reads, what it took (ns) and
    what the model took.
    """

def import_disksim(path: str) -> tuple[str, list[str]]:
    """A drive file made of DiskSim's parameter files, and what it cannot express."""

def drive_like(
    base: str,
    name: str,
    capacity: int | None = None,
    rpm: int | None = None,
    zones: int | None = None,
    rate: tuple[float, float] | None = None,
    surfaces: int | None = None,
    tracks: int | None = None,
) -> str:
    """A drive file after the drive `base`; capacity in bytes, rates in bytes a second, outermost and innermost."""

def drive_json(drive: str) -> str:
    """A drive, a preset or a file: as it is listed, with its zones and bands."""

def size_bytes(text: str) -> int:
    """Bytes of a size such as 8GiB, 25MB or 2000blk; shares are refused."""

def count(text: str) -> int:
    """A count such as 2000, 1e5 or 100k."""

def state_json(path: str) -> str:
    """Whose state a file of `--save-state` or `device state` is: array, drive, layer, metadata, and its size."""

def stack_json(text: str) -> str:
    """The array, and the layer where it ends in one, that a stack is short for."""

def list_json(kind: str) -> str:
    """The entries of a registry: name, summary, reference, parameters."""

def explain_json(name: str) -> str:
    """The entry of this name, whatever it is."""

def trace_info(spec: str, control: Control) -> str:
    """The characterisation of a trace."""

def trace_write(spec: str, out: str, control: Control) -> int:
    """Reads, transforms and stores traces as Parquet; the number of requests."""

def geometry_extract(
    target: str,
    zones_only: bool,
    destroy: bool,
    keep_cache: bool,
    keep: str | None,
    control: Control,
    say: Callable[[str], None] | None = None,
) -> str:
    """A target's geometry, measured from outside; kept in the file `keep` at every step, and gone on with from it."""

def identify(
    target: str,
    keep_cache: bool,
    keep: str | None,
    control: Control,
    say: Callable[[str], None] | None = None,
    zones: str | None = None,
) -> str:
    """What kind of drive a target is; its data are destroyed. `zones`: what a served device says of its zones."""

def device_pages(path: str) -> dict[str, bytes]:
    """The pages in which a block device says what it is; none where it takes no commands for that."""

def device_says(pages: dict[str, bytes]) -> str:
    """What such pages say."""

def geometry_fit(text: str, options: str) -> str:
    """A drive file of an extraction or of a DIG text, and what its figures show."""

def geometry_of(drive: str) -> str:
    """A drive's geometry in the form of an extraction."""
