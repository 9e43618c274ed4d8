/**
 * Writes results: the record and charts of every run to bench/results, and published ones also into its pages and
 * between the markers of bench/README.md. Git keeps only published files.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { mergePrograms, type ProgramRecords, readPrograms } from '../program-records.ts'
import { PROGRAM_NAMES } from '../parts.ts'
import { mergeResults, type Results, type ScenarioResult, writeResults } from '../results.ts'
import { chart } from './chart.ts'
import { addHistory, historyChart, historyPoints, historyText } from './history.ts'
import { indexText, pagesOf, targetsText } from './pages.ts'

/** Where publication writes. */
export interface Places {
  /** Folder of records, pages and charts, with a slash at its end. */
  readonly folder: string
  readonly readme: string
}

const PLACES: Places = {
  folder: fileURLToPath(new URL('../results/', import.meta.url)),
  readme: fileURLToPath(new URL('../README.md', import.meta.url)),
}
const RESULTS = 'published.json'
const PROGRAMS = 'published-programs.json'
const HISTORY = 'published-history.json'

const COST_KINDS = ['closed', 'handshakes', 'tunnels', 'idle'] as const
const REASON_CHARS_MAX = 300
/** The gateway and its variants. */
const GATEWAY = /^sluice/

interface Charts {
  readonly name: string
  readonly heading: string
  readonly svg: string
}

function charts(results: Results): Charts[] {
  const drawn = [
    { name: 'cost', heading: 'What a proxy costs', svg: chart(results, COST_KINDS, 'What a proxy costs') },
    {
      name: 'latency',
      heading: 'Latency at a constant rate',
      svg: chart(results, ['open'], 'Latency at a constant rate'),
    },
  ]
  return drawn.flatMap(({ name, heading, svg }) => (svg === undefined ? [] : [{ name, heading, svg }]))
}

function writeCharts(results: Results, folder: string, prefix: string): Charts[] {
  const all = charts(results)
  for (const { name, svg } of all) writeFileSync(`${folder}${prefix}-${name}.svg`, svg)
  return all
}

/** Replaces what stands between the markers of a section. Throws where the text lacks them. */
export function replaceSection(text: string, section: string, inner: string): string {
  const begin = `<!-- ${section}: begin, written by npm run bench:all -->`
  const [from, to] = [text.indexOf(begin), text.indexOf(`<!-- ${section}: end -->`)]
  if (from < 0 || to < from) throw new Error(`bench/README.md lacks the markers of its section ${section}`)
  return `${text.slice(0, from + begin.length)}\n\n${inner}\n\n${text.slice(to)}`
}

/** Writes the record and charts of this run; returns the path of the record. */
export function record(results: Results, jsonFile: string | undefined): string {
  mkdirSync(PLACES.folder, { recursive: true })
  const file = jsonFile ?? `${PLACES.folder}latest.json`
  writeResults(file, results)
  writeCharts(results, PLACES.folder, 'latest')
  return file
}

/** Peers without a result in a run, with the reason. Throws for a scenario without any result. */
export function scenarioGaps({ scenarios }: Results): readonly string[] {
  return Object.entries(scenarios).flatMap(([name, { peers, skipped }]) => {
    const gaps = Object.entries(skipped).map(([peer, reason]) => {
      return `${peer} was not measured: ${reason.replace(/\s+/g, ' ').slice(0, REASON_CHARS_MAX)}`
    })
    if (Object.keys(peers).length === 0) throw new Error(`${name} has no result; ${gaps.join('; ')}`)
    return gaps
  })
}

/** Returns whether a result may replace an earlier one: it has figures, and no gateway is missing. */
function isWhole({ peers, skipped }: ScenarioResult): boolean {
  return Object.keys(peers).length > 0 && !Object.keys(skipped).some(peer => GATEWAY.test(peer))
}

/**
 * Merges the whole results of this run into the published ones; other scenarios keep theirs. Its ratios go into the
 * history.
 */
export function publish(results: Results, places = PLACES): void {
  const whole = Object.entries(results.scenarios).filter(([, result]) => isWhole(result))
  const fresh: Results = { schema: 1, scenarios: Object.fromEntries(whole) }
  addHistory(`${places.folder}${HISTORY}`, historyPoints(fresh))
  mergeResults(`${places.folder}${RESULTS}`, fresh)
  renderPublished(places)
}

export function publishPrograms(programs: ProgramRecords['programs'], places = PLACES): void {
  mergePrograms(`${places.folder}${PROGRAMS}`, programs)
  renderPublished(places)
}

/** Writes pages, charts and the sections of bench/README.md anew, from the published records. */
export function renderPublished(places = PLACES): void {
  const { folder, readme } = places
  const results = mergeResults(`${folder}${RESULTS}`, { schema: 1, scenarios: {} })
  const published = { results, programs: readPrograms(`${folder}${PROGRAMS}`) }
  for (const [file, text] of Object.entries(pagesOf(published))) writeFileSync(`${folder}${file}`, text)
  const images = writeCharts(results, folder, 'published').map(
    ({ name, heading }) => `![${heading}](results/published-${name}.svg)`,
  )
  const points = addHistory(`${folder}${HISTORY}`, [])
  const history = historyChart(points)
  if (history !== undefined) {
    writeFileSync(`${folder}published-history.svg`, history)
    images.push('![Cost relative to other proxies, run by run](results/published-history.svg)')
  }
  writeFileSync(`${folder}published-history.md`, historyText(points))
  images.push('[Ratios of all published runs](results/published-history.md)')
  const text = replaceSection(readFileSync(readme, 'utf8'), 'targets', targetsText(published))
  const inner = [indexText(published, PROGRAM_NAMES), ...images].join('\n\n')
  writeFileSync(readme, replaceSection(text, 'results', inner))
}
