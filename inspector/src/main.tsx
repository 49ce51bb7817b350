import { render } from "preact";
import { bundle } from "./api";
import { App } from "./app";
import { show } from "./store";
import "./style.css";
import "./compare.css";

if (bundle?.start && !location.hash) location.replace(bundle.start);
show();
render(<App />, document.getElementById("app") as HTMLElement);
