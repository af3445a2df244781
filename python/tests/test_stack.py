"""Stacks on the command line: short for an array and a layer."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Invoke

from smrlab.cli.device import _unstacked
from smrlab.errors import InputError
from smrlab.results import title_of


def test_a_device_is_made_of_what_its_stack_names() -> None:
    stack = "ssd-cache,write=1GiB / raid5,disks=5 / s-block"
    assert _unstacked(stack, None, None) == ("raid5,disks=5,ssd_write=1GiB", "s-block")
    assert _unstacked("striped,disks=2", None, "cmr") == ("striped,disks=2", "cmr")
    assert _unstacked(None, "raid5", "cmr") == ("raid5", "cmr")
    each = "raid5 / ssd-cache,write=1GiB / cmr"
    assert _unstacked(each, None, None) == ("raid5 / spanning,disks=1,ssd_write=1GiB", "cmr")


def test_what_a_stack_says_is_not_said_twice() -> None:
    with pytest.raises(InputError, match="leave --array and --layer out"):
        _unstacked("raid5 / cmr", "raid5", None)
    with pytest.raises(InputError, match="leave --array and --layer out"):
        _unstacked("raid5 / cmr", None, "rmw")
    with pytest.raises(InputError, match="stands below "):
        _unstacked("cmr / raid5", None, None)


def test_a_state_is_taken_up_by_a_stack_that_names_its_array(smrlab: Invoke, tmp_path: Path) -> None:
    run = ["run", "--drive", "tiny", "--trace", "synth:uniform,requests=200,size=1KiB", "--wrap", "capacity", "--json"]
    state = tmp_path / "state"
    assert smrlab(*run, "--stack", "striped,disks=2 / mirror / cmr", "--save-state", state).status == 0
    after = smrlab(*run, "--stack", "striped,disks=2,fail=1.0@1ms / mirror / cmr", "--from-state", state)
    assert after.status == 0, after.err
    doc = after.json()
    assert doc["array"]["dead"] == [2]
    assert [member["path"] for member in doc["members"]] == ["0.0", "0.1", "1.0", "1.1"]


def test_a_run_is_called_what_it_ran_on() -> None:
    stack = "striped,disks=2 / mirror / cmr"
    assert title_of({"stack": stack, "layer": "cmr"}) == stack
    assert title_of({"stack": stack.split(" / "), "layer": "cmr"}) == stack
    assert title_of({"array": "raid5,disks=5", "layer": "log"}) == "raid5,disks=5 / log"
    assert [title_of({"layer": "log"}), title_of({})] == ["log", "cmr"]
