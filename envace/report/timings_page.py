"""A small page of its own for where the time went: durations differ from run to run, and the report may not."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from envace.files import write_text
from envace.report.page import render
from envace.report.pictures import TIME_PARTS, time_split


def write_timings_page(timings: dict[str, Any], target: Path) -> None:
    """Write the page, which needs nothing beside it. `timings` as `read_timings` gives them."""
    picture = base64.b64encode(time_split(timings)).decode("ascii")
    text = render("timings.html.jinja", timings=timings, parts=list(TIME_PARTS), picture=picture)
    write_text(target, text)
