import { type Comparison, ratioOf, ratioText, remarks, secondsText } from './table.ts';

const WIDTH = 800;
/** Where bars begin and how far they may go; to the left of them are the programs, to the right the numbers. */
const LEFT = 150;
const BARS = 370;
const ROW = 20;
const HEAD = 34;
const TOP = 46;
const BOTTOM = 34;

const STYLE = `
    text { font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; fill: #1f2328; }
    .title { font-size: 15px; font-weight: 600; }
    .head { font-weight: 600; }
    .quiet { fill: #59636e; }
    .ours { fill: #0969da; }
    .peer { fill: #9aa4af; }
    line { stroke: #d1d9e0; stroke-opacity: 0.6; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; }
      .quiet { fill: #9198a1; }
      .ours { fill: #4493f8; }
      .peer { fill: #656c76; }
      line { stroke: #3d444d; }
    }
  `;

/**
 * A picture of some comparisons: a bar for each program, the longer the slower, on one logarithmic scale for all of them. An SVG by itself, legible on light and dark
 * backgrounds.
 */
export function chart(comparisons: readonly Comparison[], { title, note }: { title: string; note: string }): string {
  const all = comparisons.flatMap(({ results }) => results.map(({ seconds }) => seconds));
  const [from, to] = [Math.floor(Math.log10(Math.min(...all))), Math.ceil(Math.log10(Math.max(...all)))];
  const scale = (seconds: number): number => ((Math.log10(seconds) - from) / Math.max(1, to - from)) * BARS;
  const bars: string[] = [];
  let y = TOP;
  for (const comparison of comparisons) {
    bars.push(text(0, y + 22, comparison.what, 'head'));
    y += HEAD;
    comparison.results.forEach((result, i) => {
      const ours = result.program.startsWith('h5log');
      const length = Math.max(2, scale(result.seconds));
      const ratio = i === 0 ? '' : ratioText(ratioOf(comparison, result));
      const label = [secondsText(result), ratio].filter((part) => part !== '').join(', ');
      const remark = remarks(result);
      bars.push(
        text(LEFT - 8, y + 14, result.program, '', 'end'),
        `<rect class="${ours ? 'ours' : 'peer'}" x="${LEFT}" y="${y + 3}" width="${length.toFixed(1)}" height="${ROW - 6}" rx="2"/>`,
        `<text x="${(LEFT + length + 6).toFixed(1)}" y="${y + 14}">${escaped(label)}${
          remark === '' ? '' : ` <tspan class="quiet">(${escaped(remark)})</tspan>`
        }</text>`,
      );
      y += ROW;
    });
  }
  const lines = Array.from({ length: to - from + 1 }, (_, i) => {
    const x = LEFT + (to === from ? 0 : (i / (to - from)) * BARS);
    return `<line x1="${x.toFixed(1)}" y1="${TOP}" x2="${x.toFixed(1)}" y2="${y + 4}"/>${text(x, y + 18, powerText(from + i), 'quiet', 'middle')}`;
  });
  const height = y + BOTTOM;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc">
  <title id="title">${escaped(title)}</title>
  <desc id="desc">${escaped(description(comparisons))}</desc>
  <style>${STYLE}</style>
  ${text(0, 16, title, 'title')}
  ${text(0, 34, note, 'quiet')}
  ${[...lines, ...bars].join('\n  ')}
</svg>
`;
}

/** The same in words, for those who do not see it. */
function description(comparisons: readonly Comparison[]): string {
  const sentences = comparisons.map((comparison) => {
    const results = comparison.results.map((result, i) => {
      const ratio = i === 0 ? '' : ` (${ratioText(ratioOf(comparison, result))})`;
      return `${result.program} ${secondsText(result)}${ratio}`;
    });
    return `${comparison.what}: ${results.join('; ')}.`;
  });
  return sentences.join(' ');
}

function text(x: number, y: number, content: string, kind: string, anchor = 'start'): string {
  const how = `${kind === '' ? '' : ` class="${kind}"`}${anchor === 'start' ? '' : ` text-anchor="${anchor}"`}`;
  return `<text x="${Number(x.toFixed(1))}" y="${y}"${how}>${escaped(content)}</text>`;
}

/** A power of ten in seconds. */
function powerText(power: number): string {
  if (power >= 0) return `${10 ** power} s`;
  return power >= -3 ? `${10 ** (power + 3)} ms` : `${10 ** Math.max(0, power + 6)} us`;
}

function escaped(content: string): string {
  return content.replace(/[<>&"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
