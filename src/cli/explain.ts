/** `explain`: the values in effect, where each was set, and all there is to know about one key. */
import { allKeys, SECTIONS } from '../config/catalogue.ts'
import { describe, printable } from '../config/fault.ts'
import { FREE_NAME } from '../config/key.ts'
import { examine } from '../config/load.ts'
import { nearest } from '../config/nearest.ts'
import type { ResolvedKey } from '../config/resolve.ts'
import { withoutPlaces } from '../config/setting.ts'
import { canonical } from '../config/tables.ts'
import { type CliArguments, type CommandOptions, UsageError, usage } from './arguments.ts'
import { EXIT_CONFIGURATION, EXIT_USAGE } from './exit-codes.ts'
import { absence, explainKey, factsOf, idleNote, isChanged, readable, type Situation } from './explain-key.ts'
import { machineFor } from './machine.ts'
import { paint, type Terminal } from './terminal.ts'

type Options = Pick<CommandOptions, 'changed' | 'burst'>

export async function explain(
  args: CliArguments,
  output: Terminal = process.stdout,
  complaints: Terminal = process.stderr,
  options: Options = { changed: false, burst: '' },
): Promise<number> {
  const [asked = '', ...more] = args.rest
  if (more.length > 0) {
    complaints.write(usage('explain'))
    return EXIT_USAGE
  }
  const wanted = asked.replaceAll(/["']/g, '')
  const burst = burstOf(options.burst)
  const { keys, faults, configuration } = examine(args.home, args.sets, args.dataDir)
  const byPath = new Map(keys.map(key => [key.path, key]))
  const sections = [...new Set(keys.map(key => key.section))]
  const surroundings = { home: args.home, data: args.dataDir, folder: args.home }
  const machine = machineFor(configuration)
  const situation = { keys, faults, configuration, byPath, sections, surroundings, machine, burst }
  const isTableWithoutRows =
    SECTIONS.some(({ name, repeated }) => repeated && name === wanted) && !keys.some(key => isWithin(key, wanted))
  const { chosen, named } = isTableWithoutRows ? NOTHING : choose(keys, wanted)
  if (chosen.length === 0 && !isTableWithoutRows) {
    complaints.write(noSuchKey(keys, wanted))
    return EXIT_USAGE
  }
  const listed = options.changed ? chosen.filter(key => isChanged(key, situation)) : chosen
  const single = named && chosen.length === 1
  if (args.json) output.write(`${JSON.stringify(asJson(listed, single, situation), null, 2)}\n`)
  else if (isTableWithoutRows) output.write(`there is no [[${wanted}]]; conf/reference.md lists its keys\n`)
  else if (listed.length === 0) output.write('nothing differs from the defaults\n')
  else if (named && listed.length <= NAMESAKES_MAX) for (const key of listed) explainKey(output, key, situation)
  else listAll(output, listed, situation)
  if (faults.length === 0) return 0
  for (const fault of faults) complaints.write(`${paint(complaints, 'red', 'fault')}  ${describe(fault)}\n`)
  return EXIT_CONFIGURATION
}

const USUAL_BURST = 1000

function burstOf(given: string): number {
  if (given === '') return USUAL_BURST
  if (!/^[1-9]\d{0,8}$/.test(given)) throw new UsageError('--burst is a whole number, 1 to 999999999')
  return Number(given)
}

/** One object where one key was asked for; null where only a change was, and there is none. */
function asJson(listed: readonly ResolvedKey[], single: boolean, situation: Situation): unknown {
  const facts = listed.map(key => factsOf(key, situation))
  return single ? (facts[0] ?? null) : facts
}

/** So many keys of one name are told about in full; of more a list is of more use. */
const NAMESAKES_MAX = 3

interface Choice {
  readonly chosen: readonly ResolvedKey[]
  /** A key was meant, by its path, its name or another spelling, and not a section or a few letters. */
  readonly named: boolean
}

const NOTHING: Choice = { chosen: [], named: false }

/** All keys, those of a section, those meant by their path or the end of that, or all with these letters in it. */
function choose(keys: readonly ResolvedKey[], wanted: string): Choice {
  if (wanted === '') return { chosen: keys, named: false }
  const ofSection = keys.filter(key => isWithin(key, wanted))
  if (ofSection.length > 0) return { chosen: ofSection, named: false }
  const path = canonical(wanted)
  const letters = wanted.toLowerCase()
  const names: readonly ((key: ResolvedKey) => boolean)[] = [
    key => key.path === path,
    key => withoutPlaces(key.path) === path || key.path === withoutPlaces(path),
    key => key.path.includes(FREE_NAME) && isNamed(key.path, path),
    key => key.path.endsWith(`.${wanted}`) || key.definition.aliases.includes(wanted),
  ]
  const known = [...keys, ...absentKeys(keys)]
  const chosen = names.map(name => known.filter(name)).find(found => found.length > 0)
  if (chosen !== undefined) return { chosen, named: true }
  const alike = known.filter(key => key.path.toLowerCase().includes(letters))
  return { chosen: alike, named: alike.length === 1 }
}

/** Whether a path is one of those that a free name stands for. */
function isNamed(pattern: string, path: string): boolean {
  const [start = '', end = ''] = pattern.split(FREE_NAME)
  return path.length > start.length + end.length && path.startsWith(start) && path.endsWith(end)
}

/** Of the section, of one row of a repeated table, or of any row of it. */
function isWithin({ section }: ResolvedKey, name: string): boolean {
  return section === name || withoutPlaces(section) === name
}

/** Keys of repeated tables that have no row, and of names that nobody has chosen yet: with their defaults. */
function absentKeys(keys: readonly ResolvedKey[]): readonly ResolvedKey[] {
  const tables = new Set(keys.map(({ section }) => withoutPlaces(section)))
  return allKeys()
    .filter(({ section, key }) => !tables.has(section) || key.includes(FREE_NAME))
    .map(key => ({
      ...key,
      value: key.definition.fallback,
      where: '',
      settings: [],
      secret: key.definition.secret,
      faulty: false,
    }))
}

function noSuchKey(keys: readonly ResolvedKey[], wanted: string): string {
  const guess = nearest(
    wanted,
    keys.flatMap(key => [key.path, key.key, key.section]),
  )
  return `there is no key or section ${printable(wanted)}${guess === '' ? '' : `; did you mean ${guess}?`}\n`
}

function listAll(output: Terminal, keys: readonly ResolvedKey[], situation: Situation): void {
  for (const [section, own] of Map.groupBy(keys, key => key.section)) {
    const note = idleNote(own[0]!)
    const title = section === '' ? 'above the first section' : `[${printable(section)}]`
    output.write(`${paint(output, 'bold', title)}${note === '' ? '' : `  ${note}`}\n`)
    const nameWidth = Math.max(...own.map(key => key.key.length))
    const valueWidth = Math.min(40, Math.max(...own.map(key => readable(key).length)))
    for (const key of own) {
      const isInert = note === '' && key.definition.inertReason !== ''
      const faulty = key.faulty ? 'FAULTY, this is the default' : ''
      const remarks = [key.where, faulty, absence(key), isInert ? '(inert)' : '']
      const cells = [key.key.padEnd(nameWidth), readable(key).padEnd(valueWidth), remarks.filter(Boolean).join(' ')]
      const isNews = isChanged(key, situation)
      const mark = isNews ? '*' : key.where === '' ? ' ' : '='
      const line = printable(cells.join('  ').trimEnd())
      output.write(`${mark} ${paint(output, isNews ? 'green' : 'dim', line)}\n`)
    }
    output.write('\n')
  }
  output.write('* differs from its default, = set to its default; everything else is set nowhere\n')
}
