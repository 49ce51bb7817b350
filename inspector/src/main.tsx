import { render } from "preact";
import { App } from "./app";
import { show } from "./store";
import "./style.css";

show();
render(<App />, document.getElementById("app") as HTMLElement);
