"""A fitted model as one page of HTML that needs nothing but a browser."""

from ihgmm.report.page import write_report

__all__ = ["write_report"]
