"""Charts: axes are readable; counts are whole numbers, and a single instant has a short axis."""

import re

from pipeline.report.charts import Line, lines_over_time, stacked_bars

NOON_MS = 1_780_000_000_000 // 86_400_000 * 86_400_000 + 43_200_000


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_what_is_counted_has_whole_ticks() -> None:
    said = texts(stacked_bars([("billing", {"joined": 1.0})], ["joined"], "rebalances"))

    assert [text for text in said if re.fullmatch(r"[\d.]+[km]?", text)] == ["0", "1"]
    assert {"billing", "joined", "rebalances"} <= set(said)


def test_shares_end_at_a_hundred() -> None:
    said = texts(stacked_bars([("billing", {"OK": 60.0, "ERR": 40.0})], ["OK", "ERR"], "%"))

    assert [text for text in said if text.isdecimal()] == ["0", "20", "40", "60", "80", "100"]


def test_one_instant_has_its_hours_around_it_and_a_line_of_zeros_an_axis() -> None:
    said = texts(lines_over_time([Line("one", [(NOON_MS, 0.0)])], "commits"))

    assert "12:00" in said
    assert "UTC" in said
    assert {"0", "1"} <= set(said)


def test_large_figures_are_short_and_small_ones_plain() -> None:
    def axis(most: float) -> set[str]:
        return set(texts(lines_over_time([Line("l", [(NOON_MS, 0.0), (NOON_MS + 1, most)])], "")))

    assert {"1M", "2M"} <= axis(2e6)
    assert {"0.2", "0.8"} <= axis(1.0)
