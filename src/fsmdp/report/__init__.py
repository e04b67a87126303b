"""Reports: one page to hand out, figures for papers, and a table."""

from fsmdp.report.page import Report, write_report

__all__ = ["Report", "write_report"]
