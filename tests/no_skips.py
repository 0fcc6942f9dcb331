"""Loaded with `-p tests.no_skips` where every test must run: a skipped test fails, and says why it was skipped.

On a person's machine a test may skip (no browser, no database, no shared tables). In CI a skip would be a hole in what
a green run promises.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

Report = pytest.CollectReport | pytest.TestReport


def _refuse_skip(report: Report) -> Report:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: nothing may skip here. {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report
