"""Stacks on the command line: short for an array and a layer."""

import pytest

from smrlab.cli.device import _unstacked
from smrlab.errors import InputError


def test_a_device_is_made_of_what_its_stack_names() -> None:
    stack = "ssd-cache,write=1GiB / raid5,disks=5 / s-block"
    assert _unstacked(stack, None, None) == ("raid5,disks=5,ssd_write=1GiB", "s-block")
    assert _unstacked("striped,disks=2", None, "cmr") == ("striped,disks=2", "cmr")
    assert _unstacked(None, "raid5", "cmr") == ("raid5", "cmr")


def test_what_a_stack_says_is_not_said_twice() -> None:
    with pytest.raises(InputError, match="leave --array and --layer out"):
        _unstacked("raid5 / cmr", "raid5", None)
    with pytest.raises(InputError, match="leave --array and --layer out"):
        _unstacked("raid5 / cmr", None, "rmw")
    with pytest.raises(InputError, match="a filter comes before the array"):
        _unstacked("raid5 / ssd-cache,write=1GiB / cmr", None, None)
