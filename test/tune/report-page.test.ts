/** The report in a real browser: on narrow and wide screens nothing overlaps, and nothing is cut off. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { htmlReport } from '../../src/tune/html-report.ts'
import { proposalsOf } from '../../src/tune/proposals.ts'
import { tune } from '../../src/tune/search.ts'
import { Browser, browserPath } from '../harness/browser.ts'
import { SimulatedSystem } from './simulated-system.ts'

const SECTION = 'transport.passthru_http'
const KEY = `${SECTION}.http.max.connection.per.host.port`

/** Many columns, marks side by side, long names, every caveat. */
async function longReport(): Promise<string> {
  let measured = 0
  const values = [...Array.from({ length: 15 }, (_, power) => 2 ** power), 32_767, -1]
  const system = new SimulatedSystem(({ [KEY]: most = 1 }, clients) => {
    const share = most < 0 || most > 4096 ? 1 : most / 8192
    return (measured++ < 900 ? 45_000 : 25_000) * share * Math.min(1, clients / 5000)
  }, 0.1)
  system.failed = () => 0.4
  system.others = isQuiet => ({ share: isQuiet ? 0.3 : 0.7, programs: ['compiler (12345) 40 %', 'browser (99) 20 %'] })
  const knobs = [
    { key: KEY, others: [], unit: 'connections to one backend', values, current: 16_384 },
    { key: `${SECTION}.io_buffer_size`, others: [], unit: 'bytes', values: [4096, 16_384, 65_536], current: 16_384 },
  ]
  const options = { seed: 3, clients: 10_000, repeats: 5, p99Ms: 900, progress: () => {} }
  const result = await tune(system, knobs, options)
  const target = '/a-long-path/of-an-api/1.0.0/with?parameters=that-are-long&and=more'
  return htmlReport(
    result,
    proposalsOf(result, () => SECTION),
    { target, processors: 2 },
  )
}

/** Labels of charts that overlap or leave their chart, and elements that are wider than the screen. */
const FAULTS = `[
  ...[...document.querySelectorAll('svg')].flatMap(svg => {
    const frame = svg.getBoundingClientRect()
    const texts = [...svg.querySelectorAll('text')].filter(text => getComputedStyle(text).display !== 'none')
    const boxes = texts.map(text => [text.textContent, text.getBoundingClientRect()])
    const outside = boxes.filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1 ||
      box.bottom > frame.bottom + 1 || box.top < frame.top - 1)
    const overlapping = boxes.flatMap(([one, a], at) => boxes.slice(at + 1).filter(([, b]) =>
      a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
      .map(([other]) => svg.ariaLabel + ': ' + one + ' over ' + other))
    return [...outside.map(([text]) => svg.ariaLabel + ': ' + text + ' is outside'), ...overlapping]
  }),
  ...[...document.querySelectorAll('body > *, .table')]
    .filter(element => element.scrollWidth > element.clientWidth + 1 ||
      element.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map(element => element.outerHTML.slice(0, 80)),
]`

/** A screen of 360 pixels with a scroll bar. */
const NARROW = 345
const path = browserPath()

test('labels of charts neither overlap nor leave them; no part is wider than the screen', {
  skip: path === '',
}, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-report-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const page = join(folder, 'report.html')
  writeFileSync(page, await longReport())
  const browser = await Browser.open(path)
  t.after(() => browser.close())
  await browser.goTo(pathToFileURL(page).href)
  await browser.until(`document.readyState === 'complete' && document.querySelector('table')`)
  for (const width of [NARROW, 768, 1280]) {
    for (const isDark of [false, true]) {
      await browser.setScreen({ width, height: 900, isDark })
      await browser.until(`innerWidth === ${width}`)
      assert.deepEqual(await browser.evaluate(FAULTS), [], `${width} pixels`)
      if (process.env.SLUICE_SHOTS !== undefined)
        writeFileSync(
          `${process.env.SLUICE_SHOTS}-${width}-${isDark ? 'dark' : 'light'}.png`,
          await browser.screenshot(true),
        )
    }
  }
  assert.deepEqual(browser.complaints, [])
})
