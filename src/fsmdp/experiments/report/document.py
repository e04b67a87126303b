"""HTML files that need no other: what the head of every page of ours is, and its basic style."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template

REPORT = "fsmdp.experiments.report"


def asset(package: str, name: str) -> str:
    """A file of a package's `assets`."""
    return (files(package) / "assets" / name).read_text("utf-8")


def document(title: str, body: str, styles: str, allowed: str) -> str:
    """A page of a title, markup and styles; `allowed` is what its content policy lets in."""
    return Template(asset(REPORT, "page.html")).substitute(
        title=escape(title),
        allowed=allowed,
        styles=asset(REPORT, "base.css") + styles,
        body=body,
    )
