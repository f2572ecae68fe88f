"""What a worker of pytest-xdist tells of its tests: the plugin that `conftest.py` gives to workers.

Comes in: the reports of a test's set-up, call and end. Goes out, to the process that prints: what came of the call, and
of the others that they failed. Those that passed are never shown, and to send them took as long as small tests do.
Whoever asks for more than dots (`--durations`, `--junitxml`) gets all.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


class Brief:
    @pytest.hookimpl
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True
