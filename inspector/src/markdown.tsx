/** The little Markdown that narratives are written in: headings, lists within lists, paragraphs. Words stay words. */

import type { JSX } from "preact";

interface Line {
  depth: number;
  text: string;
  ordered: boolean;
}

const ITEM = /^(\s*)(?:-|(\d+)\.)\s+(.*)$/;

function List({ lines, depth }: { lines: Line[]; depth: number }): JSX.Element {
  const items: { text: string; inner: Line[] }[] = [];
  for (const line of lines) {
    const last = items.at(-1);
    if (line.depth > depth && last) last.inner.push(line);
    else items.push({ text: line.text, inner: [] });
  }
  const content = items.map((item, index) => (
    <li key={index}>
      {item.text}
      {item.inner.length ? <List lines={item.inner} depth={item.inner[0]?.depth ?? depth + 1} /> : null}
    </li>
  ));
  return lines[0]?.ordered ? <ol>{content}</ol> : <ul>{content}</ul>;
}

export function Markdown({ text }: { text: string }) {
  const blocks: JSX.Element[] = [];
  let list: Line[] = [];
  const flush = () => {
    if (list.length) blocks.push(<List key={blocks.length} lines={list} depth={list[0]?.depth ?? 0} />);
    list = [];
  };
  for (const line of text.split("\n")) {
    const item = ITEM.exec(line);
    if (item) {
      list.push({ depth: (item[1] ?? "").length, text: item[3] ?? "", ordered: item[2] !== undefined });
      continue;
    }
    flush();
    const heading = /^(#{1,4}) (.*)$/.exec(line);
    if (heading)
      blocks.push(
        heading[1]?.length === 1 ? (
          <h3 key={blocks.length}>{heading[2]}</h3>
        ) : (
          <h4 key={blocks.length}>{heading[2]}</h4>
        ),
      );
    else if (line.trim()) blocks.push(<p key={blocks.length}>{line}</p>);
  }
  flush();
  return <div class="markdown">{blocks}</div>;
}
