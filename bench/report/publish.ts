/**
 * Puts results where they are read: the record and charts of every run into bench/results, and, when asked, those of
 * the published run into bench/README.md between its markers. Only published files are kept in git.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { mergeResults, type Results, writeResults } from '../results.ts'
import { chart } from './chart.ts'
import { resultsText } from './markdown.ts'

const FOLDER = fileURLToPath(new URL('../results/', import.meta.url))
const README = fileURLToPath(new URL('../README.md', import.meta.url))
const BEGIN = '<!-- results: begin, written by npm run bench -- --write -->'
const END = '<!-- results: end -->'

const COSTS = ['closed', 'handshakes', 'tunnels', 'idle'] as const

interface Charts {
  readonly name: string
  readonly heading: string
  readonly svg: string
}

function charts(results: Results): Charts[] {
  const drawn = [
    { name: 'cost', heading: 'What a proxy costs', svg: chart(results, COSTS, 'What a proxy costs') },
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

function between(text: string, inner: string): string {
  const begin = text.indexOf(BEGIN)
  const end = text.indexOf(END)
  if (begin < 0 || end < begin) throw new Error('bench/README.md has lost the markers of its results section')
  return `${text.slice(0, begin + BEGIN.length)}\n\n${inner}\n\n${text.slice(end)}`
}

/** The record of this run, whole; returns the file it is in. */
export function record(results: Results, jsonFile: string | undefined): string {
  mkdirSync(FOLDER, { recursive: true })
  const file = jsonFile ?? `${FOLDER}latest.json`
  writeResults(file, results)
  writeCharts(results, 'latest')
  return file
}

/** Scenarios that this run did not measure keep their earlier results. */
export function publish(results: Results): void {
  const merged = mergeResults(`${FOLDER}published.json`, results)
  const images = writeCharts(merged, 'published').map(
    ({ name, heading }) => `![${heading}](results/published-${name}.svg)`,
  )
  const inner = [...images, resultsText(merged)].join('\n\n')
  writeFileSync(README, between(readFileSync(README, 'utf8'), inner))
}
