"""A page of HTML on one clustering, which needs nothing but a browser.

Writing one needs Jinja2, which the extras ``plot`` and ``cli`` bring.
"""

from ihgmm.report.page import Page, write_report

__all__ = ["Page", "write_report"]
