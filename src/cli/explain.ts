/** `explain`: shows the values in effect and where each is set, or everything about one key. */
import { allKeys } from '../config/catalogue.ts'
import { formatDiagnostic, printable } from '../config/diagnostics.ts'
import { FREE_NAME } from '../config/key.ts'
import { judgedRequirements } from '../config/keys-without-effect.ts'
import { examine } from '../config/load.ts'
import { nearest } from '../config/nearest.ts'
import type { ResolvedKey } from '../config/resolve.ts'
import { withoutIndexes } from '../config/setting.ts'
import { canonicalPath } from '../config/tables.ts'
import { type CliArguments, type CommandOptions, EXIT_CONFIGURATION, EXIT_USAGE, UsageError } from './arguments.ts'
import {
  type ExplainContext,
  explanationOf,
  inertSectionNote,
  isChanged,
  missingReason,
  printKey,
  withUnit,
} from './explain-key.ts'
import { poolFacts } from './explain-pools.ts'
import { usage } from './help.ts'
import { paint, type Terminal } from './terminal.ts'

type Options = Pick<CommandOptions, 'changed' | 'burst'>

/** So many keys of the same name are explained in full; more are listed. */
const SAME_NAME_MAX = 3

export async function explain(
  args: CliArguments,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
  options: Options = { changed: false, burst: '' },
): Promise<number> {
  const [word = '', ...more] = args.rest
  if (more.length > 0) {
    errorOutput.write(usage('explain'))
    return EXIT_USAGE
  }
  const wanted = plainName(word)
  const burst = readBurst(options.burst)
  const { keys, errors, configuration } = examine(args.home, args.sets, args.dataDir)
  const byPath = new Map(keys.map(key => [key.path, key]))
  const sections = [...new Set(keys.map(key => key.section))]
  const folders = { home: args.home, data: args.dataDir, configuration: args.home }
  const facts = poolFacts(configuration, args.dataDir)
  const context = { keys, errors, configuration, byPath, sections, folders, facts, burst }
  const { selected, isByName } = selectKeys(keys, wanted)
  if (selected.length === 0) {
    errorOutput.write(unknownKey(keys, wanted))
    return EXIT_USAGE
  }
  const listed = options.changed ? selected.filter(key => isChanged(key, context)) : selected
  const isSingle = isByName && selected.length === 1
  if (args.json) output.write(`${JSON.stringify(asJson(listed, isSingle, context), null, 2)}\n`)
  else if (listed.length === 0) output.write('nothing differs from the defaults\n')
  else if (isByName && listed.length <= SAME_NAME_MAX) for (const key of listed) printKey(output, key, context)
  else printList(output, listed, context)
  if (errors.length === 0) return 0
  for (const error of errors) errorOutput.write(`${paint(errorOutput, 'red', 'error')}  ${formatDiagnostic(error)}\n`)
  return EXIT_CONFIGURATION
}

const DEFAULT_BURST = 1000

function readBurst(given: string): number {
  if (given === '') return DEFAULT_BURST
  if (!/^[1-9]\d{0,8}$/.test(given)) throw new UsageError('--burst is a whole number, 1 to 999999999')
  return Number(given)
}

/** One object if one key was named, or null if --changed leaves none; otherwise a list. */
function asJson(listed: readonly ResolvedKey[], isSingle: boolean, context: ExplainContext): unknown {
  const explanations = listed.map(key => explanationOf(key, context))
  return isSingle ? (explanations[0] ?? null) : explanations
}

// ---- selection of keys ----------------------------------------------------------------------------------------------

/** Removes quotes and the brackets of a table header: keys may be given as the file spells them. */
function plainName(word: string): string {
  const plain = word.replaceAll(/["']/g, '').trim()
  return /^\[\[?([^[\]]+)\]\]?$/.exec(plain)?.[1]?.trim() ?? plain
}

interface Selection {
  readonly selected: readonly ResolvedKey[]
  /** A key was named by path, name or alias; false for a section or a part of a path. */
  readonly isByName: boolean
}

/** Selects all keys, those of a section, those with this path or end of a path, or those that contain the text. */
function selectKeys(keys: readonly ResolvedKey[], wanted: string): Selection {
  if (wanted === '') return { selected: keys, isByName: false }
  const ofSection = keys.filter(key => isInSection(key, wanted))
  if (ofSection.length > 0) return { selected: ofSection, isByName: false }
  const absent = absentKeys(keys)
  const ofAbsentTable = absent.filter(key => isInSection(key, wanted))
  if (ofAbsentTable.length > 0) return { selected: ofAbsentTable, isByName: false }
  const path = canonicalPath(wanted)
  const text = wanted.toLowerCase()
  const names: readonly ((key: ResolvedKey) => boolean)[] = [
    key => key.path === path,
    key => withoutIndexes(key.path) === path || key.path === withoutIndexes(path),
    key => key.path.includes(FREE_NAME) && matchesFreeName(key.path, path),
    key => key.path.endsWith(`.${wanted}`) || key.definition.aliases.includes(wanted),
  ]
  const known = [...keys, ...absent]
  const named = names.map(isMatch => known.filter(isMatch)).find(matches => matches.length > 0)
  if (named !== undefined) return { selected: named, isByName: true }
  const similar = known.filter(key => key.path.toLowerCase().includes(text))
  return { selected: similar, isByName: similar.length === 1 }
}

function matchesFreeName(pattern: string, path: string): boolean {
  const [start = '', end = ''] = pattern.split(FREE_NAME)
  return path.length > start.length + end.length && path.startsWith(start) && path.endsWith(end)
}

/** `name`: a section, one row of a repeated table, or all its rows. */
function isInSection({ section }: ResolvedKey, name: string): boolean {
  return section === name || withoutIndexes(section) === name
}

/** Keys of repeated tables without rows, and of free names that are not chosen; with their defaults. */
function absentKeys(keys: readonly ResolvedKey[]): readonly ResolvedKey[] {
  const tables = new Set(keys.map(({ section }) => withoutIndexes(section)))
  return allKeys()
    .filter(({ section, key }) => !tables.has(section) || key.includes(FREE_NAME))
    .map(key => ({
      ...key,
      value: key.definition.defaultValue,
      where: '',
      settings: [],
      secret: key.definition.secret,
      invalid: false,
    }))
}

function unknownKey(keys: readonly ResolvedKey[], wanted: string): string {
  const guess = nearest(
    wanted,
    keys.flatMap(key => [key.path, key.key, key.section]),
  )
  return `there is no key or section ${printable(wanted)}${guess === '' ? '' : `; did you mean ${guess}?`}\n`
}

// ---- list -----------------------------------------------------------------------------------------------------------

const VALUE_WIDTH_MAX = 40

function printList(output: Terminal, keys: readonly ResolvedKey[], context: ExplainContext): void {
  for (const [section, own] of Map.groupBy(keys, key => key.section)) {
    const missing = commonMissingReason(own)
    output.write(`${sectionTitle(output, section, own[0]!, missing)}\n`)
    const isInertSection = inertSectionNote(own[0]!) !== ''
    const nameWidth = Math.max(...own.map(key => key.key.length))
    const valueWidth = Math.min(VALUE_WIDTH_MAX, Math.max(...own.map(key => withUnit(key).length)))
    for (const key of own) {
      const remarks = remarksOn(key, context, isInertSection, missing)
      const cells = [key.key.padEnd(nameWidth), withUnit(key).padEnd(valueWidth), remarks.filter(Boolean).join(' ')]
      const differs = isChanged(key, context)
      const mark = differs ? '*' : key.where === '' ? ' ' : '='
      const line = printable(cells.join('  ').trimEnd())
      output.write(`${mark} ${paint(output, differs ? 'green' : 'dim', line)}\n`)
    }
    output.write('\n')
  }
  output.write('* differs from its default, = set to its default; all others are not set\n')
}

function sectionTitle(output: Terminal, section: string, first: ResolvedKey, missing: string): string {
  const isTable = missing !== '' && !first.key.includes(FREE_NAME)
  const name = isTable ? `[[${section}]]` : `[${printable(section)}]`
  const notes = [inertSectionNote(first), missing === '' ? '' : `${missing}: the values are defaults`]
  const title = paint(output, 'bold', section === '' ? 'before the first section' : name)
  return [title, notes.filter(Boolean).join('; ')].filter(Boolean).join('  ')
}

/** Why none of the keys has a value; '' if one has, or the reasons differ. */
function commonMissingReason(keys: readonly ResolvedKey[]): string {
  const reasons = new Set(keys.map(missingReason))
  return reasons.size === 1 ? [...reasons][0]! : ''
}

function remarksOn(
  key: ResolvedKey,
  { byPath }: ExplainContext,
  isInertSection: boolean,
  missing: string,
): readonly string[] {
  const { inertReason, required } = key.definition
  const isIdle = inertReason === '' && judgedRequirements(key, byPath).some(({ holds }) => holds === false)
  return [
    key.where,
    key.invalid ? 'INVALID, the default applies' : '',
    missing === '' ? missingReason(key) : required ? 'required' : '',
    !isInertSection && inertReason !== '' ? '(inert)' : '',
    isIdle ? '(no effect)' : '',
  ]
}
