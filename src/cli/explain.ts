/** `explain`: the values in effect, where each was set, and all there is to know about one key. */
import { RULES, SECTIONS } from '../config/catalogue.ts'
import { describe, type Fault } from '../config/fault.ts'
import { examine } from '../config/load.ts'
import { nearest } from '../config/nearest.ts'
import { defaultOf } from '../config/published.ts'
import { type ResolvedKey, shown } from '../config/resolve.ts'
import { withoutPlaces } from '../config/setting.ts'
import { type CliArguments, type CommandOptions, usage } from './arguments.ts'
import { paint, type Terminal } from './terminal.ts'

const EXIT_USAGE = 2
const EXIT_CONFIGURATION = 78

export async function explain(
  args: CliArguments,
  output: Terminal = process.stdout,
  complaints: Terminal = process.stderr,
  _options: Pick<CommandOptions, 'changed' | 'burst'> = { changed: false, burst: '' },
): Promise<number> {
  const [wanted = '', ...more] = args.rest
  if (more.length > 0) {
    complaints.write(usage('explain'))
    return EXIT_USAGE
  }
  const { keys, faults } = examine(args.home, args.sets, args.dataDir)
  const chosen = choose(keys, wanted)
  const isTableWithoutRows = chosen.length === 0 && SECTIONS.some(({ name, repeated }) => repeated && name === wanted)
  if (chosen.length === 0 && !isTableWithoutRows) {
    complaints.write(noSuchKey(keys, wanted))
    return EXIT_USAGE
  }
  const single = chosen.length === 1 && !isSection(keys, wanted) ? chosen[0] : undefined
  if (args.json)
    output.write(`${JSON.stringify(single === undefined ? chosen.map(asJson) : asJson(single), null, 2)}\n`)
  else if (isTableWithoutRows) output.write(`there is no [[${wanted}]]; conf/reference.md lists its keys\n`)
  else if (single === undefined) listAll(output, chosen)
  else explainOne(output, single, faults)
  if (faults.length === 0) return 0
  for (const fault of faults) complaints.write(`${paint(complaints, 'red', 'fault')}  ${describe(fault)}\n`)
  return EXIT_CONFIGURATION
}

function isSection(keys: readonly ResolvedKey[], name: string): boolean {
  return keys.some(key => isWithin(key, name))
}

/** Of the section, of one row of a repeated table, or of any row of it. */
function isWithin({ section }: ResolvedKey, name: string): boolean {
  return section === name || withoutPlaces(section) === name
}

/** All keys, those of a section, or the one meant: by its whole path, or by as much of its end as is unmistakable. */
function choose(keys: readonly ResolvedKey[], wanted: string): readonly ResolvedKey[] {
  if (wanted === '') return keys
  if (isSection(keys, wanted)) return keys.filter(key => isWithin(key, wanted))
  const exact = keys.filter(key => key.path === wanted)
  return exact.length > 0 ? exact : keys.filter(key => key.path.endsWith(`.${wanted}`))
}

function noSuchKey(keys: readonly ResolvedKey[], wanted: string): string {
  const guess = nearest(
    wanted,
    keys.flatMap(key => [key.path, key.key, key.section]),
  )
  return `there is no key or section ${wanted}${guess === '' ? '' : `; did you mean ${guess}?`}\n`
}

function readable(key: ResolvedKey): string {
  const { named, unit } = key.definition
  const meaning = named[String(key.value)]
  if (meaning !== undefined) return `${shown(key)} (${meaning})`
  return unit === '' || key.secret ? shown(key) : `${shown(key)} ${unit}`
}

function listAll(output: Terminal, keys: readonly ResolvedKey[]): void {
  const nameWidth = Math.max(...keys.map(key => key.key.length))
  const valueWidth = Math.min(40, Math.max(...keys.map(key => readable(key).length)))
  let section: string | undefined
  for (const key of keys) {
    if (key.section !== section) {
      const header = key.section === '' ? '(above every table)' : `[${key.section}]`
      output.write(`${section === undefined ? '' : '\n'}${paint(output, 'bold', header)}\n`)
    }
    section = key.section
    const changed = key.where !== ''
    const inert = key.definition.inertReason === '' ? '' : '(inert)'
    const remarks = [changed ? key.where : '', key.faulty ? 'FAULTY, this is the default' : '', inert]
    const value = readable(key).padEnd(valueWidth)
    const line =
      `${key.key.padEnd(nameWidth)}  ${value}  ${remarks.filter(remark => remark !== '').join(' ')}`.trimEnd()
    output.write(`${changed ? '* ' : '  '}${paint(output, changed ? 'green' : 'dim', line)}\n`)
  }
  output.write('\n* set by the file or by --set; everything else has its default\n')
}

function explainOne(output: Terminal, key: ResolvedKey, faults: readonly Fault[]): void {
  const { definition } = key
  const own = faults.filter(fault => fault.key === key.path)
  const rows: readonly (readonly [string, string])[] = [
    ['value', key.faulty ? `${readable(key)}, the default: what was set is faulty` : readable(key)],
    ['default', defaultOf(definition)],
    ['set', key.where === '' ? 'nowhere, so the default holds' : key.where],
    ['type', definition.kind],
    ['unit', definition.unit],
    ['range', definition.range],
    ['meaning', definition.meaning],
    ['acted on', definition.inertReason === '' ? 'yes' : `no: ${definition.inertReason}`],
    ...rulesOf(key).map(rule => ['rule', rule] as const),
    ...own.map(fault => ['fault', describe(fault)] as const),
  ]
  output.write(`${paint(output, 'bold', key.path)}\n`)
  for (const [name, value] of rows) {
    if (value !== '') output.write(`  ${paint(output, 'dim', name.padEnd(8))}  ${value}\n`)
  }
}

function rulesOf(key: ResolvedKey): readonly string[] {
  const path = withoutPlaces(key.path)
  return [...new Set(RULES.filter(rule => rule.keys.includes(path)).map(rule => rule.must))]
}

function asJson(key: ResolvedKey): Readonly<Record<string, unknown>> {
  const { definition } = key
  return {
    key: key.path,
    value: key.secret ? shown(key) : key.value,
    default: definition.secret ? '' : definition.fallback,
    where: key.where,
    faulty: key.faulty,
    required: definition.required,
    type: definition.kind,
    unit: definition.unit,
    range: definition.range,
    meaning: definition.meaning,
    inert: definition.inertReason,
    rules: rulesOf(key),
  }
}
