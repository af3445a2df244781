"""The report: what a browser shows of made-up result files, and that the figures are those of the data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from browser import chromium, emulate
from fakes import fake_tables, write_compare, write_single
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.wait import WebDriverWait

from smrlab import compare, run
from smrlab.errors import InputError
from smrlab.payload import drives, floats, heatmap, histogram, merge_windows, timeline
from smrlab.plots.figures import shown_end
from smrlab.report import write_report
from smrlab.results import Results

CURVES = ("iops", "response", "distribution", "war", "load", "head")


@pytest.fixture(scope="module")
def browser() -> Iterator[WebDriver]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(write_compare(tmp_path_factory.mktemp("compare"), 3), svg=False)


def curves(browser: WebDriver, figure: str) -> int:
    return int(browser.execute_script(f"return document.querySelectorAll('#fig-{figure} path.curve').length"))


def console(browser: WebDriver) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]  # type: ignore[no-untyped-call]


def test_shows_every_figure_without_an_error(browser: WebDriver, compared: Path) -> None:
    browser.get(compared.as_uri())
    assert console(browser) == []
    assert [curves(browser, f) for f in CURVES] == [3] * len(CURVES)
    assert browser.execute_script("return document.querySelectorAll('#fig-causes rect').length") == 3 + 4 + 4
    assert browser.execute_script("return document.querySelector('#fig-heat image').getAttribute('href').length") > 500
    assert "static-1234" in browser.execute_script("return document.getElementById('spec').textContent")


def test_short_bursts_between_idle_hours_are_seen(browser: WebDriver, tmp_path: Path) -> None:
    # Five minutes of 60 hours are less than a pixel, and three windows.
    trace = "synth:phases,of=burst(3000,interarrival=100ms);idle(60h);burst(3000,interarrival=100ms)"
    run(trace, drive="he2014-example", layer="cmr", out=tmp_path / "r")
    browser.get(write_report(tmp_path / "r", svg=False).as_uri())
    dots = "return [...document.querySelectorAll('#fig-response circle.lone')].map((c) => +c.getAttribute('cx'))"
    seen = browser.execute_script(dots)
    assert len(seen) == 4
    width = browser.execute_script("return document.querySelector('#fig-response svg').viewBox.baseVal.width")
    assert max(seen[:2]) < 60
    assert min(seen[2:]) > width - 20


def test_a_click_in_the_legend_hides_a_run_everywhere(browser: WebDriver, compared: Path) -> None:
    browser.get(compared.as_uri())
    chips = browser.find_elements("css selector", "#legend .chip")
    assert [c.text for c in chips] == ["cmr", "rmw", "static-1234"]
    chips[1].click()
    assert chips[1].get_attribute("aria-pressed") == "false"
    assert [curves(browser, f) for f in CURVES] == [2] * len(CURVES)
    chips[1].click()
    assert curves(browser, "iops") == 3
    assert console(browser) == []


def test_dragging_zooms_all_figures_over_time_and_reset_undoes_it(browser: WebDriver, compared: Path) -> None:
    browser.get(compared.as_uri())
    labels = "return [...document.querySelectorAll('#fig-head svg.plot text')].map((t) => t.textContent).join()"
    before = browser.execute_script(labels)
    plot = browser.find_element("css selector", "#fig-iops svg.plot")
    ActionChains(browser).move_to_element_with_offset(plot, -100, 0).click_and_hold().move_by_offset(
        120, 0
    ).release().perform()
    assert browser.execute_script(labels) != before
    browser.find_element("id", "reset").click()
    assert browser.execute_script(labels) == before
    assert console(browser) == []


def test_hovering_says_the_values(browser: WebDriver, compared: Path) -> None:
    browser.get(compared.as_uri())
    plot = browser.find_element("css selector", "#fig-response svg.plot")
    ActionChains(browser).move_to_element(plot).perform()
    text = browser.find_element("id", "tip").text
    assert re.search(r"min", text)
    assert all(name in text for name in ("cmr", "rmw", "static-1234"))
    assert len(browser.find_elements("css selector", "#fig-head .cross")) == 1


def test_fits_a_phone_and_follows_the_dark_scheme(compared: Path) -> None:
    with chromium() as driver:
        emulate(driver, phone=True)
        driver.get(compared.as_uri())
        assert driver.execute_script("return document.documentElement.scrollWidth") == 390
        background = "return getComputedStyle(document.body).backgroundColor"
        light = driver.execute_script(background)
        image = driver.execute_script("return document.querySelector('#fig-heat image').getAttribute('href')")
        emulate(driver, dark=True)
        assert driver.execute_script(background) != light
        drawn = "return document.querySelector('#fig-heat image').getAttribute('href')"
        WebDriverWait(driver, 10).until(lambda d: d.execute_script(drawn) != image)
        assert console(driver) == []


@pytest.mark.parametrize("tables", [True, False])
def test_one_run_with_and_without_tables(browser: WebDriver, tmp_path: Path, tables: bool) -> None:
    browser.get(write_report(write_single(tmp_path, tables), svg=False).as_uri())
    assert console(browser) == []
    assert curves(browser, "iops") == int(tables)
    assert browser.execute_script("return document.querySelectorAll('#fig-summary tbody tr').length") == 1


def test_caches_that_were_full_at_the_start_are_said_to_be(browser: WebDriver, tmp_path: Path) -> None:
    """The same words as in the command's table, not a first cleaning after 0 s."""
    filled = run("synth:uniform,requests=200", drive="tiny", layer="rmw", wrap="capacity", prefill="100%")
    empty = run("synth:uniform,requests=200,write=0%", drive="tiny", layer="rmw", wrap="capacity")
    Results([filled, empty]).save(tmp_path)
    browser.get(write_report(tmp_path, svg=False).as_uri())
    rows = "return [...document.querySelectorAll('#fig-summary tbody tr')].map(r => r.textContent)"
    assert ["at the start" in row for row in browser.execute_script(rows)] == [True, False]


def test_what_became_of_drives_that_died_is_said(browser: WebDriver, tmp_path: Path) -> None:
    trace = "synth:uniform,requests=200,interarrival=10ms,span=1MiB"
    cells = "return [...document.querySelectorAll('#fig-summary tr')].map(r => [...r.cells].map(c => c.textContent))"
    for name, more, dead in (("rebuilt", ",replace=100ms", None), ("dead", "", "1")):
        run(trace, drive="tiny", array=f"raid5,disks=3,chunk=4KiB,fail=2@100ms{more}", out=tmp_path / name)
        page = write_report(tmp_path / name, svg=False)
        browser.get(page.as_uri())
        heads, row = browser.execute_script(cells)
        shown = dict(zip(heads, row, strict=True))
        assert ("rebuild time" in shown, shown.get("drives not whole at the end")) == (dead is None, dead)
        assert "array raid5,chunk=4KiB,disks=3,fail=2@100ms" in page.read_text()


def test_is_self_contained_and_names_cannot_break_out(browser: WebDriver, tmp_path: Path) -> None:
    write_single(tmp_path)
    doc = json.loads((tmp_path / "result.json").read_text())
    doc["name"] = "</script><img src=x onerror=document.title='broken'>"
    (tmp_path / "result.json").write_text(json.dumps(doc))
    path = write_report(tmp_path, svg=False)
    page = path.read_text()
    assert not re.search(r"(src|href)=[\"']?https?:", page)
    # Data, keys and the program: nothing of the user's closes one of them.
    assert page.count("</script>") == page.count("<script") == 3
    browser.get(path.as_uri())
    assert browser.title != "broken"
    assert console(browser) == []


def test_svg_figures_are_drawn_and_reproducible(tmp_path: Path) -> None:
    folder = write_compare(tmp_path, 2)
    # One of an earlier drawing, of which there is nothing now.
    (folder / "zones.svg").touch()
    write_report(folder)
    names = {p.stem for p in tmp_path.glob("*.svg")}
    assert names == {
        *("iops", "response", "response-max", "distribution", "write-amplification", "causes", "cleaning"),
        *("backlog", "heatmap", "head", "space"),
    }
    heat = (tmp_path / "heatmap.svg").read_text()
    assert "<!-- LBA (blocks of 512 B) -->" in heat
    assert "<!-- time (" in heat
    first = (tmp_path / "iops.svg").read_bytes()
    write_report(tmp_path)
    assert (tmp_path / "iops.svg").read_bytes() == first


@pytest.mark.filterwarnings("error")
def test_figures_of_long_names_and_of_no_time_at_all_have_room(tmp_path: Path) -> None:
    stack = "ssd-cache,write=64KiB / raid5,disks=3,chunk=4KiB / ssd-cache,write=64KiB / disk-cache,cache=10%"
    trace, drive = "synth:uniform,requests=100", "tiny"
    run(trace, drive=drive, wrap="capacity", stack=stack, out=tmp_path / "long")
    run(trace, drive=drive, mechanics="instant", out=tmp_path / "instant")
    compare(trace, drive=drive, layers=[stack, f"raid6,disks=4 / {stack}"], out=tmp_path / "two")
    for name in ("long", "instant", "two"):
        write_report(tmp_path / name)


def test_one_slow_run_does_not_squeeze_the_others() -> None:
    assert shown_end([10.0, 12.0, 900.0]) == 12.0
    assert shown_end([10.0, 30.0]) == 30.0
    assert shown_end([7.0]) == 7.0


def test_merged_windows_keep_counts_means_and_extremes() -> None:
    table = fake_tables(2, windows=3000)["timeline"]
    merged = timeline(table)
    assert merged is not None
    assert len(merged["t"]) == 1000
    frame = {name: table.column(name).to_pylist() for name in table.column_names}
    width = frame["end_s"][2] - frame["start_s"][0]
    assert merged["iops"][0] == pytest.approx(sum(frame["completions"][:3]) / width, rel=1e-4)
    weighted = sum(c * m for c, m in zip(frame["completions"][:3], frame["response_ms_mean"][:3], strict=True))
    assert merged["mean"][0] == pytest.approx(weighted / sum(frame["completions"][:3]), rel=1e-4)
    for i in range(100):
        most = max(ms for ms in frame["response_ms_max"][3 * i : 3 * i + 3] if ms is not None)
        assert merged["max"][i] == pytest.approx(most, rel=1e-4)
    assert merged["head_min"][0] == min(frame["head_track_min"][:3])
    written = sum(frame["media_blocks_written"][:3]) / sum(frame["write_blocks"][:3])
    assert merged["wa"][0] == pytest.approx(written, rel=1e-4)


def test_a_window_without_a_value_hides_no_other() -> None:
    """Of two windows that become one, one has no request: nothing is said of its times or of where the head was."""
    nothing = float("nan")
    rows = {
        "start_s": [0, 1, 2, 3], "end_s": [1, 2, 3, 4], "completions": [0, 2, 1, 0],
        "response_ms_max": [nothing, 5, 7, nothing], "response_ms_mean": [nothing, 4, 6, nothing],
        "head_track_min": [nothing, 3, 9, nothing], "head_track_max": [nothing, 30, 90, nothing],
    }  # fmt: skip
    merged = merge_windows({name: np.array(values, dtype=float) for name, values in rows.items()}, 2)
    assert {name: values.tolist() for name, values in merged.items()} == {
        "start_s": [0, 2], "end_s": [2, 4], "completions": [2, 1], "response_ms_max": [5, 7],
        "response_ms_mean": [4, 6], "head_track_min": [3, 9], "head_track_max": [30, 90],
    }  # fmt: skip


def test_what_drives_of_an_array_do_side_by_side_is_their_mean() -> None:
    table = pa.table(
        {"start_s": [0.0, 1.0], "end_s": [1.0, 2.0], "busy_share": [4.0, 1.0], "stalled_share": [1.0, 0.5]}
    )
    of_array = timeline(table, 4)
    assert of_array is not None
    assert (of_array["busy"], of_array["stalled"]) == ([1.0, 0.25], [1.0, 0.5])


def test_the_window_in_which_a_run_ends_is_no_fall() -> None:
    table = pa.table(
        {
            "start_s": [0.0, 10.0, 20.0],
            "end_s": [10.0, 20.0, 30.0],
            "completions": [100, 100, 60],
            "busy_share": [2.0, 2.0, 1.3],
            "stalled_share": [0.5, 0.5, 0.3],
        }
    )
    ended = timeline(table, 2, 26.0)
    assert ended is not None
    # Drives that worked on after the last completion were not busier than all the time.
    assert (ended["iops"], ended["busy"], ended["stalled"]) == ([10, 10, 10], [1, 1, 1], [0.5, 0.5, 0.5])
    short, whole, alone = timeline(table, 2, 20.5), timeline(table, 2, 30.0), timeline(table[:1], 2, 2.5)
    assert short is not None
    assert whole is not None
    assert alone is not None
    assert (short["iops"], short["busy"]) == ([10, 10, None], [1, 1, None])
    assert (whole["iops"], whole["busy"]) == ([10, 10, 6], [1, 1, 0.65])
    assert (alone["iops"], alone["t"]) == ([40], [5])
    each = drives(table.append_column("disk", pa.array([0, 0, 0])), 26.0)
    assert each is not None
    assert each[0]["busy"] == [1, 1, 1]


def test_zones_are_drawn_where_the_host_knows_some(browser: WebDriver, tmp_path: Path) -> None:
    layer = "zoned,zone=16KiB,conventional=0%,max_open=4"
    zoned = run("synth:zoned,writers=4,zone=16KiB,requests=2000", drive="tiny", layer=layer)
    plain = run("synth:uniform,requests=200", drive="tiny", layer="cmr", wrap="capacity")
    refused = run("synth:uniform,requests=200,align=4KiB", drive="tiny", layer=layer, wrap="capacity")
    Results([zoned, plain, refused]).save(tmp_path)
    browser.get(write_report(tmp_path).as_uri())
    assert curves(browser, "zones") == 2
    for word, lines in (("resets", 2), ("refused", 1)):
        browser.execute_script(
            f"[...document.querySelectorAll('#fig-zones button')].find(b => b.textContent == '{word}').click()"
        )
        assert curves(browser, "zones") == lines, word
    assert console(browser) == []
    assert (tmp_path / "zones.svg").exists()
    browser.get(write_report(write_single(tmp_path / "other"), svg=False).as_uri())
    assert browser.find_elements("css selector", "#fig-zones") == []


def test_zones_of_merged_windows_are_the_last_ones_and_resets_add_up() -> None:
    n = 2400
    table = pa.table(
        {
            "start_s": [float(i) for i in range(n)],
            "end_s": [float(i + 1) for i in range(n)],
            "open_zones": [float(i % 7) for i in range(n)],
            "closed_zones": pa.array([None] * n, pa.float64()),
            "zone_resets": [float(i % 2) for i in range(n)],
            "refused": [3] * n,
        }
    )
    merged = timeline(table)
    assert merged is not None
    assert (merged["zones_open"][:3], merged["resets"][:3], merged["refused"][:3]) == ([1, 3, 5], [0.5] * 3, [3] * 3)
    assert "zones_closed" not in merged
    none = timeline(
        table.set_column(4, "zone_resets", table["closed_zones"]).set_column(5, "refused", pa.array([0] * n))
    )
    assert none is not None
    assert not {"resets", "refused"} & set(none)


def test_each_drive_of_an_array_has_its_own_line() -> None:
    columns = {
        "start_s": [0.0, 1.0, 0.0],
        "end_s": [1.0, 2.0, 4.0],
        "busy_share": [1.0, 0.5, 0.25],
        "arrivals": [1, 1, 1],
    }
    table = pa.table({"disk": [0, 0, 1], **columns})
    assert drives(table) == [{"t": [0.5, 1.5], "busy": [1.0, 0.5]}, {"t": [2.0], "busy": [0.25]}]
    assert drives(None) is None


def test_distribution_reaches_one_at_the_last_edge() -> None:
    rows = [{"kind": "response", "lo_ms": lo, "hi_ms": lo * 2, "count": n} for lo, n in ((4.0, 1), (1.0, 2), (2.0, 1))]
    assert histogram(pa.Table.from_pylist(rows)) == {
        "response": {"x": [1, 2, 4, 8], "f": [0, 0.5, 0.75, 1], "tail": [1, 0.5, 0.25, 0], "n": [4]}
    }


def test_numbers_are_those_that_arrow_gives() -> None:
    parts = [[1.0, None, 3.0], [], [None] * 9 + [7.0], [2.0, 4.0]]
    chunks = [pa.array(part, pa.float64()) for part in parts]
    column = pa.chunked_array([chunks[0], chunks[1], chunks[2].slice(1, 9), chunks[3].slice(1)])
    for kind in (pa.float64(), pa.int32()):
        numbers = column.cast(kind)
        wanted = numbers.cast(pa.float64()).to_numpy(zero_copy_only=False)
        np.testing.assert_array_equal(floats(numbers), wanted)


def test_reads_and_writes_add_up_to_all_responses() -> None:
    rows = [
        {"kind": kind, "lo_ms": lo, "hi_ms": lo * 2, "count": 1}
        for kind, lo in (("read", 1.0), ("write", 4.0), ("write", 1.0), ("service", 9.0))
    ]
    found = histogram(pa.Table.from_pylist(rows))
    assert found is not None
    f, tail = [0, 0.6666667, 0.6666667, 1], [1, 0.33333, 0.33333, 0]
    assert found["response"] == {"x": [1, 2, 4, 8], "f": f, "tail": tail, "n": [3]}, "none took 2 to 4 ms"
    assert found["write_response"]["n"] == [2]


def test_heat_map_keeps_every_block_when_cells_merge() -> None:
    table = fake_tables(0)["heatmap"]
    grid = heatmap(table)
    assert grid is not None
    assert sum(grid["writes"]) == pytest.approx(np.sum(table.column("writes").to_numpy()), rel=1e-3)
    assert (grid["t0"], grid["t1"]) == (0, 600)


def test_heat_map_has_a_row_for_each_range_of_addresses() -> None:
    names = ("window", "start_s", "bin", "lba_lo", "lba_hi", "reads", "writes")
    rows = [
        dict(zip(names, row, strict=True))
        for row in ((0, 0, 0, 0, 10, 1, 2), (1, 10, 1, 10, 20, 5, 6), (2, 20, 1, 10, 20, 3, 4))
    ]
    grid = heatmap(pa.Table.from_pylist(rows))
    assert grid is not None
    assert (grid["rows"], grid["cols"]) == (2, 3)
    assert grid["reads"] == [1, 0, 0, 0, 5, 3]
    assert grid["writes"] == [2, 0, 0, 0, 6, 4]


def test_a_folder_without_results_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"result\.json: no such file"):
        write_report(tmp_path)
    (tmp_path / "result.json").write_text('{"schema": 9}')
    with pytest.raises(InputError, match="schema 9 is not 1"):
        write_report(tmp_path)
    for cut in ("{", '{"schema": 1, "runs": 5}', '{"schema": 1, "runs": [5]}', '{"schema": 1, "runs": []}'):
        (tmp_path / "result.json").write_text(cut)
        with pytest.raises(InputError, match="not a readable result"):
            write_report(tmp_path)


def test_a_few_windows_between_idle_hours_are_dots() -> None:
    import numpy as np

    from smrlab.plots.figures import isolated

    nan = float("nan")
    assert isolated(np.array([1.0, nan, 2.0, 3.0, nan, nan, 4.0])).tolist() == [True, *[False] * 5, True]
    long = np.full(1000, nan)
    long[0:5] = long[100:106] = long[999] = 1.0
    assert np.flatnonzero(isolated(long)).tolist() == [0, 1, 2, 3, 4, 999]
