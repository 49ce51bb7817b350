"""The certificate of a running server, read again when it is told to: at SIGHUP.

Connections that are open go on with the one they began with. A file that is no certificate, or not that of the key,
changes nothing and is said in the log.
"""

from __future__ import annotations

import asyncio
import signal
import ssl

from muniment.surfaces.http.logs import LOGGER
from muniment.surfaces.http.settings import ServerSettings

__all__ = ["reload_certificate", "watch_reload"]


def watch_reload(settings: ServerSettings, context: ssl.SSLContext | None) -> None:
    """Have SIGHUP read the certificate again, for as long as the event loop runs. Without TLS it does nothing, where it
    would have ended the process."""
    if hasattr(signal, "SIGHUP"):
        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGHUP, reload_certificate, settings, context)
        except (RuntimeError, ValueError):  # a loop beside the main thread, as in tests: it hears no signals
            LOGGER.debug("signals are not heard here: the certificate is read once")


def reload_certificate(settings: ServerSettings, context: ssl.SSLContext | None) -> bool:
    """Read the files again; whether the new certificate is now shown to whoever connects."""
    if context is None:
        LOGGER.info("told to read again: there is no certificate")
        return False
    try:
        tried = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # else a wrong file would leave half of it in the one in use
        tried.load_cert_chain(settings.tls_cert, settings.tls_key)
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except OSError as error:  # which those of ssl are
        LOGGER.error("the certificate was not read again", extra={"said": {"reason": type(error).__name__}})
        return False
    LOGGER.info("the certificate was read again")
    return True
