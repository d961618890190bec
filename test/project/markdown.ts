/** A link or an image: where it leads to, and the line it is on. */
export interface Link {
  readonly target: string;
  readonly line: number;
}

/** A part of a document from one heading to the next; the title of the part before the first heading is empty. */
export interface Section {
  readonly title: string;
  readonly text: string;
}

/** The links and images of a document, without those that code blocks and code spans only show. */
export function linksOf(text: string): Link[] {
  const links: Link[] = [];
  for (const [i, line] of prose(text).entries()) {
    const plain = line.replace(/`[^`]*`/g, (code) => 'x'.repeat(code.length));
    for (const [, target = ''] of plain.matchAll(/\]\(<?([^()\s>]+)>?(?: "[^"]*")?\)/g))
      links.push({ target, line: i + 1 });
    for (const [, target = ''] of plain.matchAll(/^\s*\[[^\]]+\]:\s+(\S+)/g)) links.push({ target, line: i + 1 });
  }
  return links;
}

/** What may follow the `#` of a link: the anchors that GitHub and npm make of headings. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const line of prose(text)) {
    const [, title] = /^#{1,6}\s+(.+?)\s*#*$/.exec(line) ?? [];
    if (title === undefined) continue;
    const plain = title.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-');
    let free = anchor;
    for (let n = 1; anchors.has(free); n++) free = `${anchor}-${n}`;
    anchors.add(free);
  }
  return anchors;
}

export function sectionsOf(text: string): Section[] {
  const sections: { title: string; lines: string[] }[] = [{ title: '', lines: [] }];
  const lines = text.split('\n');
  for (const [i, line] of prose(text).entries()) {
    const [, title] = /^#{1,6}\s+(.+)$/.exec(line) ?? [];
    if (title !== undefined) sections.push({ title, lines: [] });
    sections.at(-1)?.lines.push(lines[i] ?? '');
  }
  return sections.map((section) => ({ title: section.title, text: section.lines.join('\n') }));
}

/** The words in code spans and code blocks. */
export function codeWordsOf(text: string): Set<string> {
  const code = [...text.matchAll(/^```[^\n]*\n([\s\S]*?)^```/gm), ...text.matchAll(/`([^`\n]+)`/g)];
  return new Set(code.flatMap(([, inside = '']) => inside.match(/[\p{L}\p{N}_$]+/gu) ?? []));
}

/** The lines of a document, those of code blocks left empty. */
function prose(text: string): string[] {
  let fence = '';
  return text.split('\n').map((line) => {
    const [, mark = ''] = /^\s*(```+|~~~+)/.exec(line) ?? [];
    if (fence === '') fence = mark;
    else if (mark === fence) fence = '';
    else return '';
    return mark === '' ? line : '';
  });
}
