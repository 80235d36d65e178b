"""B10: what the flow costs on top of DVC when nothing has changed, with Prefect's server already up.

Both sides find that all stages of the same project are up to date: `envace run` (one Prefect task a stage, DVC asked
once for all of them) and one bare `dvc repro`. They take turns in one session. Exact counters gate the figures: no
stage may run, and dvc.lock must keep its bytes. The server is that of `envace ui`, started before and not timed.

The share is that of a whole tiny run. Where all stages have to run first, that run is timed and is the whole; of a
project that is up to date already, say with --run-s how long its run took (`envace run` prints it).

Run in a project's root, nothing else running: python benchmarks/bench_pipeline_overhead.py
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median

GOAL_S, GOAL_SHARE = 10.0, 0.10
ENVACE = [sys.executable, "-c", "from flows.cli import main; main()"]
_UP_TIMEOUT_S = 300.0


def main() -> None:
    options = arguments()
    whole_s, ran = timed([*ENVACE, "run"])
    stages = re.search(r"(\d+) stages run", ran)
    whole_s = whole_s if stages and int(stages[1]) >= 8 else options.run_s
    lock = Path("dvc.lock").read_bytes()
    pages = start_pages()
    try:
        flows, bares = [], []
        for _ in range(options.tries):
            seconds, said = timed([*ENVACE, "run"])
            assert "0 stages run" in said, "a stage ran: this is no run in which nothing changed"
            flows.append(seconds)
            seconds, said = timed([sys.executable, "-m", "dvc", "repro"])
            assert "Running stage" not in said, "a stage ran: this is no run in which nothing changed"
            bares.append(seconds)
    finally:
        pages.send_signal(signal.SIGINT)
        pages.wait()
    assert Path("dvc.lock").read_bytes() == lock, "dvc.lock has changed"
    flow, bare = median(flows), median(bares)
    print(f"nothing changed, 0 stages run, dvc.lock the same bytes; medians of {options.tries}")
    print(f"{'flow s':>10}{'bare dvc repro s':>20}{'ratio':>8}")
    print(f"{flow:10.1f}{bare:20.1f}{flow / bare:8.1f}")
    print(f"flow + DVC: {flow:.1f} s (goal <= {GOAL_S:.0f} s)")
    if whole_s is None:
        print("share of a tiny run: unknown, since the project was up to date; give --run-s")
    else:
        print(
            f"share of a tiny run of {whole_s:.0f} s: {100 * flow / whole_s:.1f} % (goal <= {100 * GOAL_SHARE:.0f} %)"
        )


def timed(command: list[str]) -> tuple[float, str]:
    """Seconds and output of a command. Raises SystemExit with its output where it fails."""
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}")
    return time.monotonic() - began, done.stdout


def start_pages() -> subprocess.Popen[str]:
    """`envace ui`, once it has printed both addresses."""
    command = [*ENVACE, "ui"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    too_late = threading.Timer(_UP_TIMEOUT_S, process.kill)
    too_late.start()
    for line in process.stdout:
        if line.startswith("Prefect "):
            too_late.cancel()
            threading.Thread(target=process.stdout.read, daemon=True).start()  # else it would wait for a reader
            return process
    raise SystemExit("`envace ui` ended, or did not come up in time")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=3, help="runs of each side, taking turns")
    parser.add_argument("--run-s", type=float, default=None, help="seconds of a whole tiny run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
