"""What runs and commands say beside their tables, by documents made by hand; what options of devices mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import Invoke

from smrlab.cli import finish, run
from smrlab.errors import InputError
from smrlab.faults import faults, nanoseconds
from smrlab.listening import address, iscsi


def test_a_run_whose_caches_were_full_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    at_once = {"caches_full_at_start": True}
    finish.tell_full([("a", {**at_once, "cache": {"cached_blocks": 8}}), ("b", {}), ("in place", at_once)])
    said = " ".join(capsys.readouterr().err.split())
    assert "The caches of a were full at the start" in said
    assert "fills in place, so cleaning began with the first requests" in said
    assert "To see it begin: --prefill 0%." in said
    finish.tell_full([("b", {})])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("cache", [{}, {"cached_blocks": 8}])
def test_a_run_from_a_state_is_not_told_to_leave_out_a_prefill_alone(
    capsys: pytest.CaptureFixture[str], cache: dict[str, int]
) -> None:
    finish.tell_full([("a", {"caches_full_at_start": True, "cache": cache, "spec": {"from_state": "aged"}})])
    assert "--prefill 0% without --from-state" in " ".join(capsys.readouterr().err.split())


def test_a_run_that_wrote_to_conventional_zones_alone_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def said(writes: int = 5, **zones: int) -> bool:
        doc = {"spec": {"array": "single"}, "host": {"writes": writes}, "refusals": {"count": 2}}
        finish.tell_conventional([("z", {**doc, "cache": {"free_zones": 9, "open_zones": 0, **zones}})])
        err = capsys.readouterr().err
        return "All writes to z fell into the conventional zones" in " ".join(err.split())

    assert said()
    assert not said(writes=2)
    assert not any(said(**{key: 1}) for key in ("open_zones", "used_zones_full", "used_zones_closed", "zone_resets"))
    finish.tell_conventional([("c", {"host": {"writes": 5}}), ("d", {"host": {"writes": 5}, "cache": {"hits": 0}})])
    assert capsys.readouterr().err == ""


def test_a_layer_that_reads_the_rest_of_units_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def said(fill: float, layer: str) -> str:
        doc = {"spec": {"layer": layer}, "busy_s": 8.0, "time_by_cause_s": {"host": 8.0 - fill, "fill": fill}}
        finish.tell_parts_of_units([("a", doc), ("b", {"spec": {"layer": "cmr"}, "busy_s": 8.0})])
        return " ".join(capsys.readouterr().err.split())

    assert "read the rest of them first: a 25 % of its busy time" in said(2.0, "log,policy=greedy")
    assert said(0.8, "log") == ""
    assert said(2.0, "segment") == ""
    finish.tell_parts_of_units([("idle", {"spec": {"layer": "log"}})])
    assert capsys.readouterr().err == ""


def test_a_trace_where_a_specification_belongs_is_told_its_option(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1\xff\xfe")
    with pytest.raises(InputError, match=f"is no specification.*--trace {tmp_path}/t.parquet"):
        run._from_file(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"none.toml: No such file or directory"):
        run._from_file(tmp_path / "none.toml")
    # Each of several faults names the file.
    (tmp_path / "two.toml").write_text("seed = -1\nlimit = 'x'\n")
    with pytest.raises(InputError) as fault:
        run._from_file(tmp_path / "two.toml")
    lines = str(fault.value).splitlines()
    begins = [f"{tmp_path}/two.toml: {field}: " for field in ("limit", "seed")]
    assert all(line.startswith(begin) for line, begin in zip(lines, begins, strict=True)), lines


@pytest.mark.parametrize(
    ("load", "more", "can", "said"),
    [
        (1.0, {}, "", ""),
        (1.1, {}, "cannot", "--scale-time 1.6"),
        (1.1, {"overload": {"suggested_scale_time": 3}}, "cannot", "--scale-time 3"),
        (0.97, {"overload": {"suggested_scale_time": 2.5}}, "can hardly", "--scale-time 2.5"),
    ],
)
def test_a_drive_that_cannot_keep_up_gets_a_remedy(
    capsys: pytest.CaptureFixture[str], load: float, more: dict[str, Any], can: str, said: str
) -> None:
    finish.warn_overload([("a", {"offered_load": load, **more})])
    err = " ".join(capsys.readouterr().err.split())
    assert (said in err and f"These {can} keep up" in err) if said else not err


def test_too_few_fresh_drives_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    def said(array: str, **counts: int) -> str:
        finish.tell_spares([("a", {"spec": {"array": array}, "array": {"deaths": 2, "disks_dead": 1, **counts}})])
        return " ".join(capsys.readouterr().err.split())

    two = "raid6,disks=6,replace=2s,spares=1,write=cheapest"
    assert said(two) == "a: 2 drives died; spares=1 says how many fresh ones there are."
    assert said(f"{two} / mirror,spares=9").endswith("takes one for each drive of its own.")
    assert said(two, disks_dead=0) == ""
    assert said(two, deaths=1) == ""
    assert said("raid6,spares=1") == "", "nobody asked for fresh ones"
    assert said("single") == ""


def test_a_drive_managed_drive_without_its_layer_is_said_so(smrlab: Invoke) -> None:
    trace = ("--trace", "synth:uniform,requests=3")
    managed = "seagate-st5000as0011,capacity=60GB"
    said = smrlab("run", *trace, "--drive", managed).err
    assert "runs as a conventional one (cmr)" in said
    assert "--layer persistent-cache." in said
    for given in (("--layer", "cmr"), ("--stack", "cmr"), ("--layer", "persistent-cache")):
        assert "conventional one" not in smrlab("run", *trace, "--drive", managed, *given).err
    assert "conventional one" not in smrlab("run", *trace, "--drive", "tiny").err


def test_an_array_that_falls_behind_with_idle_drives_gets_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    def said(**other: Any) -> str:
        # Half of 100 s of arrivals two drives were busy, each; the last request was answered after 150 s.
        doc: dict[str, Any] = {"offered_load": 0.5, "busy_s": 100.0, "members": [{}, {}], "makespan_s": 150.0}
        doc |= {"requests": 2000, "response_ms": {"mean": 25_000.0}, **other}
        finish.warn_overload([("a", doc)])
        return " ".join(capsys.readouterr().err.split())

    told = said()
    assert "a falls behind" in told
    assert "25 s in the mean" in told
    assert "--scale-time 2.1," in told
    assert said(response_ms={"mean": 7000.0}) == ""
    assert said(makespan_s=115.0) == ""
    assert said(requests=900) == ""
    assert said(members=None) == ""
    assert "falls behind" not in said(offered_load=1.5)


def test_groups_of_dvs_that_are_nearly_full_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    def said(moved: int, array: str = "dvs,chunk=64KiB,overprovision=20%,segment=50", chunks: int = 0) -> str:
        collected = {"by_kind": {"group-collection": {"relocated_blocks": moved}}}
        doc = {"spec": {"array": array}, "host": {"blocks_written": 1000}, "cleaning": collected}
        doc["media"] = {"by_cause": {"host": {"blocks_written": chunks}}}
        finish.warn_crowded([("a", doc)])
        return " ".join(capsys.readouterr().err.split())

    told = said(4500)
    assert "for each block that was written for the host, collections moved 4.5" in told
    assert "set overprovision= above 20%" in told
    assert said(1000) == ""
    # Requests of 4 KiB write whole chunks.
    assert said(4500, chunks=16_000) == ""
    assert said(4500, "raid5,disks=5") == ""


def test_what_inject_asks_for() -> None:
    asked = faults("4096+8", "1.5ms", 3, 4, clear=True)
    assert asked == {"clear": True, "unreadable": [4096, 4104], "slow_ns": 1_500_000, "error_at": 3, "cut_at": 4}
    # Without a length it is one block; 0 takes back what was asked for before.
    assert faults("7", None, 0, None, clear=False) == {"clear": False, "unreadable": [7, 8], "error_at": 0}
    assert [nanoseconds("--slow", t) for t in ("20us", "3ms", "2s")] == [20_000, 3_000_000, 2_000_000_000]
    with pytest.raises(InputError, match="nothing to inject"):
        faults(None, None, None, None, clear=False)
    for wrong in ("x", "7+", "7-8"):
        with pytest.raises(InputError, match=r"FIRST\+BLOCKS"):
            faults(wrong, None, None, None, clear=False)
    with pytest.raises(InputError, match="a time such as 5ms"):
        nanoseconds("--stall", "5")
    assert nanoseconds("--stall", "9000000000s") == 9 * 10**18
    with pytest.raises(InputError, match="--stall 10000000000s: longer than the clock goes, 292 years"):
        nanoseconds("--stall", "10000000000s")


def test_where_a_device_listens() -> None:
    assert address("tcp:127.0.0.1:10809") == ("127.0.0.1", 10809)
    assert address("tcp:[::1]:65535") == ("[::1]", 65535)
    assert (address(None), address("unix:/tmp/s")) == (None, None)
    assert (address("iscsi:[::1]:3260"), iscsi("iscsi:[::1]:3260")) == (None, "[::1]:3260")
    for wrong in ("tcp:localhost:0", "iscsi:localhost:0", "tcp:localhost:65536", "tcp:localhost", "unix:", "udp:a:1"):
        with pytest.raises(InputError, match="write unix:PATH, tcp:HOST:PORT"):
            address(wrong)
