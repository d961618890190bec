import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { oracle } from '../../../test/oracles.ts';
import { temporaryDirectory } from '../../../test/temporary.ts';
import { buildSite } from '../scripts/build.ts';
import { type BrowseOptions, type Browsing, browse } from '../src/server.ts';

/** Where screenshots of a test run go; not committed. */
const SCREENSHOTS = fileURLToPath(new URL('../screenshots/', import.meta.url));

/** A page that shows a file. */
export interface Shown {
  readonly page: Page;
  /** Requests so far, with the bytes of their answers. */
  readonly requests: { readonly url: string; readonly bytes: () => Promise<number> }[];
  /** Errors of scripts, of the console and of the content security policy; refused requests. */
  readonly problems: string[];
}

/** Chromium, with the page built from the sources. */
export interface Lab {
  /** The built page. */
  readonly site: string;
  /** Serves a file as `h5log browse` does, and opens the page. */
  show(path: string, options?: BrowseOptions & PageOptions): Promise<Shown>;
  /** Opens a URL. */
  open(url: string, options?: PageOptions): Promise<Shown>;
}

interface PageOptions {
  readonly dark?: boolean;
  readonly width?: number;
  readonly height?: number;
}

/** Starts Chromium once for a test file. To be called inside `withOracle('chromium', ...)`. */
export function startLab(): Lab {
  let browser: Browser;
  const site = temporaryDirectory();
  const servers: Browsing[] = [];
  beforeAll(async () => {
    [browser] = await Promise.all([launch(), buildSite(site)]);
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    for (const server of servers) await server.close();
  });
  const open: Lab['open'] = async (url, { dark = false, width = 1280, height = 800 } = {}) => {
    const context = await browser.newContext({
      colorScheme: dark ? 'dark' : 'light',
      viewport: { width, height },
      locale: 'en-GB',
      timezoneId: 'UTC',
      acceptDownloads: true,
    });
    return openIn(context, url);
  };
  return {
    site,
    open,
    async show(path, { dark, width, height, ...options } = {}) {
      const server = await browse(path, { site, ...options });
      servers.push(server);
      return open(server.url, { ...(dark && { dark }), ...(width && { width }), ...(height && { height }) });
    },
  };
}

async function openIn(context: BrowserContext, url: string): Promise<Shown> {
  const page = await context.newPage();
  const shown: Shown = { page, requests: [], problems: [] };
  const { requests, problems } = shown;
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  page.on('requestfinished', (request) => {
    requests.push({ url: request.url(), bytes: async () => (await request.sizes()).responseBodySize });
  });
  await page.goto(url);
  return shown;
}

async function launch(): Promise<Browser> {
  const executablePath = oracle('chromium');
  if (executablePath === undefined) throw new Error('chromium not found; npm run oracles installs it');
  // Root cannot use Chromium's sandbox; containers often give it a /dev/shm that is too small. WebGL is done in software.
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const args = [...sandbox, '--disable-dev-shm-usage', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'];
  return chromium.launch({ executablePath, args });
}

/** Takes a picture of a screen, in a folder that is not committed. */
export async function screenshot(page: Page, name: string): Promise<Buffer> {
  mkdirSync(SCREENSHOTS, { recursive: true });
  return page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
}

/** Chooses an object in the tree of h5web. */
export async function select(page: Page, path: string): Promise<void> {
  const parts = path.split('/').filter((part) => part !== '');
  for (const [i] of parts.entries()) {
    const item = page.locator(`[role=treeitem][data-path="/${parts.slice(0, i + 1).join('/')}"]`);
    await item.waitFor();
    const isOpen = (await item.getAttribute('aria-expanded')) === 'true';
    if (i === parts.length - 1 || !isOpen) await item.click();
  }
}

/** Switches to another way to show a dataset: Matrix, Line, Heatmap ... */
export async function chooseVis(page: Page, name: string): Promise<void> {
  await page.getByRole('tab', { name, exact: true }).click();
}

/** The cells of the table on the screen, by rows. */
export async function tableOf(page: Page): Promise<string[][]> {
  return page
    .locator('[role=grid] [role=row]:has([role=gridcell])')
    .evaluateAll((rows) =>
      rows.map((row) => Array.from(row.querySelectorAll('[role=gridcell]'), (cell) => cell.textContent ?? '')),
    );
}

/** A pixel of a screenshot: red, green, blue, alpha. The browser decodes the picture. */
export async function pixelIn(page: Page, png: Buffer, x: number, y: number): Promise<number[]> {
  return page.evaluate(
    async ([data, px, py]) => {
      const image = new Image();
      image.src = `data:image/png;base64,${data}`;
      await image.decode();
      const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
      context?.drawImage(image, 0, 0);
      return [...(context?.getImageData(Number(px), Number(py), 1, 1).data ?? [])];
    },
    [png.toString('base64'), Math.round(x), Math.round(y)] as const,
  );
}

/** The curve in a screenshot, from left to right: how high the pixels of h5web's line colour are in each column that has some. */
export async function curveIn(page: Page, png: Buffer): Promise<{ x: number; height: number }[]> {
  return page.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
    context?.drawImage(image, 0, 0);
    const { width, height } = image;
    const pixels = context?.getImageData(0, 0, width, height).data ?? [];
    const found: { x: number; height: number }[] = [];
    for (let x = 470; x < width; x++) {
      let [sum, weight] = [0, 0];
      for (let y = 160; y < height - 40; y++) {
        const at = (y * width + x) * 4;
        // Dark blue, or a mixture of it with white at the edge of the line.
        const blueness = (pixels[at + 2] as number) - ((pixels[at] as number) + (pixels[at + 1] as number)) / 2;
        if (blueness < 30) continue;
        sum += y * blueness;
        weight += blueness;
      }
      if (weight > 0) found.push({ x, height: -sum / weight });
    }
    return found;
  }, png.toString('base64'));
}
