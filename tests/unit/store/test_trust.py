"""Trust is lowered, never raised (LG-08)."""

from __future__ import annotations

import itertools

import pytest

from muniment.core.scope import TRUST_ORDER, Trust, lowest_trust
from muniment.errors import InvalidInput
from muniment.store.admission import trust_of
from muniment.store.ledger import ROLES, Role
from products import for_each


@pytest.mark.req("LG-08")
@for_each(("role", "claimed"), list(itertools.product(ROLES, (None, *TRUST_ORDER))))
def test_a_claim_may_lower_what_the_role_gives_and_never_raise_it(role: Role, claimed: Trust | None) -> None:
    given = {"assistant": "assistant", "tool": "tool"}.get(role, "user")
    if claimed is None:
        assert trust_of(role, None) == given
    elif TRUST_ORDER.index(claimed) >= TRUST_ORDER.index(given):  # type: ignore[arg-type]
        assert trust_of(role, claimed) == claimed
    else:
        with pytest.raises(InvalidInput) as caught:
            trust_of(role, claimed)
        assert caught.value.path == "$.trust"


@pytest.mark.req("LG-08")
def test_a_lineage_is_as_trusted_as_its_least_trusted_part() -> None:
    for size in range(1, 4):
        for levels in itertools.product(TRUST_ORDER, repeat=size):
            assert lowest_trust(levels) == max(levels, key=TRUST_ORDER.index)
    assert lowest_trust([]) == "external"
