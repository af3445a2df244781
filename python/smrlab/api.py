"""`run`, `compare` and `sweep`: from a trace, a drive and a layer to results."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core
from .errors import InputError, Interrupted
from .executors import Piece, chosen
from .kept import Choice
from .layer import TranslationLayer, load
from .outdir import filling, guard
from .results import Result, Results, run_folder, save_results, save_single, title_of
from .secret import hidden
from .simulation import Simulation
from .text import counted
from .trace import ArrowStream, Trace, by_labels, labelled, standard_input
from .urls import is_url
from .work import Watch, attend, attended

if TYPE_CHECKING:
    from .sweeps import Follow, Sweep

Spec = dict[str, Any]
Source = Trace | str | os.PathLike[str] | ArrowStream
Folder = str | os.PathLike[str] | None
Layer = str | type[TranslationLayer]


def make_spec(trace: Source | Sequence[Source] | None, options: Mapping[str, Any]) -> Spec:
    """The specification of a run: what a trace brings along, then the options that were given."""
    spec: Spec = {}
    for t in trace_list(trace):
        for key in t.fields:
            if spec.get(key, t.fields[key]) != t.fields[key]:
                raise InputError(
                    f"of several traces one has {key} {spec[key]}, another {t.fields[key]}: save() them first"
                )
        spec |= t.fields
        spec["trace"] = [*spec.get("trace", []), *t.sources]
    return spec | {key: _plain(key, value) for key, value in options.items() if value is not None}


def _plain(key: str, value: Any) -> Any:
    """A value as a specification has it: paths are texts, NumPy's numbers are numbers."""
    plain = os.fspath(value) if isinstance(value, os.PathLike) else value
    try:
        if hasattr(plain, "item"):
            plain = plain.item()
        json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError):
        raise InputError(f"{key}: {value!r} is not accepted: a text, a number, true or false") from None
    return plain


def trace_list(given: Source | Sequence[Source] | None) -> list[Trace]:
    """What was given as a trace, or several, as traces; tables in memory are stored for as long as these live."""
    several = isinstance(given, Sequence) and not isinstance(given, str | ArrowStream)
    traces: list[Any] = [] if given is None else list(given) if several else [given]  # type: ignore[arg-type]
    return [
        t if isinstance(t, Trace) else Trace(os.fspath(t)) if isinstance(t, str | os.PathLike) else Trace.from_table(t)
        for t in traces
    ]


def _labels(traces: Sequence[Trace]) -> dict[str, str]:
    """What the files that hold tables in memory are called in results."""
    tables = {path: label for t in traces for path, label in t.labels.items()}
    return tables | {source: hidden(source) for t in traces for source in t.sources if "://" in source}


def run(
    trace: Source | Sequence[Source] | None = None,
    *,
    drive: str | None = None,
    layer: Layer | None = None,
    out: Folder = None,
    name: str | None = None,
    force: bool = False,
    watch: Watch | None = None,
    prefill_cache: Choice = True,
    **options: Any,
) -> Result:
    """Runs one trace on one drive with one layer; other fields of a specification go by their names.

    `layer` is `NAME[,k=v...]`, `PATH.py:CLASS`, or a class that extends TranslationLayer. With `out` the result files
    are written there, tables first; results of another experiment are replaced only with `force`. Ctrl-C stops it
    within a second (KeyboardInterrupt). What `prefill` writes is kept in the user's cache folder for the next run that
    begins so; `prefill_cache` is another folder, or False.
    Raises InputError for a wrong specification, with all its faults, and CheckFailed where data was destroyed.
    """
    text, own = layer_class(layer) if layer is not None else (None, None)
    traces = trace_list(trace)
    spec = make_spec(traces, {"drive": drive, "layer": text, **options})
    title = name or title_of(spec)
    with by_labels(_labels(traces)), _filling(out) as folder:
        if out is not None and not force:
            guard(out, lambda: [_resolved(json.dumps(spec), own, _labels(traces))])
        logs = str(folder) if folder else None
        go = lambda control: _core.run(json.dumps(spec), control, logs, own)  # noqa: E731 - a job is a callable
        doc, tables = attended(go, title, watch, prefill_cache)
        result = Result(title, labelled(json.loads(doc), _labels(traces)), _place(out), tables)
        if folder:
            save_single(folder, result)
    return result


def _resolved(spec: str, own: type[TranslationLayer] | None, labels: Mapping[str, str]) -> str:
    """The specification as a result carries it: traces by their labels."""
    return json.dumps(labelled({"spec": json.loads(_core.resolved(spec, own))}, labels)["spec"])


def layer_class(layer: Layer) -> tuple[str, type[TranslationLayer] | None]:
    """A layer as the text that results carry, and its class where it is one of the user's own."""
    if isinstance(layer, str):
        return layer, load(layer)
    if not isinstance(layer, type):
        raise InputError(f"layer {layer}: a text, or a class that extends TranslationLayer")
    return f"python:{layer.__name__}", layer


def compare(
    trace: Source | Sequence[Source] | None = None,
    *,
    drive: str | None = None,
    layers: Layer | Sequence[Layer],
    labels: Sequence[str] | None = None,
    out: Folder = None,
    jobs: int | None = None,
    cluster: str | None = None,
    client: Any = None,
    force: bool = False,
    watch: Watch | None = None,
    prefill_cache: Choice = True,
    **options: Any,
) -> Results:
    """Runs the same requests on each of `layers` (given as for `run`), on `jobs` threads (default: all cores).

    `labels` is what the runs are called in tables and figures, instead of the layers' texts. `cluster` is the address
    of a Dask scheduler, `client` a `distributed.Client`: they run there (see `sweep`). All runs see the host space of
    the smallest of them. On Ctrl-C the finished runs are kept in `out`, and Interrupted is raised.
    """
    if "layer" in options:
        raise InputError("layer: a comparison has several: give layers=[...]")
    layers = [layers] if isinstance(layers, str | type) else list(layers)
    if not layers:
        raise InputError("compare needs at least one layer")
    if labels is not None and len(labels) != len(layers):
        raise InputError(f"{counted(len(labels), 'label')} for {counted(len(layers), 'layer')}: give each its own")
    traces = trace_list(trace)
    spec = make_spec(traces, {"drive": drive, **options})
    spec, called = _read_once(spec, _labels(traces))
    classes = [layer_class(layer) for layer in layers]
    specs = _core.compared(json.dumps(spec), classes)
    names = unique_names(labels or [text for text, _ in classes])
    with by_labels(called), _filling(out) as folder, chosen(cluster, jobs, client) as executor:
        if out is not None and not force:
            guard(out, lambda: [_resolved(s, own, called) for s, (_, own) in zip(specs, classes, strict=True)])
        subs = [folder / run_folder(i, n) if folder else None for i, n in enumerate(names, 1)]
        pieces = [
            Piece(n, Simulation(s, own, sub if not executor.remote else None, executor.remote and sub is not None))
            for n, s, sub, (_, own) in zip(names, specs, subs, classes, strict=True)
        ]
        done, interrupted = attend(pieces, executor, watch, prefill_cache)
        if interrupted and not done:
            raise Interrupted(f"interrupted; none of {counted(len(names), 'run')} was finished")
        numbers = [i + 1 for i, _ in done]
        place = _place(out)
        runs = [
            Result(
                names[i],
                labelled(json.loads(ran.document), called),
                place / run_folder(i + 1, names[i]) if place else None,
                ran.tables,
            )
            for i, ran in done
        ]
        results = Results(runs)
        if folder:
            for i, ran in done:
                ran.write(subs[i])
            save_results(folder, runs, numbers)
            for sub in set(subs) - {subs[i - 1] for i in numbers}:
                shutil.rmtree(str(sub), ignore_errors=True)
    if interrupted:
        kept = f" and kept in {out}" if out else ""
        raise Interrupted(f"interrupted; {len(runs)} of {len(names)} runs were finished{kept}")
    return results


def sweep(
    spec: str | os.PathLike[str] | Mapping[str, Any],
    *,
    out: str | os.PathLike[str],
    jobs: int | None = None,
    scheduler: str | None = None,
    client: Any = None,
    follow: Follow | None = None,
) -> Sweep:
    """Runs every point of a sweep that `out` (a folder or a URL) does not hold yet, on `jobs` threads (default: all
    cores), or on a Dask cluster: `scheduler` is its address, or `slurm`; `client` a `distributed.Client`.

    `spec` is a sweep file, or its tables: `{"base": {...}, "grid": {"layer.cache": ["1%", "2%"]}, "seeds": 3}`. A
    point that fails does not stop the others: `outcome.failed` says why. `follow` is called as it goes on. On Ctrl-C
    what was finished is kept, the next call goes on from there, and Interrupted is raised. Raises InputError, before
    anything runs, for a wrong one.
    """
    from . import sweeps

    study = sweeps.Study.of(spec)
    store = sweeps.Store(_folder(out))
    with chosen(scheduler, jobs, client) as executor:
        outcome = sweeps.run_study(study, store, executor, follow)
    if outcome.interrupted:
        raise Interrupted(f"interrupted; what was finished is in {store}: the same call goes on from there")
    return sweeps.Sweep(store, outcome)


def _place(out: Folder) -> Path | None:
    """The folder on this machine that results are in."""
    return None if out is None or is_url(out) else Path(out)


def _read_once(spec: Spec, labels: dict[str, str]) -> tuple[Spec, dict[str, str]]:
    """The specification with standard input stored in a file, for several runs cannot read it."""
    traces = spec.get("trace") or []
    traces = [traces] if isinstance(traces, str) else traces
    piped = [t for t in traces if standard_input(t)]
    if not piped:
        return spec, labels
    if len(piped) > 1:
        raise InputError("standard input can be one trace only")
    import tempfile

    import pyarrow as pa

    # As it came, so that each run passes over bad lines, and counts them, itself.
    file = tempfile.NamedTemporaryFile(prefix="smrlab-", suffix=".zst")  # noqa: SIM115 - lives as long as its label
    with open(0, "rb", closefd=False) as stdin, pa.CompressedOutputStream(pa.OSFile(file.name, "wb"), "zstd") as stored:
        shutil.copyfileobj(stdin, stored)
    there = file.name + piped[0].removeprefix("-")
    labels = _Labels(labels | {there: piped[0], file.name: "-"}, file)
    return {**spec, "trace": [there if t == piped[0] else t for t in traces]}, labels


class _Labels(dict[str, str]):
    """Labels that keep a temporary file."""

    def __init__(self, labels: dict[str, str], file: Any) -> None:
        super().__init__(labels)
        self.file = file


def unique_names(layers: Sequence[str]) -> list[str]:
    """The layers, or their labels, as names; one that occurs again gets a number."""
    names: list[str] = []
    for layer in layers:
        tried = itertools.chain([layer], (f"{layer} #{n}" for n in itertools.count(2)))
        names.append(next(name for name in tried if name not in names))
    return names


def _filling(out: Folder) -> AbstractContextManager[Path | None]:
    return nullcontext(None) if out is None else filling(_folder(out))


def _folder(out: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The name of a folder or URL. Raises InputError for what is none."""
    if not isinstance(out, str | os.PathLike):
        raise InputError(f"out: {out!r} is no folder: give a text or a path")
    return out
