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
