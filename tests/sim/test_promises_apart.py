"""The promises are written twice, apart: what one set of checks reaches by imports the other does not."""

from __future__ import annotations

from pathlib import Path

from tests.house.rules import our_imports, within

ROOT = Path(__file__).parents[2]


def reached(root: Path, room: str) -> set[str]:
    """The modules of ours that those of `room` import, directly or over others."""
    imports: dict[str, set[str]] = {}
    for importer, _, _, target in our_imports(root):
        imports.setdefault(importer, set()).add(target)
    found: set[str] = set()
    pending = [module for module in imports if within(module, room)]
    while pending:
        module = pending.pop()
        if module not in found:
            found.add(module)
            targets = imports.get(module, set())
            pending += [other for other in imports if any(within(target, other) for target in targets if other)]
            found |= {target for target in targets if not any(within(target, other) for other in imports if other)}
    return {module for module in found if module}


def test_running_checks_and_rules_share_no_code() -> None:
    running, audited = reached(ROOT, "sim.promises"), reached(ROOT, "pipeline.promises")
    assert {"sim.promises.judge", "core.run"} <= running
    assert {"pipeline.promises.fifo", "pipeline.findings"} <= audited
    assert running & audited == set()


def test_what_they_share_over_a_third_module_is_found(tmp_path: Path) -> None:
    package = tmp_path / "src" / "pygroups"
    for name, text in {
        "sim/promises/order.py": "from pygroups.core import run",
        "pipeline/promises/order.py": "from pygroups.pipeline.tables import Tables",
        "pipeline/tables.py": "from pygroups.core.run import Run",
        "core/run.py": "from pygroups.core import address",
        "core/address.py": "",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    shared = reached(tmp_path, "sim.promises") & reached(tmp_path, "pipeline.promises")
    assert "core.run" in shared
