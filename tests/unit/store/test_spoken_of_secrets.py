"""Sentences that speak of passwords, logins, cookies, tokens and keys without telling one stay as they are written.

Each is ordinary talk of its language. Beside them stand near neighbours that do tell one: these still go.
"""

from __future__ import annotations

from collections import Counter

import pytest

from muniment.core.canonical import canonical_text
from muniment.store.secrets import may_hold_secret, redact_text
from products import for_each

pytestmark = pytest.mark.req("LG-10")

SPOKEN = (
    # English
    "to login use password manager", "login screen password field is broken", "login bob password reset needed",
    "Please login user\npassword changed yesterday", "curl docs mention --user name:value",
    "login page asks for password twice", "The login form\npassword box overlaps on iPhone.",
    "With curl the flag --user bob:builder is only an example", "curl -u user:password is how the manual writes it",
    "curl -s stays quiet, and -u name:value logs in", "Which machine has login screen password prompts?",
    "cookie: consent banner sets session=accepted_all_cookies_2024", "A cookie: auth_mode=single_sign_on_enabled",
    "The password is 12-character at least", "The password was SHA256-hashed, the passphrase is base64-encoded.",
    "The account key: see the wiki page", "account_key: rotated by the platform team",
    "Her login failed: password expired",
    "By default login needs password confirmation", "login via password GitHub-style", "the password is 256-bit",
    "The session token is refreshed",
    # German
    "Passwort: vergessen", "Kennwort: siehe Handbuch", "Das Passwort ist 8-stellig",
    "Passwort: mindestens acht Zeichen",
    "Das Kennwort lautet anders als gestern.", "Passwort: https://hilfe.example.com/artikel/42",
    "Beim Login bitte Passwort eingeben", "Passwort: Groß-/Kleinschreibung beachten", "Das Kennwort war abgelaufen",
    "Passwort: hilfe@example.com fragen", "Der Schlüssel und das Token liegen im Tresor.",
    "Passwort: LastPass-Tresor",
    # French
    "mot de passe: oublié hier", "Mot de passe : réinitialisé par le support", "le mot de passe est obligatoire",
    "mot de passe : aujourd'hui ou demain", "Mot de passe : rendez-vous au guichet", "mot de passe : (facultatif)",
    "Le mot de passe est 12-caractères minimum", "le cookie de session expire, le jeton aussi",
    "mot de passe : oublié !",
    # Spanish
    "Contraseña: olvidada ayer", "la contraseña es demasiado corta", "contraseña: ¡obligatoria!",
    "CONTRASEÑA: pendiente",
    "contraseña: cámbiala mañana", "El login pide usuario y contraseña: ambos obligatorios",
    "contraseña: **olvidada**",
    "La contraseña es SHA-256-cifrada", "el token y la clave caducan el lunes",
    # Portuguese
    "Senha: a combinar", "senha: esqueci-me dela", "Senha: combinamos amanhã", "a senha é obrigatória",
    "senha: alterada ontem", "Senha: enviada por e-mail", "a senha é UTF-8", "o cookie da sessão expirou",
    # Italian
    "la password è scaduta ieri", "la password è 8-caratteri", "il login chiede password sicure",
    "login utente password dimenticata", "Il login Bob password scaduta", "la chiave e il token sono nel portachiavi",
    "pagina di login senza\npassword visibile", "la password è base64-codificata",
    "login con password lunghe e segrete",
)  # fmt: skip

TOLD = {
    # what is said: the part of it that must go
    "machine example.com login ana password correcthorse": "correcthorse",
    "machine h login ana password correcthorse\n": "correcthorse",
    "machine example.com\n  login ana\n  password correcthorse\n": "correcthorse",
    "my netrc: machine localhost login ana password sesame": "sesame",
    "default login anonymous password letmein": "letmein",
    "login ana password tr0ub4dor": "tr0ub4dor",
    "login ana password sesame$open": "sesame$open",
    "login ana password kVqXrTzPw": "kVqXrTzPw",
    "please login bob\npassword hunter2": "hunter2",
    "curl -u admin:changeme http://x": "changeme",
    "curl https://example.com -u admin:changeme": "changeme",
    "curl example.com/a --user admin:changeme": "changeme",
    "curl localhost:8080 -su admin:changeme": "changeme",
    "curl -X POST -H 'Accept: text/plain' --user=admin:changeme http://x": "changeme",
    'curl "$URL" --proxy-user "bob:builder"': "builder",
    "Cookie: theme=dark; lang=de; PHPSESSID=a8f5f167f44f4964e6c998dee827110c": "a8f5f167",
    "set-cookie: connect.sid=s%3AaKx81jQ0pLmZ7.abcd; Path=/": "aKx81jQ0",
    "passwort: geheim99": "geheim99",
    "Kennwort: son#nen": "son#nen",
    "contraseña: hunter2!": "hunter2",
    "CONTRASEÑA: hunter2!": "hunter2",
    "contraseña: sol!luna": "sol!luna",
    "Senha: qWeRtYuI": "qWeRtYuI",
    "mot de passe : Caf&eacute": "Caf&eacute",
    "senha=abacaxi": "abacaxi",
    '{"senha": "abacaxi"}': "abacaxi",
    "{'passwort' := 'geheimnis'}": "geheimnis",
    "AccountKey=abcdefghijklmnop==": "abcdefghijklmnop",
    "Das Passwort ist 8-stellig9": "8-stellig9",
    "the password is 12-abc-34": "12-abc-34",
    "the password is 123-abc": "123-abc",
}


@for_each("text", SPOKEN)
def test_a_sentence_that_tells_no_secret_is_not_touched(text: str) -> None:
    found: Counter[str] = Counter()
    assert redact_text(text, found) == text
    assert not found
    for frame in ("{}.", "- {}\n- next", "({})", "He wrote: “{}” and left"):
        around = frame.format(text)
        assert redact_text(around, Counter()) == around


@for_each("text", TOLD)
def test_one_that_tells_it_loses_it(text: str) -> None:
    for frame in ("{}", "so: {}", "x\n{}\ny"):
        if frame == "so: {}" and text.startswith(("machine h ", "default ")):
            continue  # without a host that has a dot it is a line of its own, or prose
        around = frame.format(text)
        clean = redact_text(around, Counter())
        assert TOLD[text] not in clean, clean
        assert may_hold_secret(canonical_text({"content": around}))
        assert redact_text(clean, Counter()) == clean


def test_there_are_enough_of_them() -> None:
    assert len(set(SPOKEN)) >= 60
