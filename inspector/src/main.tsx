import { render } from "preact";
import { bundle, key } from "./api";
import { App } from "./app";
import { show } from "./store";
import "./style.css";
import "./compare.css";

const KEY_LINK = "#key=";
if (location.hash.startsWith(KEY_LINK)) {
  // The link that a server prints at its first start. The key leaves the address at once, and the history with it.
  key.set(decodeURIComponent(location.hash.slice(KEY_LINK.length)));
  history.replaceState(null, "", location.pathname);
}
if (bundle?.start && !location.hash) location.replace(bundle.start);
show();
render(<App />, document.getElementById("app") as HTMLElement);
