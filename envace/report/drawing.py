"""How the report's pictures look, and how they become PNG bytes: the same figures give the same bytes."""

from __future__ import annotations

import io
from typing import Any

# Okabe and Ito's colours, which colour-blind readers can tell apart
BLUE, ORANGE, GREEN, RED, SKY, YELLOW, PURPLE, GREY = (
    *("#0072b2", "#e69f00", "#009e73", "#d55e00"),
    *("#56b4e9", "#f0e442", "#cc79a7", "#7f7f7f"),
)
INK, SOFT = "#1d2330", "#5b6475"
CYCLE = (BLUE, RED, ORANGE, PURPLE, SKY, YELLOW, GREEN, GREY)
_WIDTH = 9.2
_STYLE: Any = {
    "font.size": 10.5,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#b9c0cc",
    "axes.labelcolor": SOFT,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "grid.color": "#e6e9ef",
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.linewidth": 2,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
}


def figure(columns: int = 1, height: float = 3.7, **options: Any) -> tuple[Any, Any]:
    """A figure and its panels, in one row; `options` as of `pyplot.subplots`."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcdefaults()  # a user's own settings would change the bytes
    pyplot.rcParams.update(_STYLE)
    return pyplot.subplots(1, columns, figsize=(_WIDTH, height), layout="constrained", **options)


def by_step(axes: Any, ylabel: str, top: float | None = 1) -> None:
    """Label a panel whose x axis is the training step, with whole steps alone; `top` None leaves the upper end open."""
    from matplotlib.ticker import MaxNLocator

    axes.set(xlabel="training step", ylabel=ylabel, ylim=(0, top))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.grid(axis="x", visible=False)


def legend_beside(axes: Any) -> None:
    """A legend right of the panel, in the order in which things are stacked."""
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0))


def png(drawn: Any) -> bytes:
    """The figure's bytes, without dates and version strings. It is closed."""
    from matplotlib import pyplot

    buffer = io.BytesIO()
    drawn.savefig(buffer, format="png", dpi=144, metadata={"Software": None})
    pyplot.close(drawn)
    return buffer.getvalue()
