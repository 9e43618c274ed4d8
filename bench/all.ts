/**
 * `npm run bench:all`: measures everything that bench/README.md and bench/results show, and publishes it there with
 * charts and history. Parts that fail are listed at the end, and the exit code is 1.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { environmentOf } from './environment.ts'
import { duration, type EndedPart, runParts, shortcomings } from './part-runner.ts'
import { lacking, type Part, partsOf } from './parts.ts'
import { type ProgramRecord, tableOfLines, tablesOf } from './program-records.ts'
import { scenarioGaps, publish, publishPrograms, renderPublished } from './report/publish.ts'
import { readResults } from './results.ts'

const HELP = `npm run bench:all -- [options]

  --quick            one round of one second, and small data: checks in about 25 minutes that every part works,
                     and publishes nothing
  --part NAME,...    only these parts; a beginning such as mediation selects all of its parts
  --list             prints the parts with their commands and expected times
  --pages            writes the pages of the published records anew, and measures nothing
  --base-port N      first of the eighty ports of scenarios (default 18000); if one is taken, others behind
`
const FOLDER = fileURLToPath(new URL('./results/all', import.meta.url))
const INTERRUPTED = 130

/** The parts that `--part` names. Throws where a name fits none. */
export function selectParts(parts: readonly Part[], names: string | undefined): readonly Part[] {
  if (names === undefined) return parts
  const words = names.split(',')
  const unknown = words.filter(word => !parts.some(({ name }) => name.startsWith(word)))
  if (unknown.length > 0) throw new Error(`--part: there is no ${unknown.join(', ')}; --list prints the parts`)
  return parts.filter(({ name }) =>
    words.some(word => (parts.some(it => it.name === word) ? name === word : name.startsWith(word))),
  )
}

/** Publishes what a part has measured, unless the run is a quick one. Returns what the part lacks. */
function keep(part: Part, ended: EndedPart, isQuick: boolean): readonly string[] {
  if (part.kind === 'program') {
    const record = programRecord(part, ended)
    writeFileSync(`${FOLDER}/${part.name}.json`, `${JSON.stringify(record, null, 2)}\n`)
    if (!isQuick) publishPrograms({ [part.name]: record })
    return []
  }
  if (!existsSync(ended.file)) throw new Error('it wrote no record')
  const results = readResults(ended.file)
  const gaps = scenarioGaps(results)
  if (!isQuick) publish(results)
  return gaps
}

function programRecord({ title, command, printsLines }: Part, ended: EndedPart): ProgramRecord {
  const { file, startedAt, loadBefore, seconds, output } = ended
  const measured = printsLines ? tableOfLines(title, output) : tablesOf(file)
  if (measured.tables.length === 0) throw new Error('it printed no figures')
  const environment = environmentOf({})
  return { title, command, startedAt, tookSeconds: Math.round(seconds), environment, loadBefore, ...measured }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      part: { type: 'string' },
      list: { type: 'boolean', default: false },
      pages: { type: 'boolean', default: false },
      'base-port': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  if (values.pages) return renderPublished()
  const { quick: isQuick } = values
  const parts = selectParts(partsOf(isQuick, values['base-port']), values.part)
  if (values.list) return printParts(parts)
  const interruption = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interruption.abort())
  const startedMs = performance.now()
  const outcomes = await runParts(parts, {
    folder: FOLDER,
    signal: interruption.signal,
    lacking: async part => (await Promise.all(part.needs.map(lacking))).filter(reason => reason !== undefined),
    keep: (part, ended) => keep(part, ended, isQuick),
    tell: line => console.error(line),
    output: process,
  })
  const short = shortcomings(parts, outcomes)
  const measured = outcomes.filter(({ kind }) => kind === 'measured').length
  const took = duration((performance.now() - startedMs) / 1000)
  console.error(`\n${measured} of ${parts.length} parts measured in ${took}; records in ${FOLDER}`)
  if (!isQuick && measured > 0) console.error('Published in bench/README.md and bench/results.')
  if (short.length > 0) console.error(`Not complete:\n  ${short.join('\n  ')}`)
  if (interruption.signal.aborted) process.exitCode = INTERRUPTED
  else if (short.length > 0) process.exitCode = 1
}

function printParts(parts: readonly Part[]): void {
  for (const { name, command, seconds } of parts)
    console.log(`${name.padEnd(24)} ${duration(seconds).padEnd(10)} ${command}`)
  console.log(`${parts.length} parts, about ${duration(parts.reduce((sum, { seconds }) => sum + seconds, 0))}`)
}

if (import.meta.main) {
  try {
    await main()
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`)
    process.exitCode = 2
  }
}
