"""Pages of HTML, on one clustering or two, that need nothing but a browser.

Writing one needs Jinja2, which the extras ``plot`` and ``cli`` bring.
"""

from ihgmm.report.page import Page, write_report

__all__ = ["Page", "write_report"]
