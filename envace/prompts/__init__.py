"""The prompts of this project as text files beside this one, with named placeholders."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template


class Prompt:
    """A text with placeholders written `$name`. `$$` is a dollar sign."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._template = Template(text)
        if not self._template.is_valid():
            raise ValueError(f"prompt {name}: a dollar sign that begins no placeholder; write it twice")
        self.placeholders = frozenset(self._template.get_identifiers())

    def substitute(self, **values: str) -> str:
        """The text with every placeholder filled. Raises ValueError unless `values` names exactly the placeholders.

        A dollar sign inside a value stays as it is.
        """
        if wrong := self.placeholders ^ set(values):
            raise ValueError(f"prompt {self.name}: missing or unknown values: {', '.join(sorted(wrong))}")
        return self._template.substitute(values)


@cache
def load_prompt(name: str) -> Prompt:
    """The prompt in `<name>.txt` of this package, without the line end at its end."""
    return Prompt(name, files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n"))
