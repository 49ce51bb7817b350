/** A view for others: its address, or the command that writes it into one file. */

import { useState } from "preact/hooks";
import { bundle } from "./api";
import { w, type Word } from "./words";

export function Share({ runId, tenant }: { runId: string; tenant: string }) {
  if (bundle) return null;
  const link = location.href;
  const where = tenant === "default" ? "" : ` --tenant ${quoted(tenant)}`;
  const command = `muniment run view view.html --run ${quoted(runId)}${where} --link ${quoted(location.hash)}`;
  return (
    <details class="share">
      <summary>{w("share")}</summary>
      <Copied label="share_link" hint="share_link_hint" text={link} />
      <Copied label="share_file" hint="share_file_hint" text={command} />
    </details>
  );
}

/** For a shell: whatever is in it stays one word. */
function quoted(text: string): string {
  return /^[\w./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function Copied({ label, hint, text }: { label: Word; hint: Word; text: string }) {
  const [done, setDone] = useState("");
  return (
    <div class="copied">
      <label>
        {w(label)}
        <input readOnly value={text} onFocus={(event) => event.currentTarget.select()} />
      </label>
      <button
        type="button"
        onClick={() =>
          void navigator.clipboard?.writeText(text).then(
            () => setDone(text),
            () => undefined, // the field can be copied by hand
          )
        }
      >
        {w("copy")}
        <span class="hidden"> {w(label)}</span>
      </button>
      <span role="status">{done === text ? w("copied") : ""}</span>
      <p class="quiet small">{w(hint)}</p>
    </div>
  );
}
