import { existsSync } from 'node:fs';
import { chromium, type Page } from 'playwright-core';

const CHROMIUM = '/usr/bin/chromium';

const FLAGS = [
  ...['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
];

/** A page in a real browser, with its console and its requests. */
export type Visit = {
  readonly page: Page;
  /** Every line of the console at any level, and every uncaught error. */
  readonly console: readonly string[];
  /** The origins of all requests. */
  readonly origins: ReadonlySet<string>;
  /** The targets of links, images, scripts and others in the current page, except on its own host. */
  referencesElsewhere(): Promise<readonly string[]>;
};

/** Starts headless Chromium with a profile of its own. */
export async function startBrowser() {
  if (!existsSync(CHROMIUM)) {
    throw new Error(`${CHROMIUM} is missing: apt-get install chromium`);
  }
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  return {
    async visit(url: string): Promise<Visit> {
      const page = await browser.newPage({ viewport: { width: 1300, height: 1000 } });
      const lines: string[] = [];
      const origins = new Set<string>();
      page.on('console', (line) => lines.push(`${line.type()}: ${line.text()}`));
      page.on('pageerror', (error) => lines.push(String(error)));
      page.on('request', (request) => origins.add(new URL(request.url()).origin));
      await page.goto(url);
      return { page, console: lines, origins, referencesElsewhere: () => referencesElsewhere(page) };
    },
    stop: () => browser.close(),
  };
}

async function referencesElsewhere(page: Page): Promise<readonly string[]> {
  const references = await page
    .locator('[href], [src], [action]')
    .evaluateAll((elements) =>
      elements.map((element) =>
        ['href', 'src', 'action'].map((name) => element.getAttribute(name) ?? '').join(''),
      ),
    );
  const { origin } = new URL(page.url());
  const isElsewhere = (reference: string) =>
    !reference.startsWith('data:') && new URL(reference, origin).origin !== origin;
  return references.filter(isElsewhere);
}
