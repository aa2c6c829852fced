"""The settings of a pass context as plain data, for keys of caches and for other processes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from intarsia.support.errors import UsageError
from intarsia.support.json_text import parse_json_text
from intarsia.transform.instrument.pass_instrument import PassInstrument
from intarsia.transform.pass_config import config_from_plain, plain_config
from intarsia.transform.pass_context import PassContext


@dataclass(frozen=True, slots=True)
class PassSettings:
    """Level, enabled and disabled passes, and options of a context; equal settings have equal texts.

    Instruments are no settings: they are objects of one process.

    Attributes:
        text: The settings as canonical JSON, without what has its default; "" for the default settings.
    """

    text: str = ""

    @classmethod
    def of(cls, ctx: PassContext) -> Self:
        """Return the settings of a context."""
        settings = {
            "opt_level": ctx.opt_level,
            "required_pass": sorted(set(ctx.required_pass)),
            "disabled_pass": sorted(set(ctx.disabled_pass)),
            "config": plain_config(ctx.config),
        }
        changed = {name: value for name, value in settings.items() if value != _DEFAULTS[name]}
        return cls(json.dumps(changed, sort_keys=True, separators=(",", ":")) if changed else "")

    @classmethod
    def current(cls) -> Self:
        """Return the settings of the innermost context of this thread or task."""
        return cls.of(PassContext.current())

    @property
    def digest_parts(self) -> tuple[str, ...]:
        """Parts for the digest of a key; none for the default settings, which leave keys as they are."""
        return (f"pass settings {self.text}",) if self.text else ()

    def context(self, instruments: Iterable[PassInstrument] = ()) -> PassContext:
        """Return a new context with these settings.

        Args:
            instruments: Instruments of the context.

        Raises:
            UsageError: The text is damaged, or an option is not registered in this process, or has another
                type.
        """
        try:
            settings = dict(parse_json_text(self.text or "{}"))
        except (ValueError, TypeError) as error:
            raise UsageError(f"damaged pass settings {self.text!r:.80}") from error
        unknown = settings.keys() - _DEFAULTS.keys()
        if unknown:
            raise UsageError(f"pass settings have no {min(unknown)!r}: they are of another version")
        config = config_from_plain(settings.pop("config", {}))
        return PassContext(**settings, config=config, instruments=instruments)


_DEFAULTS: Final = {
    "opt_level": PassContext().opt_level,
    "required_pass": [],
    "disabled_pass": [],
    "config": {},
}
