/**
 * Writes results: the record and charts of every run to bench/results, and published ones also into bench/README.md
 * between its markers. Git keeps only published files.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { mergeResults, type Results, writeResults } from '../results.ts'
import { chart } from './chart.ts'
import { addHistory, historyChart, historyPoints } from './history.ts'
import { resultsText } from './markdown.ts'

const FOLDER = fileURLToPath(new URL('../results/', import.meta.url))
const README = fileURLToPath(new URL('../README.md', import.meta.url))
const BEGIN = '<!-- results: begin, written by npm run bench -- --write -->'
const END = '<!-- results: end -->'

const COST_KINDS = ['closed', 'handshakes', 'tunnels', 'idle'] as const

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

function writeCharts(results: Results, prefix: string): Charts[] {
  const all = charts(results)
  for (const { name, svg } of all) writeFileSync(`${FOLDER}${prefix}-${name}.svg`, svg)
  return all
}

function replaceResults(text: string, inner: string): string {
  const begin = text.indexOf(BEGIN)
  const end = text.indexOf(END)
  if (begin < 0 || end < begin) throw new Error('bench/README.md lacks the markers of its section of results')
  return `${text.slice(0, begin + BEGIN.length)}\n\n${inner}\n\n${text.slice(end)}`
}

/** Writes the record and charts of this run; returns the path of the record. */
export function record(results: Results, jsonFile: string | undefined): string {
  mkdirSync(FOLDER, { recursive: true })
  const file = jsonFile ?? `${FOLDER}latest.json`
  writeResults(file, results)
  writeCharts(results, 'latest')
  return file
}

/** Merges this run into the published results; other scenarios keep theirs. Its ratios go into the history. */
export function publish(results: Results): void {
  const history = historyChart(addHistory(`${FOLDER}published-history.json`, historyPoints(results)))
  if (history !== undefined) writeFileSync(`${FOLDER}published-history.svg`, history)
  const merged = mergeResults(`${FOLDER}published.json`, results)
  const images = writeCharts(merged, 'published').map(
    ({ name, heading }) => `![${heading}](results/published-${name}.svg)`,
  )
  if (history !== undefined) images.push('![Cost relative to other proxies, run by run](results/published-history.svg)')
  const inner = [...images, resultsText(merged)].join('\n\n')
  writeFileSync(README, replaceResults(readFileSync(README, 'utf8'), inner))
}
