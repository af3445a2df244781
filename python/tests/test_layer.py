"""Layers written in Python: in the same engine, on the same media."""

from __future__ import annotations

from pathlib import Path

import pytest

import smrlab
from smrlab import TranslationLayer, _core
from smrlab.layer import load

EXAMPLE = Path(__file__).parents[2] / "examples" / "greedy_log.py"
LOAD = "synth:uniform,requests=3000,size=4KiB,write=70%,interarrival=20ms"


class Plain(TranslationLayer):
    """Identity mapping over the whole medium: destroys what follows each write, where the medium shingles."""

    locates = True

    def host_blocks(self) -> int:
        return self.medium.blocks

    def read(self, lba: int, blocks: int, plan: _core.Plan) -> None:
        plan.read(lba, blocks)

    def write(self, lba: int, blocks: int, plan: _core.Plan) -> None:
        plan.write(lba, blocks)

    def locate(self, write: bool, lba: int, blocks: int) -> int:
        return lba


def test_the_example_has_forty_lines_and_keeps_its_data() -> None:
    code = [line for line in EXAMPLE.read_text().splitlines() if line.strip()]
    assert len(code) <= 40
    result = smrlab.run(LOAD, drive="tiny", layer=f"{EXAMPLE}:GreedyLog", wrap="capacity", verify_media=True)
    assert result.cleaning.count > 0
    assert result["media"].by_cause.clean.blocks_written > 0


def test_own_layers_compare_with_built_in_ones_on_the_same_requests() -> None:
    layers: list[str | type[TranslationLayer]] = [f"{EXAMPLE}:GreedyLog", "static-1234", Plain]
    results = smrlab.compare(LOAD, drive="tiny", layers=layers, wrap="capacity", mechanics="instant")
    digests = {result.provenance.trace_digest for result in results}
    assert len(list(results)) == 3
    assert len(digests) == 1


def test_a_layer_that_breaks_the_shingling_rule_is_found_out() -> None:
    with pytest.raises(smrlab.CheckFailed, match="destroyed"):
        smrlab.run(LOAD, drive="tiny", layer=Plain, wrap="capacity", verify_media=True)


def test_identity_takes_the_same_time_as_the_built_in_layer_under_each_scheduler() -> None:
    for scheduler in ("fcfs", "sptf,depth=8"):
        own = smrlab.run(LOAD, drive="tiny", layer=Plain, wrap="capacity", scheduler=scheduler)
        raw = smrlab.run(LOAD, drive="tiny", layer="raw", wrap="capacity", scheduler=scheduler)
        assert dict(own.response_ms) == dict(raw.response_ms)


def test_without_locate_schedulers_that_reorder_are_refused() -> None:
    layer = type("Blind", (Plain,), {"locates": False})
    with pytest.raises(smrlab.InputError, match="fcfs"):
        smrlab.run(LOAD, drive="tiny", layer=layer, wrap="capacity", scheduler="sptf")


def test_an_exception_in_a_layer_stops_the_run_and_arrives_as_it_was() -> None:
    class Faulty(Plain):
        def write(self, lba: int, blocks: int, plan: _core.Plan) -> None:
            raise ZeroDivisionError("my own fault")

    with pytest.raises(ZeroDivisionError, match="my own fault"):
        smrlab.run(LOAD, drive="tiny", layer=Faulty, wrap="capacity")


def test_operations_beyond_the_medium_are_refused() -> None:
    class Beyond(Plain):
        def write(self, lba: int, blocks: int, plan: _core.Plan) -> None:
            plan.write(self.medium.blocks, blocks)

    with pytest.raises(ValueError, match="not on the medium"):
        smrlab.run(LOAD, drive="tiny", layer=Beyond, wrap="capacity")


@pytest.mark.parametrize("method", ["read", "write", "zero"])
def test_what_lies_beyond_the_request_is_refused(method: str) -> None:
    class Beyond(Plain):
        def read(self, lba: int, blocks: int, plan: _core.Plan) -> None:
            if method == "zero":
                plan.zero(blocks, 1)
            plan.read(lba, blocks, int(method == "read"))

        def write(self, lba: int, blocks: int, plan: _core.Plan) -> None:
            plan.write(lba, blocks, int(method == "write"))

    with pytest.raises(ValueError, match="8 blocks at 1: the request has 8"):
        smrlab.run(LOAD, drive="tiny", layer=Beyond, wrap="capacity", verify_media=True)


def test_a_layer_gives_the_host_no_more_than_the_drive_counts() -> None:
    class Many(Plain):
        def host_blocks(self) -> int:
            return self.medium.blocks + 1

    space = smrlab.run(LOAD, drive="tiny", layer=Many, wrap="capacity").doc["space"]
    assert (space["host_blocks"], space["efficiency"]) == (2880, 1.0)


def test_naming_a_class_that_is_not_there_says_which_there_are() -> None:
    with pytest.raises(smrlab.InputError, match=r"it has: GreedyLog$"):
        load(f"{EXAMPLE}:GreadyLog")
    with pytest.raises(smrlab.InputError, match=r"which class of it\? .*greedy_log.py:CLASS; it has: GreedyLog$"):
        load(str(EXAMPLE))
    with pytest.raises(smrlab.InputError, match=r"has no parameters; say .*greedy_log.py:GreedyLog$"):
        load(f"{EXAMPLE}:GreedyLog,band=3")
    with pytest.raises(smrlab.InputError, match="there is no file"):
        load("missing.py:Layer")
    assert load("rmw,band=4") is None
