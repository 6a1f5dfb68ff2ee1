"""A fitted model as one page of HTML that needs nothing but a browser.

Writing one needs Jinja2, which the extras ``plot`` and ``cli`` bring.
"""

from ihgmm.report.page import write_report

__all__ = ["write_report"]
