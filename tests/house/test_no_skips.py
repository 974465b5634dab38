"""Under CI a skip is a failure that names the test and its reason; elsewhere it stays a skip."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SKIPPED = {
    "a call in the test": "import pytest\ndef test_a():\n    pytest.skip('no java here')",
    "a mark": "import pytest\n@pytest.mark.skip(reason='no java here')\ndef test_a():\n    pass",
    "a whole module": "import pytest\npytest.skip('no java here', allow_module_level=True)\ndef test_a():\n    pass",
    "a missing module": "import pytest\nno = pytest.importorskip('no_java_here', reason='no java here')",
}


@pytest.fixture(params=SKIPPED.values(), ids=SKIPPED.keys())
def skipping(request: pytest.FixtureRequest, pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(request.param)
    return pytester


def test_in_ci_a_skip_fails_by_name(skipping: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    result = skipping.runpytest_inprocess()
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*in CI nothing skips, and test_in_ci_a_skip*no java here*"])
    result.stdout.no_fnmatch_line("*1 skipped*")


def test_elsewhere_a_skip_is_a_skip(skipping: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    result = skipping.runpytest_inprocess()
    result.assert_outcomes(skipped=1)


def test_an_expected_failure_is_no_skip(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile("import pytest\n@pytest.mark.xfail(reason='known')\ndef test_a():\n    assert False")
    pytester.runpytest_inprocess().assert_outcomes(xfailed=1)
