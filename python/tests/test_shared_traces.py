"""Real traces through the indirection systems: every block read is what was last written.

Public ones are skipped where they are not; our own recordings are in the tree.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import smrlab

ROOT = Path(__file__).resolve().parents[2]

TRACES = (
    "msr-cambridge/prxy_0.first20000.csv.zst",
    "msr-cambridge/hm_0.first1000.csv.zst",
    "msr-cambridge/msr.cut.per_10k.rw_20_80.105.trace.zst:msr-cut",
    "umass-spc/Financial1_first948.spc.zst",
    "umass-spc/wsrch-small.trace.zst:mqsim",
    "cloudphysics/cloudPhysicsIO.vscsi.zst",
    "hp-hplajw/ajw.1week.srt.zst",
    "diskmon-desktop/mayun.txt.zst",
    "tencent-cbs/cloud_storage-sample.bz2:tencent",
    "systor17/systor17-traces-sample.csv.gz",
    "fiu-homes/home1sample.blkparse.zst",
)


# The beginning of each, recorded by traces/record.py.
OWN = ("sqlite", "postgres", "build")


def keeps_its_data(trace: str, limit: int | None = None) -> None:
    results = smrlab.compare(
        trace,
        drive="cassuto2010-307gb",
        layers=["disk-cache,band=10000blk", "s-block"],
        wrap="capacity",
        verify_media=True,
        limit=limit,
    )
    assert all(run.verify.ok and run.host.writes > 0 for run in results)


@pytest.mark.parametrize("trace", TRACES)
def test_no_real_trace_loses_data_on_the_indirection_systems(shared: Path, trace: str) -> None:
    keeps_its_data(str(shared / "traces" / trace))


@pytest.mark.parametrize("name", OWN)
def test_no_recording_of_our_own_loses_data_on_the_indirection_systems(name: str) -> None:
    keeps_its_data(str(ROOT / "traces" / f"{name}.parquet"), limit=20_000)
