"""The clock of judged programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import sys
from pathlib import Path
from migrate_agent.tools.programs.judge.clock import steady_clock
steady_clock(Path(sys.argv[1]), {later})
"""
PROGRAM = """
import datetime, time, pickle
from datetime import date, datetime as moment
print(time.time(), time.perf_counter(), time.strftime("%Y-%m-%d_%H-%M-%S"), time.strftime("%H:%M", time.gmtime(0)))
print(moment.now(), moment.now().strftime("%Y%m%d"), moment.utcnow(), date.today(), datetime.datetime.today(), time.ctime(), time.asctime())
print(moment.now(datetime.timezone.utc).isoformat(), time.strftime("%d", time.localtime()), time.gmtime().tm_year)
first = datetime.datetime(2020, 1, 2)
print(isinstance(moment.now(), datetime.datetime), isinstance(date.today(), datetime.date), isinstance(date.today(), datetime.datetime))
print(type(first).__name__, datetime.datetime.strptime("2020", "%Y").year)
print(pickle.loads(pickle.dumps(first)) == first, issubclass(datetime.datetime, datetime.date), (moment.now() - first).days)
"""


def _printed(folder: Path, later: bool) -> list[str]:
    program, runner = folder / "work" / "program.py", folder / "runner.py"
    program.parent.mkdir(exist_ok=True)
    program.write_text(PROGRAM)
    runner.write_text(HEAD.format(later=later) + "import runpy\nrunpy.run_path(str(Path(sys.argv[1]) / 'program.py'))\n")
    done = subprocess.run([sys.executable, runner, program.parent], capture_output=True, text=True, check=True, env={"TZ": "UTC"})
    return done.stdout.splitlines()


def test_two_runs_read_the_same_times(tmp_path: Path) -> None:
    """Whatever function of the standard library a program asks, and however it names its folders."""
    lines = _printed(tmp_path, False)
    assert lines == _printed(tmp_path, False)
    assert lines[0] == "1700000000.125 1700000000.125 2023-11-14_22-13-20 00:00"
    assert all("2023-11-14" in line or "20" in line for line in lines[1:3])
    assert lines[3:] == ["True True False", "datetime 2020", "True True 1412"]


def test_a_later_run_reads_later_times(tmp_path: Path) -> None:
    """What is named after the time of a run that went before is there already."""
    assert _printed(tmp_path, True)[0].split()[2] == "2023-11-15_22-13-20"


@pytest.mark.parametrize("question", ("datetime.datetime.now().year", "datetime.date.today().year", "time.localtime().tm_year"))
def test_libraries_keep_their_clock(tmp_path: Path, question: str) -> None:
    """Code outside of the program reads the time as it is."""
    runner = tmp_path / "runner.py"
    runner.write_text(HEAD.format(later=False) + f"import datetime, time\nprint({question})\n")
    done = subprocess.run([sys.executable, runner, tmp_path / "work"], capture_output=True, text=True, check=True)
    assert int(done.stdout) != 2023
