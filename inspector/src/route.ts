/** Where the reader is: `#/{tenant}/{user}/{page}/{ids…}?{query}`. A hash works under any prefix, and in a file. */

import { useEffect, useState } from "preact/hooks";

export interface Place {
  tenant: string;
  user: string;
  page: string;
  ids: string[];
  query: URLSearchParams;
}

export function readPlace(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").map(decoded);
  const [tenant = "", user = "", page = "", ...ids] = parts;
  return { tenant, user, page: page || "runs", ids, query: new URLSearchParams(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function href(
  place: { tenant: string; user: string },
  page: string,
  ids: string[] = [],
  query: Record<string, string> = {},
): string {
  const path = [place.tenant, place.user, page, ...ids].map(encodeURIComponent).join("/");
  const said = new URLSearchParams(query).toString();
  return `#/${path}${said ? `?${said}` : ""}`;
}

export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const moved = () => setHash(location.hash);
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return readPlace(hash);
}

export function go(to: string): void {
  location.hash = to;
}
