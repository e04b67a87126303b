"""Keeps the lines that close a docstring apart on the reference pages.

Docstrings end with lines such as "Cost: ..." and "Paper: ..."; Markdown would run them into the
equation above them.
"""

import re

from griffe import Extension, Object

LABEL = re.compile(r"\n(?=(?:Cost|Paper|Source): )")


class SeparateLabels(Extension):
    def on_object(self, *, obj: Object, **_kwargs: object) -> None:
        if obj.docstring:
            obj.docstring.value = LABEL.sub("\n\n", obj.docstring.value)
