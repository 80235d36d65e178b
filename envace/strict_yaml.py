"""Plain YAML: what YAML's own parser lets through in silence (aliases, repeated keys, endless nesting) is refused."""

from __future__ import annotations

from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

MAX_BYTES = 1 << 16
MAX_DEPTH = 50
"""Deepest nesting that is accepted, and the largest text. A file of parameters has four levels and a few kilobytes."""


class NotPlainYamlError(ValueError):
    """The text is no YAML, or more than plain YAML. Says where."""


def parse_plain_yaml(text: str) -> Any:
    """Decode YAML text of one document. Raises NotPlainYamlError with the reason in words.

    Aliases are refused, since a few of them unfold into more than a machine holds.
    """
    size = len(text.encode("utf-8"))
    if size > MAX_BYTES:
        raise NotPlainYamlError(f"{size} bytes are more than {MAX_BYTES}, so this is no file of parameters")
    try:
        return yaml.load(text, Loader=_PlainLoader)
    except yaml.YAMLError as error:
        raise NotPlainYamlError(" ".join(str(error).split())) from None
    except ValueError as error:  # for example a day that is in no calendar
        raise NotPlainYamlError(f"a value cannot be read ({error})") from None


class _PlainLoader(yaml.SafeLoader):
    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        mark = self.peek_event().start_mark
        if self.check_event(yaml.AliasEvent):
            raise ComposerError(None, None, "aliases are not accepted, write the value itself", mark)
        if self._depth > MAX_DEPTH:
            raise ComposerError(None, None, f"nested deeper than {MAX_DEPTH} levels", mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                reason = f"the key {key.value!r:.80} stands twice in one mapping"
                raise ConstructorError(None, None, reason, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)
