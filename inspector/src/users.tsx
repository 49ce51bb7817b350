/** Users found by typing: the server is asked, however many there are. */

import { useEffect, useId, useState } from "preact/hooks";
import type { UserState } from "./openapi";
import { at, get, withQuery, type Page } from "./api";
import { useRested } from "./feed_parts";
import { go, href } from "./route";
import { w } from "./words";

const OFFERED = 20;

/** A few users whose id holds what was typed. */
export async function findUsers(tenant: string, typed: string, signal?: AbortSignal): Promise<Page<UserState>> {
  return get(withQuery(at("tenants", tenant, "users"), { q: typed.trim() || undefined, limit: OFFERED }), signal);
}

export function UserPick({ place, page }: { place: { tenant: string; user: string }; page: string }) {
  const [typed, setTyped] = useState(place.user);
  const [offered, setOffered] = useState<Page<UserState>>({ items: [] });
  const [isUnknown, setUnknown] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const wanted = useRested(typed);
  const id = useId();
  useEffect(() => {
    if (!isOpen || !place.tenant) return;
    const stop = new AbortController();
    const words = wanted === place.user ? "" : wanted;
    findUsers(place.tenant, words, stop.signal).then(setOffered, () => undefined);
    return () => stop.abort();
  }, [wanted, isOpen, place.tenant]);

  const pick = (user: string) => {
    setOpen(false);
    if (user !== place.user) go(href({ tenant: place.tenant, user }, page || "runs"));
  };
  async function commit(): Promise<void> {
    const name = typed.trim();
    if (!name || name === place.user) return;
    const found = await findUsers(place.tenant, name).catch(() => ({ items: [] }));
    const same = found.items.find((each) => each.user_id === name) ?? (found.items.length === 1 ? found.items[0] : null);
    if (same) pick(same.user_id);
    else {
      setOffered(found);
      setUnknown(true);
      setOpen(true);
    }
  }
  return (
    <form
      class="pick users"
      onSubmit={(event) => {
        event.preventDefault();
        void commit();
      }}
    >
      <label for={id}>
        <span>{w("user")}</span>
      </label>
      <input
        id={id}
        type="search"
        autocomplete="off"
        value={typed}
        placeholder={w("type_user")}
        onFocus={() => setOpen(true)}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setUnknown(false);
          setOpen(true);
        }}
        onKeyDown={(event) => event.key === "Escape" && setOpen(false)}
      />
      {isUnknown ? (
        <p class="small" role="alert">
          {w("no_such_user")}
        </p>
      ) : null}
      {isOpen && offered.items.length ? (
        <ul class="offered">
          {offered.items.map((each) => (
            <li key={each.user_id}>
              <button type="button" class="quiet" onClick={() => pick(each.user_id)}>
                {each.user_id}
              </button>
            </li>
          ))}
          {offered.next ? <li class="quiet small">{w("type_on")}</li> : null}
        </ul>
      ) : null}
    </form>
  );
}
