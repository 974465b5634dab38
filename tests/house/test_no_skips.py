"""Under CI a skip is a failure that names the test and its reason; elsewhere it stays a skip."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SKIPPED = {
    "test_call": "import pytest\ndef test_a():\n    pytest.skip('no java here')",
    "test_mark": "import pytest\n@pytest.mark.skip(reason='no java here')\ndef test_a():\n    pass",
    "test_module": "import pytest\npytest.skip('no java here', allow_module_level=True)",
    "test_import": "import pytest\npytest.importorskip('no_java_here', reason='no java here')",
}
KNOWN = "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_a():\n    assert False"


@pytest.fixture
def skipping(pytester: pytest.Pytester) -> pytest.Pytester:
    """A tree with our conftest, a test for each way to skip, and one that is expected to fail."""
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(**SKIPPED, test_known=KNOWN)
    return pytester


def test_in_ci_a_skip_fails_by_name(skipping: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    result = skipping.runpytest_inprocess("--continue-on-collection-errors")
    result.assert_outcomes(failed=1, errors=3, xfailed=1)
    for name in SKIPPED:
        result.stdout.fnmatch_lines([f"*in CI nothing skips, and {name}.py* did: *no java here*"])


def test_elsewhere_a_skip_is_a_skip(skipping: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    skipping.runpytest_inprocess().assert_outcomes(skipped=4, xfailed=1)
