"""A run as one HTML file that needs no server: the inspector's own page, with the API answers it needs inside.

Scripts are allowed only by their hash, so no stored text can become one, wherever the file is opened.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import canonical_text
from muniment.core.instants import format_instant
from muniment.surfaces.inspector.pages import DIST, load_files

if TYPE_CHECKING:
    from muniment.handles.memory import Memory

__all__ = ["bundle_page", "make_bundle"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="app"></div>
<script type="application/json" id="bundle">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_UNSAFE_ONE = re.compile("[<>&\u2028\u2029]")


def make_bundle(memory: Memory, run_id: str, tenant_id: str, dist: Path = DIST, *, link: str | None = None) -> bytes:
    """Make the file for a run; it opens at the view that `link` names, and holds that view's data."""
    from muniment.surfaces.inspector.recording import record_run
    from muniment.surfaces.inspector.views import read_link

    files = load_files(dist)
    run = memory.log.run_state(run_id, tenant_id=tenant_id)
    view = None if link is None else read_link(link, run)
    bundle = {
        "version": 1,
        "made_at": format_instant(memory._ctx.clock()),
        "tenant_id": tenant_id,
        "user_id": run.scope.user_id,
        "run_id": run_id,
        "answers": record_run(memory, run, view),
        **({} if view is None else {"start": view.address}),
    }
    script = "".join(file.body.decode() for name, file in files.items() if name.endswith(".js"))
    style = "".join(file.body.decode() for name, file in files.items() if name.endswith(".css"))
    return bundle_page(bundle, script, style)


def bundle_page(bundle: dict[str, Any], script: str, style: str) -> bytes:
    """The page. In JSON, `<`, `>` and `&` occur only in strings, where they may be written as escapes."""
    script = script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    style = style.replace("</style", "<\\/style")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    data = _UNSAFE_ONE.sub(lambda found: _UNSAFE[found[0]], canonical_text(bundle))
    title = escape(f"{bundle['run_id']} · muniment")
    return _PAGE.format(policy=policy, title=title, style=style, data=data, script=script).encode()


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
