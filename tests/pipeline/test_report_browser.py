"""The report in a real browser: the page is whole, its script runs, and nothing is asked of any network."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from pygroups.pipeline.report.findings import Diagram
from pygroups.pipeline.report.render import page_of
from tests.patience import patience
from tests.pipeline.html_page import Element, read
from tests.pipeline.test_report import _event, findings, verdict, violation

pytestmark = pytest.mark.slow
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND"),
)
SECONDS = 60


@dataclass(frozen=True)
class Visit:
    """What a browser made of a page: the tree after its script ran, what it complained of, what the page asked for."""

    tree: Element
    complaints: list[str]
    requests: list[str]


MEASURE = """
for (const frame of document.querySelectorAll("iframe")) frame.onload = () => {
  const page = frame.contentDocument, width = page.documentElement.clientWidth;
  const SKIP = frame.title == "phone" ? ".scroll, .wide, .definitions" : ".definitions";
  const beyond = [...page.body.querySelectorAll("*")].filter(
    one => one.getBoundingClientRect().right > width + 1 && !one.closest(SKIP));
  const shown = name => [...page.querySelectorAll(name)].filter(one => one.getClientRects().length).length;
  const told = document.createElement("output");
  told.textContent = JSON.stringify([frame.title, page.documentElement.scrollWidth - width,
    beyond.slice(0, 3).map(one => one.outerHTML.slice(0, 80)), shown("nav"), shown("svg.figure"),
    [...page.querySelectorAll("svg.figure")].filter(one => one.clientWidth > width).length]);
  document.body.append(told);
};
"""
PHONE, PAPER = 360, 700
"""Widths in pixels: a small phone, and A4 between its margins."""


@dataclass(frozen=True)
class Fit:
    """A page at some width: by how much it is too wide, which elements stick out, and how many navigations and figures
    are shown; figures that are wider than the page can be moved on a phone, and are cut on paper."""

    excess: int
    beyond: list[str]
    navigations: int
    figures: int
    wide_figures: int


def fits(page: str, folder: Path) -> dict[str, Fit]:
    """The page on a phone and on paper.  Its policy is left out, so that its style for paper shows on a screen."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    frames = ""
    for name, width in (("phone", PHONE), ("paper", PAPER)):
        shown = page.replace("@media print", "@media all") if name == "paper" else page
        (folder / f"{name}.html").write_text(shown, encoding="utf-8")
        frames += f"<iframe title={name} src={name}.html width={width} height=800></iframe>"
    seen = visit(f"{frames}<script>{MEASURE}</script>", folder, "--allow-file-access-from-files")
    told = [json.loads(one.text) for one in seen.tree.all("output")]
    return {name: Fit(*numbers) for name, *numbers in told}


def visit(page: str, folder: Path, *options: str) -> Visit:
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        pytest.fail("this test needs a browser: apt-get install chromium")
    file, log = folder / "page.html", folder / "network.json"
    file.write_text(page, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [
        browser,
        *QUIET,
        *options,
        profile,
        "--enable-logging=stderr",
        f"--log-net-log={log}",
        "--dump-dom",
        file.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience(SECONDS), check=True)
    complaints = [line.partition(":CONSOLE")[2] for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return Visit(read(done.stdout), complaints, _asked_by_the_page(log))


def _asked_by_the_page(log: Path) -> list[str]:
    """The addresses that the page asked for; what the browser asks for itself has no origin."""
    details = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    return [one["url"] for one in details if "url" in one and one.get("initiator", "not an origin") != "not an origin"]


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Visit:
    broken = verdict("total-order", "broken", violations=[violation()], broken=1)
    return visit(page_of(findings(verdict("fifo"), broken)), tmp_path_factory.mktemp("browser"))


def test_the_browser_has_the_verdicts_and_the_timeline(visited: Visit) -> None:
    rows = visited.tree.one("table", "verdicts").all("td", "word")
    assert [row.text for row in rows] == ["✕ broken", "✓ held"]
    assert len(visited.tree.one("svg", "timeline").all("g", "lane")) == 2


def test_the_script_of_the_page_runs(visited: Visit) -> None:
    assert len(visited.tree.all("div", "tip")) == 1


def test_the_browser_complains_of_nothing_and_asks_for_nothing(visited: Visit) -> None:
    assert visited.complaints == []
    assert visited.requests == []


def test_a_planted_request_and_a_planted_error_are_seen(tmp_path: Path) -> None:
    seen = visit("<p><img src='http://127.0.0.1:9/x.png'><script>missing()</script></p>", tmp_path)
    assert seen.requests and set(seen.requests) == {"http://127.0.0.1:9/x.png"}
    assert any("missing is not defined" in complaint for complaint in seen.complaints)


def test_the_policy_of_the_page_stops_what_a_journal_could_plant(tmp_path: Path) -> None:
    planted = "<img src='http://127.0.0.1:9/x.png'><script>document.body.className = 'taken'</script></main>"
    seen = visit(page_of(findings(verdict("fifo"))).replace("</main>", planted), tmp_path)
    assert seen.requests == []
    assert "class" not in seen.tree.one("body").attributes
    assert len(seen.complaints) == 2


def test_the_page_fits_a_phone_and_paper_with_a_diagram_beside_each_violation(tmp_path: Path) -> None:
    witness = violation()
    events = [
        _event("send" if step % 4 == 0 else "deliver", "ABCD"[step % 4], step, first=step // 4) for step in range(36)
    ]
    broken = verdict("total-order", "broken", violations=[witness], broken=1)
    page = page_of(findings(verdict("fifo"), broken, diagrams=[Diagram(witness, events)]))
    seen = fits(page, tmp_path)
    assert {name: (one.excess, one.beyond) for name, one in seen.items()} == {"phone": (0, []), "paper": (0, [])}
    assert (seen["phone"].navigations, seen["paper"].navigations) == (1, 0)
    assert seen["phone"].figures == seen["paper"].figures == 4
    assert seen["phone"].wide_figures and not seen["paper"].wide_figures


def test_what_is_too_wide_is_seen(tmp_path: Path) -> None:
    wide = "<style>@media print { nav { display: none; } }</style><nav></nav><p style='width: 800px'>wide</p>"
    seen = fits(wide, tmp_path)
    assert all(one.excess > 50 and "wide" in one.beyond[0] for one in seen.values()) and len(seen) == 2
